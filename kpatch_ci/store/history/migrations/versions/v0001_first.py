# SPDX-License-Identifier: GPL-2.0-or-later
"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _text(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.String, nullable=False) for name in names]


def _figures(*names: str) -> list[sa.Column[float]]:
    return [sa.Column(name, sa.Double, nullable=True) for name in names]


def _run() -> sa.Column[int]:
    return sa.Column("run", sa.Integer, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)


def _key(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, primary_key=True, autoincrement=False)


def _of(table: str, name: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["run", name], [f"{table}.run", f"{table}.number"], ondelete="CASCADE")


def upgrade() -> None:
    """Make every table."""
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False, unique=True),
        *_text("run_id"),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        *_text("started"),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("recorded_at", sa.Double, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        *_text("status", "profile", "mode", "command"),
        *_text("tree_label", "tree_release", "tree_commit", "tree_id", "kpatch_ci"),
        sa.Column("document_bytes", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_runs_started_at", "runs", ["started_at"])
    op.create_table("documents", _run(), sa.Column("zlib", sa.LargeBinary, nullable=False))
    op.create_table(
        "fingerprints",
        _run(),
        sa.Column("arch", sa.String, primary_key=True),
        sa.Column("key", sa.String, primary_key=True),
        *_text("value"),
    )
    op.create_table(
        "series",
        _run(),
        _key("number"),
        *_text("name", "title", "variant", "status", "arm_baseline", "arm_patched"),
    )
    op.create_index("ix_series_name", "series", ["name"])
    op.create_table(
        "arches",
        _run(),
        _key("number"),
        sa.Column("series", sa.Integer, nullable=False),
        *_text("arch", "machine", "status", "reason", "apply_status", "apply_method"),
        _of("series", "series"),
    )
    op.create_table(
        "builds",
        _run(),
        _key("arch"),
        sa.Column("arm", sa.String, primary_key=True),
        *_text("status", "release", "tree_id", "image_digest", "config_digest"),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("objects", sa.BigInteger, nullable=False),
        sa.Column("cached", sa.Boolean, nullable=False),
        _of("arches", "arch"),
    )
    op.create_table(
        "comparisons",
        _run(),
        _key("number"),
        sa.Column("arch", sa.Integer, nullable=False),
        *_text("workload", "case", "metric", "unit", "better", "mode", "verdict", "reason"),
        sa.Column("is_primary", sa.Boolean, nullable=False),
        *_figures("change_percent", "ci_low", "ci_high", "p_value", "p_adjusted", "mde_percent"),
        *_figures("baseline_mean", "patched_mean"),
        _of("arches", "arch"),
    )
    op.create_index("ix_comparisons_figure", "comparisons", ["workload", "case", "metric"])
    op.create_table(
        "samples",
        _run(),
        _key("comparison"),
        _key("number"),
        *_text("seed"),
        *_figures("baseline", "patched"),
        _of("comparisons", "comparison"),
        sqlite_with_rowid=False,
    )
