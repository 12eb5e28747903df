# SPDX-License-Identifier: GPL-2.0-or-later
"""Puts one patch on an index: as mailed, by three-way merge, on request with fuzz; and never into the wrong function."""

from __future__ import annotations

from dataclasses import replace

from kpatch_ci.model.series import AppliedPatch, ApplyMethod, HunkFailure, Patch, Placement
from kpatch_ci.model.status import Status
from kpatch_ci.series.failures import explain, misplaced
from kpatch_ci.series.fates import FileFate, read_fates
from kpatch_ci.series.gitindex import PrivateIndex
from kpatch_ci.series.placements import Files, Verdict, applicable, judge, places_of, refuse, relocate
from kpatch_ci.series.sections import Hunk, Section, sections

ALREADY = "already in the tree"
MAX_FUZZ = 3
"""git makes three lines of context; with that many ignored nothing is left to go by but the changed lines."""


def put_mail(index: PrivateIndex, patch: Patch, base: str, *, fuzz: int = 0) -> AppliedPatch:
    """One mail on the index, which holds ``base``, and holds it again where the mail does not go on.

    ``fuzz``: lines of context that may be ignored at either end of a hunk, where nothing better works.
    """
    parts = sections(patch.diff)
    files = Files(index.file, base)
    direct = index.apply(patch.diff)
    if direct.ok:
        fates = read_fates(direct.said, parts)
        verdict = judge(fates, files)
        if not verdict.wrong:
            return _passed(patch, ApplyMethod.AS_MAILED, index.write(), fates=fates, verdict=verdict, files=files)
        index.read(base)
        failures = misplaced(parts, verdict, files)
    else:
        verdict = Verdict((), {})
        failures = _refusal(index, patch, parts, files, direct.said)
    merged = _three_way(index, patch, base, parts, failures)
    if merged is not None:
        return merged
    if verdict.wrong and all(verdict.wrong.values()):
        moved = _relocated(index, patch, base, parts, verdict)
        if moved is not None:
            return moved
    if fuzz and not verdict.wrong and failures[0].reason != ALREADY:
        loose = index.apply(patch.diff, f"-C{max(0, MAX_FUZZ - fuzz)}")
        if loose.ok:
            fates = read_fates(loose.said, parts)
            found = judge(fates, files)
            if not found.wrong and max((p.fuzz for p in found.placements), default=0) <= fuzz:
                done = _passed(patch, ApplyMethod.FUZZ, index.write(), fates=fates, verdict=found, files=files)
                return replace(done, failures=failures)
            index.read(base)
    return AppliedPatch(patch.subject, patch.source, Status.FAILED, None, failures=failures)


def put_port(index: PrivateIndex, patch: Patch, base: str) -> AppliedPatch:
    """One patch of a port: its text must be there exactly. A port was made for its tree, so its places are taken as they are."""
    parts = sections(patch.diff)
    files = Files(index.file, base)
    outcome = index.apply(patch.diff)
    if outcome.ok:
        fates = read_fates(outcome.said, parts)
        return _passed(patch, ApplyMethod.PORT, index.write(), fates=fates, verdict=judge(fates, files), files=files)
    failures = _refusal(index, patch, parts, files, outcome.said)
    return AppliedPatch(patch.subject, patch.source, Status.FAILED, None, failures=failures)


def put_what_goes(index: PrivateIndex, patch: Patch, base: str) -> str:
    """Apply the hunks of a patch that do apply to ``base``, so that the patches after it can be looked at; returns the tree."""
    fates = read_fates(index.apply(patch.diff, "--reject", "--check").said, sections(patch.diff))
    rest = applicable(patch.diff, refuse(fates, judge(fates, Files(index.file, base))))
    if rest:
        index.apply(rest)
    return index.write()


def already(patch: Patch) -> HunkFailure:
    """The failure of a patch that is in the tree."""
    path = patch.paths[0] if patch.paths else ""
    return HunkFailure(path=path, line=0, header="", wanted="", found="", reason=ALREADY, there=True)


def can_be_taken_off(index: PrivateIndex, patch: Patch, *options: str) -> bool:
    """Whether a patch is in the tree that the index holds: it reverses, and each hunk's text stands in the function it names."""
    files = Files(index.file)
    parts = sections(patch.diff)
    there = all(
        places_of(hunk, hunk.new, files.get(part.new))
        for part in parts
        if part.new and part.old
        for hunk in part.hunks
        if hunk.new_count
    )
    return there and index.apply(patch.diff, "--reverse", *options).ok


