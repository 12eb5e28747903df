# SPDX-License-Identifier: GPL-2.0-or-later
"""What ``check`` prints: what was taken, a table, then every hunk that moved, every one that failed, and where the base is."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kpatch_ci.cli.mails import show_patches
from kpatch_ci.cli.output import say
from kpatch_ci.model.base import BaseReport, Candidate
from kpatch_ci.model.build import Tree
from kpatch_ci.model.series import ApplyResult, HunkFailure, Placement, Series
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.check import Checked
from kpatch_ci.report.clean import one_line
from kpatch_ci.report.conflict import conflict
from kpatch_ci.series.commits import Committed
from kpatch_ci.series.onepatch import ALREADY
from kpatch_ci.series.worktree import Kept


def show(out: Console, series: Sequence[Series], rows: Sequence[Checked]) -> None:
    """All of it."""
    for one in series:
        show_patches(out, one)
    table = Table(box=None, pad_edge=False)
    for heading in ("series", "tree", "linux", "applies", ""):
        table.add_column(heading, no_wrap=heading != "")
    for row in rows:
        columns = (row.series.name, row.tree.label, row.tree.release, str(row.result.fit or "?"), _summary(row.result))
        table.add_row(*(Text(column) for column in columns))
    out.print(table)
    for note in dict.fromkeys(f"{row.tree.label}: {note}" for row in rows for note in row.tree.notes):
        _line(out, f"note: {note}")
    for row in rows:
        _placements(out, row)
    for row in rows:
        _failures(out, row)
    for row in rows:
        if row.base is not None:
            _base(out, row, row.base)


def _line(out: Console, text: str, style: str = "") -> None:
    out.print(Text(text, style=style), soft_wrap=True)


def _summary(result: ApplyResult) -> str:
    """What the table says beside the word."""
    if result.status is Status.PASSED:
        return "; ".join(_went(result))
    failures = [f for p in result.patches if p.status is Status.FAILED for f in p.failures]
    hunks = [f for f in failures if f.hunk and not f.there]
    there = sum(f.there and bool(f.hunk) for f in failures)
    loose = [f for f in hunks if f.fuzz]
    words = []
    if result.reason.startswith("superseded: "):
        words.append(result.reason.partition("; ")[0].removeprefix("superseded: "))
    if hunks:
        files = len({f.path for f in hunks})
        fuzz = f", {len(loose)} of them would with --fuzz {max(f.fuzz or 0 for f in loose)}" if loose else ""
        words.append(f"{len(hunks)} hunk(s) of {files} file(s) do not apply{fuzz}")
    if there:
        words.append(f"{there} hunk(s) are there already")
    words += [f"{f.path}: {f.reason}" for f in failures if not f.hunk and f.reason != ALREADY]
    return "; ".join(words) or result.reason


def _went(result: ApplyResult) -> Iterator[str]:
    moved = [p for p in result.placements if p.offset]
    fuzzy = [p for p in result.placements if p.fuzz]
    if fuzzy:
        yield f"{len(fuzzy)} hunk(s) with FUZZ up to {max(p.fuzz for p in fuzzy)}"
    if moved:
        yield f"{len(moved)} hunk(s) moved by up to {max(abs(p.offset) for p in moved)} lines"
    if result.warnings:
        yield f"{len(result.warnings)} WARNING(S) below"


def _placements(out: Console, row: Checked) -> None:
    result = row.result
    if result.status is not Status.PASSED or not (result.placements or result.warnings):
        return
    _line(out, f"\n{row.series.name} on {row.tree.label}: hunks that are not where the mail has them", "bold")
    for placement in result.placements:
        _line(out, f"  {_where(placement)}")
    for patch in result.patches:
        for note in patch.notes:
            _line(out, f"  WARNING: {one_line(patch.subject)}: {note}")


def _where(placement: Placement) -> str:
    fuzz = f"FUZZ {placement.fuzz}, " if placement.fuzz else ""
    function = f", in: {one_line(placement.found_in)}" if placement.found_in else ""
    text = f"{placement.path}: hunk {placement.hunk}: {fuzz}line {placement.line}, offset {placement.offset}{function}"
    return f"{text}; WARNING: {placement.warning}" if placement.warning else text


def _failures(out: Console, row: Checked) -> None:
    if row.result.status is Status.PASSED:
        return
    for patch in row.result.patches:
        failures: Sequence[HunkFailure] = patch.failures if patch.status is Status.FAILED else ()
        if not failures:
            continue
        _line(out, f"\n{row.series.name} on {row.tree.label}: {one_line(patch.subject)}", "bold")
        for failure in failures:
            for line in conflict(failure):
                _line(out, line)


def _base(out: Console, row: Checked, base: BaseReport) -> None:
    place = row.tree.label.partition("@")[0]
    _line(
        out, f"\n{row.series.name}: where it belongs in the history of {row.tree.label} ({base.seconds:.1f} s)", "bold"
    )
    for candidate in base.candidates:
        _line(out, f"  {candidate.commit[:12]} {candidate.date} {one_line(candidate.subject)}: {_fits(candidate)}")
    if not base.candidates:
        _line(out, "  no commit has any of its files as they were")
    for found in base.in_history:
        _line(
            out, f"  {one_line(found.patch)}: {found.why}: {found.commit[:12]} {found.date} {one_line(found.subject)}"
        )
    for note in base.notes:
        _line(out, f"  note: {note}")
    best = next((c for c in base.candidates if c.commit != row.tree.commit and c.fit), None)
    if best is not None and row.result.status is not Status.PASSED:
        _line(out, f"  to test it there: -t {place}@{best.commit[:12]}")


def _fits(candidate: Candidate) -> str:
    all_of_them = candidate.matched == candidate.wanted
    files = f"{'all ' if all_of_them else ''}{candidate.matched} of {candidate.wanted} files as the series wants them"
    origin = {"trailer": "named by the series, ", "tree": "the tree itself, ", "tried": "found by trying, "}
    where = "" if not candidate.differing else f" (not {', '.join(candidate.differing[:3])})"
    return f"{origin.get(candidate.source, '')}{files if candidate.wanted else 'no blob ids'}{where}; {candidate.fit or 'not tried'}"


def say_branch(made: Committed, branch: str, tree: Tree) -> None:
    """What was committed, what the commits lack, and how to get them."""
    say(f"{branch}: {len(made.commits)} commit(s) on {tree.label}, the last one {made.commits[-1]}")
    for note in made.notes:
        say(f"  note: {note}")
    say(f"to have it: git fetch {shlex.quote(str(tree.repo))} {shlex.quote(branch)}")


def say_kept(kept: Kept, series: Series, tree: Tree) -> None:
    """Where the worktree is, what is to be resolved in it, and how to go on."""
    place = shlex.quote(str(kept.directory))
    say(f"{kept.directory}: {kept.applied} of {len(series.patches)} patches are commits in it")
    if not kept.stopped_at:
        say("nothing is left to resolve")
        return
    say(f"to resolve: `{one_line(kept.stopped_at)}`" + (f"; {kept.left} patches after it" if kept.left else ""))
    for path in kept.marked:
        say(f"  {path}: conflict markers")
    for path in kept.rejected:
        say(f"  {path}: the hunks that found no place; delete it when they are in")
    say(f"then: git -C {place} add -A && git -C {place} am --continue")
    say(f"then: ./kpatch-ci port {series.name} -t {tree.label} --from {place} --note 'what was adapted, and why'")
