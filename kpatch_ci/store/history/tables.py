# SPDX-License-Identifier: GPL-2.0-or-later
"""The schema, the same on SQLite and PostgreSQL. migrations/ makes it; a test holds the two against each other.

Rows of a run are numbered within it, so that a run is a few bulk inserts and no key has to be asked for.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
)

metadata = MetaData()


def _run() -> Column[Any]:
    return Column("run", Integer, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)


def _key(name: str) -> Column[Any]:
    return Column(name, Integer, primary_key=True, autoincrement=False)


def _text(name: str) -> Column[Any]:
    return Column(name, String, nullable=False, default="")


def _figure(name: str) -> Column[Any]:
    return Column(name, Double)


runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    _text("run_id"),
    Column("digest", String(64), nullable=False, unique=True),
    _text("started"),
    Column("started_at", Double, nullable=False, index=True),
    Column("recorded_at", Double, nullable=False),
    Column("seconds", Double, nullable=False),
    *(_text(n) for n in ("status", "profile", "mode", "command")),
    *(_text(n) for n in ("tree_label", "tree_release", "tree_commit", "tree_id", "kpatch_ci")),
    Column("document_bytes", BigInteger, nullable=False),
)
"""``name``: the run id, with a part of the digest behind it where another run has that id already."""

documents = Table("documents", metadata, _run(), Column("zlib", LargeBinary, nullable=False))
"""result.json as it was, compressed; apart from ``runs``, so that a list reads no megabytes."""

fingerprints = Table(
    "fingerprints",
    metadata,
    _run(),
    Column("arch", String, primary_key=True),
    Column("key", String, primary_key=True),
    _text("value"),
)
"""``arch`` is empty for what goes for all."""

series = Table(
    "series",
    metadata,
    _run(),
    _key("number"),
    *(_text(n) for n in ("name", "title", "variant", "status", "arm_baseline", "arm_patched")),
    Index("ix_series_name", "name"),
)

arches = Table(
    "arches",
    metadata,
    _run(),
    _key("number"),
    Column("series", Integer, nullable=False),
    *(_text(n) for n in ("arch", "machine", "status", "reason", "apply_status", "apply_method")),
    ForeignKeyConstraint(["run", "series"], ["series.run", "series.number"], ondelete="CASCADE"),
)

builds = Table(
    "builds",
    metadata,
    _run(),
    _key("arch"),
    Column("arm", String, primary_key=True),
    *(_text(n) for n in ("status", "release", "tree_id", "image_digest", "config_digest")),
    Column("seconds", Double, nullable=False),
    Column("objects", BigInteger, nullable=False),
    Column("cached", Boolean, nullable=False),
    ForeignKeyConstraint(["run", "arch"], ["arches.run", "arches.number"], ondelete="CASCADE"),
)

comparisons = Table(
    "comparisons",
    metadata,
    _run(),
    _key("number"),
    Column("arch", Integer, nullable=False),
    *(_text(n) for n in ("workload", "case", "metric", "unit", "better", "mode", "verdict", "reason")),
    Column("is_primary", Boolean, nullable=False),
    *(_figure(n) for n in ("change_percent", "ci_low", "ci_high", "p_value", "p_adjusted", "mde_percent")),
    *(_figure(n) for n in ("baseline_mean", "patched_mean")),
    ForeignKeyConstraint(["run", "arch"], ["arches.run", "arches.number"], ondelete="CASCADE"),
    Index("ix_comparisons_figure", "workload", "case", "metric"),
)

samples = Table(
    "samples",
    metadata,
    _run(),
    _key("comparison"),
    _key("number"),
    _text("seed"),
    _figure("baseline"),
    _figure("patched"),
    ForeignKeyConstraint(["run", "comparison"], ["comparisons.run", "comparisons.number"], ondelete="CASCADE"),
    sqlite_with_rowid=False,
)
"""One a seed; null where an arm has no sample."""