def _three_way(
    index: PrivateIndex, patch: Patch, base: str, parts: tuple[Section, ...], failures: tuple[HunkFailure, ...]
) -> AppliedPatch | None:
    """By the files that the patch was made for, where the repository has them all."""
    blobs = [part.old_blob for part in parts if part.old_blob]
    if failures[0].reason == ALREADY or not blobs or not index.has_blobs(blobs):
        return None
    merged = index.apply(patch.diff, "--3way")
    new = index.write() if merged.ok else base
    if new != base:
        return AppliedPatch(
            patch.subject, patch.source, Status.PASSED, ApplyMethod.THREE_WAY, tree_id=new, failures=failures
        )
    index.read(base)
    if merged.ok:
        return AppliedPatch(patch.subject, patch.source, Status.FAILED, None, failures=(already(patch),))
    return None


def _relocated(
    index: PrivateIndex, patch: Patch, base: str, parts: tuple[Section, ...], verdict: Verdict
) -> AppliedPatch | None:
    """With the hunks that git put into the wrong function sent to the right one."""
    files = Files(index.file, base)
    diff = relocate(patch.diff, parts, verdict.wrong)
    moved = index.apply(diff)
    if moved.ok:
        fates = read_fates(moved.said, sections(diff))
        found = judge(fates, files)
        if not found.wrong:
            placements = tuple(_meant(parts, verdict)) + found.placements
            found = replace(found, placements=placements)
            return _passed(patch, ApplyMethod.AS_MAILED, index.write(), fates=fates, verdict=found, files=files)
    index.read(base)
    return None


def _meant(parts: tuple[Section, ...], verdict: Verdict) -> list[Placement]:
    """Placements of relocated hunks, told against the mail's own line numbers."""
    by_hunk = {(p.path, p.hunk): p for p in verdict.placements}
    found = []
    for (index, number), right in verdict.wrong.items():
        git_took = by_hunk[parts[index].old, number]
        hunk = parts[index].hunks[number - 1]
        found.append(
            replace(
                git_took,
                line=right,
                offset=right - hunk.old_start,
                found_in=hunk.function,
                also=(git_took.line,),
                warning=f"the same text at line {git_took.line} is nearer, but in another function than the mail names",
            )
        )
    return found


def _refusal(
    index: PrivateIndex, patch: Patch, parts: tuple[Section, ...], files: Files, said: str
) -> tuple[HunkFailure, ...]:
    """Why git refused a patch with the words ``said``, never empty: what can be taken off is there already."""
    if can_be_taken_off(index, patch, "--check"):
        return (already(patch),)
    strict = index.apply(patch.diff, "--reject", "--check")
    loose = index.apply(patch.diff, "--reject", "--check", "-C1")
    return explain(f"{strict.said}\n{said}", read_fates(strict.said, parts), read_fates(loose.said, parts), files)


def _passed(
    patch: Patch,
    method: ApplyMethod,
    tree_id: str,
    *,
    fates: tuple[FileFate, ...],
    verdict: Verdict,
    files: Files,
) -> AppliedPatch:
    return AppliedPatch(
        patch.subject,
        patch.source,
        Status.PASSED,
        method,
        tuple(p.offset for p in verdict.placements if p.offset),
        tree_id,
        placements=verdict.placements,
        notes=(*_warned(fates), *_twice(fates, files)),
    )


def _warned(fates: tuple[FileFate, ...]) -> list[str]:
    return [note for fate in fates for note in fate.notes]


def _twice(fates: tuple[FileFate, ...], files: Files) -> list[str]:
    """A patch that only adds may go on a second time, beside what it added the first time."""
    hunks = [(fate.section, hunk) for fate in fates for hunk in fate.section.hunks]
    if not hunks or not all(part.old and _only_adds(hunk) for part, hunk in hunks):
        return []
    if all(places_of(hunk, hunk.new, files.get(part.old)) for part, hunk in hunks):
        return ["all that it makes is in the tree already: it may be there, and this would be the second time"]
    return []


def _only_adds(hunk: Hunk) -> bool:
    signs = {line[:1] for line in hunk.lines}
    return "+" in signs and "-" not in signs
