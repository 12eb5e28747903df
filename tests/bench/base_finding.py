# SPDX-License-Identifier: GPL-2.0-or-later
"""How long it takes to find a series' base in a long history: newest, oldest, and a base that is nowhere.

    .venv/bin/python tests/bench/base_finding.py [COMMITS [REPO]]

Makes a synthetic repository (at REPO, where it stays, if that is given), then searches it. The aim is 10 s. Nothing is asserted.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import git

from kpatch_ci.model.build import Tree
from kpatch_ci.model.series import Patch, Series
from kpatch_ci.series.base import find_base
from tests.fakes.history import make_history, path_of


def a_series(repo: git.Repo, commit: str, paths: list[str]) -> Series:
    """A series that changes some files as they are at ``commit``."""
    diff = b""
    for path in paths:
        old = repo.git.cat_file("blob", f"{commit}:{path}", strip_newline_in_stdout=False)
        blob = repo.git.rev_parse(f"{commit}:{path}")
        line = old.splitlines()[0]
        rows = [
            f"diff --git a/{path} b/{path}",
            f"index {blob[:12]}..{'1' * 12} 100644",
            f"--- a/{path}",
            f"+++ b/{path}",
        ]
        rows += ["@@ -1,4 +1,4 @@", f"-{line}", "+int changed;", *(f" {text}" for text in old.splitlines()[1:4])]
        diff += ("\n".join(rows) + "\n").encode()
    return Series("s", "s", "", (Patch("s", "s", "", "", "", "", diff, tuple(paths), ""),))


def main(commits: int, place: Path | None) -> None:
    """Make, search, print."""
    with tempfile.TemporaryDirectory(prefix="kpatch-ci-bench-") as scratch:
        place = place or Path(scratch) / "repo"
        started = time.monotonic()
        repo = git.Repo(place) if place.exists() else make_history(place, commits)
        print(f"{commits} commits made in {time.monotonic() - started:.0f} s")
        head = repo.git.rev_parse("master")
        tree = Tree("bench", "6.1", Path(repo.git_dir), head, repo.git.rev_parse("master^{tree}"), "")
        paths = [path_of(number) for number in (3, 17, 40, 120, 333)]
        for name, back in (("near", commits // 100), ("half-way", commits // 2), ("far", commits - commits // 50)):
            commit = repo.git.rev_parse(f"master~{back}")
            report = find_base(a_series(repo, commit, paths), tree, seconds=60, say=print)
            best = report.candidates[0]
            good = repo.git.merge_base(commit, best.commit) == commit
            words = f"{best.matched} of {best.wanted} files, {best.fit}, {'at or after the base' if good else 'WRONG'}"
            print(f"{name} ({back} commits back): {report.seconds:.2f} s, {report.commits} commits seen; {words}")
        nowhere = a_series(repo, head, paths)
        text = nowhere.patches[0].diff.replace(b"\nindex ", b"\nindex 0")
        lost = Series(
            "s", "s", "", (Patch("s", "s", "", "", "", "", text.replace(b" file_3_", b" none_"), tuple(paths), ""),)
        )
        report = find_base(lost, tree, seconds=60, say=print)
        print(f"nowhere: {report.seconds:.2f} s, {report.commits} commits seen; {report.notes}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, Path(sys.argv[2]) if len(sys.argv) > 2 else None)
