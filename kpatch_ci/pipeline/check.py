# SPDX-License-Identifier: GPL-2.0-or-later
"""Series against trees: how each applies, where in the history it belongs, and what keeps it from applying. Nothing is built."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from kpatch_ci.model.base import BaseReport
from kpatch_ci.model.build import Tree
from kpatch_ci.model.series import ApplyResult, Patch, Series
from kpatch_ci.model.status import Status
from kpatch_ci.report.claims import claim_json
from kpatch_ci.series.apply import apply_on, open_index
from kpatch_ci.series.base import SECONDS, find_base, with_history
from kpatch_ci.series.blame import has_history, with_last_changes

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Checked:
    """One series on one tree. ``base`` is None where the tree has no history, or none was asked for."""

    tree: Tree
    series: Series
    result: ApplyResult
    base: BaseReport | None = None

    def document(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "tree": self.tree.label,
            "release": self.tree.release,
            "commit": self.tree.commit,
            "tree_notes": list(self.tree.notes),
            "series": self.series.name,
            "taken": [_told(patch) for patch in self.series.patches],
            "claims": [claim_json(claim) for claim in self.series.claims],
            "intake": None if self.series.intake is None else asdict(self.series.intake),
            **asdict(self.result),
            "base": None if self.base is None else asdict(self.base),
        }


def _told(patch: Patch) -> dict[str, Any]:
    """What intake took: ``patches`` say what became of each."""
    return {key: value for key, value in asdict(patch).items() if key != "diff"}


def check_all(
    series: Sequence[Series],
    trees: Sequence[Tree],
    *,
    fuzz: int = 0,
    base_seconds: float = SECONDS,
    say: Say = lambda _: None,
) -> list[Checked]:
    """Every series on every tree, in that order: trees side by side, for git does the work.

    ``base_seconds`` bounds the search of one tree's history for one series; 0: none. Raises InfrastructureError.
    """

    def one_tree(tree: Tree) -> list[Checked]:
        with open_index(tree) as index:
            history = has_history(index, tree)
            rows = []
            for one in series:
                result = apply_on(index, one, tree, fuzz=fuzz)
                base = find_base(one, tree, seconds=base_seconds, say=say) if history and base_seconds else None
                if result.status is not Status.PASSED:
                    result = with_last_changes(index, tree, with_history(result, base))
                rows.append(Checked(tree, one, result, base))
            return rows

    with ThreadPoolExecutor(max_workers=max(1, min(len(trees), os.cpu_count() or 1))) as pool:
        return [row for rows in pool.map(one_tree, trees) for row in rows]
