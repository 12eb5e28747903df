# SPDX-License-Identifier: GPL-2.0-or-later
"""Base finding: the commits of a tree's history that a series applies to, from the blob ids of its index lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from kpatch_ci.model.base import BaseReport, Candidate, InHistory
from kpatch_ci.model.build import Tree
from kpatch_ci.model.series import ApplyResult, Fit, Patch, Series
from kpatch_ci.model.status import Status
from kpatch_ci.series.apply import apply_on, is_outside, open_index
from kpatch_ci.series.gitindex import PrivateIndex
from kpatch_ci.series.history import Touch, Walk
from kpatch_ci.series.sections import sections

SECONDS = 20.0
"""How long the history is searched."""
LIMIT = 3
"""Candidates that are shown."""
_MORE = 1.0
"""Seconds that are spent on older candidates, once the newest that has all files is known."""
_TRIES = 12
"""Commits at which a series without a match is tried out."""
_MANY = 20
"""Of a series with more patches only one candidate is tried out: that takes seconds."""
_BATCH = 64
"""Commits whose files are looked up in one go,"""
_PAUSE = 0.5
"""unless they wait for so many seconds."""
Say = Callable[[str], None]
_GOES = (Fit.AS_MAILED, Fit.THREE_WAY)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a series says of the files before and after it: path -> (abbreviated) blob, empty for a file that is not there."""

    before: dict[str, str]
    after: dict[str, str]
    paths: tuple[str, ...]


def wanted(patches: Iterable[Patch]) -> Wanted:
    """Blobs before the first and after the last patch that touches a file."""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    paths: dict[str, None] = {}
    for part in (part for patch in patches for part in sections(patch.diff)):
        names = [name for name in (part.old, part.new) if name and not is_outside(name)]
        paths |= dict.fromkeys(names)
        if not part.indexed or not names:
            continue
        if part.path not in after:
            before.setdefault(part.path, part.old_blob)
        if part.old and part.new != part.old:
            after[part.old] = ""
        if part.new:
            after[part.new] = part.new_blob
    return Wanted(before, after, tuple(paths))


def find_base(series: Series, tree: Tree, *, seconds: float = SECONDS, say: Say = lambda _: None) -> BaseReport:
    """Search the history of ``tree.commit`` for commits that have the files as the series wants them, newest first.

    A commit that the series names (``base-commit:``) comes first. The walk ends as soon as no better or newer candidate can
    come, or after ``seconds``. Each candidate is tried out. Raises InfrastructureError where git fails.
    """
    started = time.monotonic()
    alone = Series(series.name, series.title, series.origin, series.patches)
    with open_index(tree) as index:
        search = _Search(index, alone, tree, wanted(series.patches), end=started + seconds)
        search.start()
        if not search.done():
            search.walk(say)
        return search.report(started)


def with_history(result: ApplyResult, report: BaseReport | None) -> ApplyResult:
    """A result that knows what the history says: a series that does not apply may have been applied once."""
    if report is None or result.status is Status.PASSED or result.fit in (Fit.THERE, Fit.EMPTY):
        return result
    failed = {patch.subject for patch in result.patches if patch.status is Status.FAILED}
    found = next((f for f in report.in_history if f.whole), None)
    if found is None and failed <= {f.patch for f in report.in_history}:
        found = next(f for f in report.in_history if f.patch in failed)
    if found is None:
        return result
    reason = f"superseded: {found.why} ({found.commit[:12]}, {found.date}); {result.reason}"
    return replace(result, fit=Fit.SUPERSEDED, reason=reason)


@dataclass(slots=True)
class _Search:
    """The state of one search."""

    index: PrivateIndex
    series: Series
    tree: Tree
    aim: Wanted
    end: float
    """When time is over, on the monotonic clock."""
    found: dict[str, Candidate] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    """Commits whose files are still to be looked up."""
    batch: int = 1
    flushed: float = 0.0
    """When that was last done."""
    best: int = 0
    """Commits known that nothing can surpass."""
    touches: list[Touch] = field(default_factory=list)
    leaving: dict[str, Touch] = field(default_factory=dict)
    """Path -> newest commit that made it exactly what the series makes it."""
    in_history: dict[str, InHistory] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    reachable: int = 0
    """How many files can match at all: the others' blobs are not in the repository."""
    complete: bool = True
    seen: int = 0
    until: float | None = None
    """When the search for more than the newest fitting commit ends."""

    def start(self) -> None:
        """The tree itself, and what the series names; and how much a search can find."""
        if not self.aim.before:
            self.notes.append("its diffs have no index lines: there are no blobs to look for")
        for named in dict.fromkeys(patch.base_commit for patch in self.series.patches if patch.base_commit):
            commit = (self.index.git("rev-parse", "--verify", "--quiet", f"{named}^{{commit}}") or "").strip()
            if commit:
                self._look([commit], "trailer")
            else:
                self.notes.append(f"base-commit {named[:12]} is not in this repository")
        self._look([self.tree.commit], "tree")
        blobs = self.index.blobs(blob for blob in self.aim.before.values() if blob)
        self.reachable = sum(not blob or bool(blobs[blob]) for blob in self.aim.before.values())
        if gone := len(self.aim.before) - self.reachable:
            self.notes.append(
                f"{gone} of {len(self.aim.before)} files, as the series was made for them, are nowhere in it"
            )

    def done(self) -> bool:
        """Whether nothing better can come: what was named or asked for has every file, or it goes on and nothing can be found."""
        if not self.aim.paths:
            return True
        if self.aim.before:
            return any(c.matched == len(self.aim.before) for c in self.found.values())
        return self._fit(self.tree.commit) in _GOES

    def walk(self, say: Say) -> None:
        """Look at every parent of a commit that takes a wanted blob away: the newest commits with all blobs are among them."""

        def tell(touch: Touch, seen: int) -> None:
            best = max((c.matched for c in self.found.values()), default=0)
            of = f"best so far {best} of {len(self.aim.before)} files"
            say(f"looking for the base: {seen} commits, back to {touch.day}; {of}")

        left = max(0.0, self.end - time.monotonic())
        steps = Walk(self.index.git_dir, self.tree.commit, self.aim.paths, seconds=left, tell=tell)
        enough = False
        for touch in steps:
            self._note_history(touch)
            self.touches.append(touch)
            if any(self._is_wanted(path, old) and old != new for path, (old, new) in touch.blobs.items()):
                self.waiting += [p for p in touch.parents if p not in self.found and p not in self.waiting]
            if len(self.waiting) >= self.batch or (self.waiting and time.monotonic() - self.flushed > _PAUSE):
                self._flush()
            enough = self._enough()
            if enough:
                break
        self._flush()
        self.complete = enough or steps.complete
        self.seen = steps.seen

    def report(self, started: float) -> BaseReport:
        """The best candidates, each tried out, and what the history holds of the series."""
        after = {path: blob for path, blob in self.aim.after.items() if blob}
        if after and set(after) <= set(self.leaving):
            last = max(self.leaving.values(), key=lambda touch: touch.when)
            why = "the files were exactly as the series leaves them"
            self.in_history[""] = InHistory(self.series.title, last.commit, last.day, last.subject, why, whole=True)
        ranked = sorted(self.found.values(), key=lambda c: (c.source != "trailer", -c.matched, c.source != "tree"))
        best = [c for c in ranked if c.matched or c.source != "blobs"]
        best = [c for c in best if c.matched == best[0].matched or c.source != "blobs"][
            : LIMIT if len(self.series.patches) <= _MANY else 1
        ]
        tried = [replace(c, fit=self._fit(c.commit)) for c in best]
        if not any(c.fit in _GOES for c in tried):
            tried += self._try_out()
        best_match = max((c.matched for c in self.found.values()), default=0)
        if self.complete and best_match < len(self.aim.before) == self.reachable:
            self.notes.append(
                "its files are in the repository, but together in no commit of this history: try another branch"
            )
        if not self.complete:
            self.notes.append("time ran out before the whole history was looked at: an older commit may fit better")
        spent = round(time.monotonic() - started, 2)
        history = tuple(self.in_history.values())
        return BaseReport(tuple(tried), history, self.complete, self.seen, spent, tuple(self.notes))

    def _is_wanted(self, path: str, blob: str) -> bool:
        want = self.aim.before.get(path)
        return want is not None and (blob.startswith(want) if want else not blob)

    def _flush(self) -> None:
        """Look up the waiting commits, and count those that nothing can surpass."""
        self._look(self.waiting, "blobs")
        self.waiting.clear()
        self.batch = min(_BATCH, 2 * self.batch)
        self.flushed = time.monotonic()
        self.best = sum(c.matched >= self.reachable > 0 for c in self.found.values() if c.source == "blobs")
        if self.best and self.until is None:
            self.until = time.monotonic() + _MORE

    def _enough(self) -> bool:
        return self.best >= LIMIT or (self.until is not None and time.monotonic() > self.until)

    def _look(self, commits: Sequence[str], source: str) -> None:
        """Count the files that match at some commits."""
        if not commits:
            return
        asked = "".join(f"{commit}:{path}\n" for commit in commits for path in self.aim.before)
        said = self.index.must("cat-file", "--batch-check=%(objectname)", stdin=asked).split("\n")
        told = self.index.must(
            "log", "--no-walk=unsorted", "--format=%cs%x00%s", "--stdin", stdin="\n".join(commits) + "\n"
        )
        for commit, about in zip(commits, told.splitlines(), strict=False):
            answers, said = said[: len(self.aim.before)], said[len(self.aim.before) :]
            blobs = ("" if " " in answer else answer for answer in answers)
            matches = {p: self._is_wanted(p, blob) for p, blob in zip(self.aim.before, blobs, strict=True)}
            day, _, subject = about.partition("\0")
            differing = tuple(path for path, same in matches.items() if not same)
            candidate = Candidate(commit, day, subject, sum(matches.values()), len(matches), differing, source=source)
            self.found.setdefault(commit, candidate)

    def _note_history(self, touch: Touch) -> None:
        for path, (_, new) in touch.blobs.items():
            if (after := self.aim.after.get(path)) and new.startswith(after):
                self.leaving.setdefault(path, touch)
        for patch in self.series.patches if len(touch.parents) < 2 else ():
            if patch.subject == touch.subject and patch.subject not in self.in_history:
                why = "a commit of the same subject changes the same files"
                self.in_history[patch.subject] = InHistory(patch.subject, touch.commit, touch.day, touch.subject, why)

    def _fit(self, commit: str) -> Fit | None:
        tree_id = self.index.must("rev-parse", f"{commit}^{{tree}}").strip()
        return apply_on(self.index, self.series, replace(self.tree, commit=commit, tree_id=tree_id)).fit

    def _may_try(self, tries: int) -> bool:
        return tries < _TRIES and time.monotonic() < self.end

    def _try_out(self) -> list[Candidate]:
        """Where no blob helps: apply at older and older commits, then between the newest that did and the one after it."""
        parents = [touch.parents[0] for touch in self.touches if len(touch.parents) == 1]
        low, high, step = -1, 0, 1
        tries = 0
        while high < len(parents) and self._may_try(tries) and self._fit(parents[high]) not in _GOES:
            low, high, step, tries = high, high + step, 2 * step, tries + 1
        if high >= len(parents) or not self._may_try(tries):
            return []
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._fit(parents[middle]) in _GOES else (middle, high)
        self._look([parents[high]], "tried")
        return [replace(self.found[parents[high]], source="tried", fit=self._fit(parents[high]))]
