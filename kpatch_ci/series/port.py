# SPDX-License-Identifier: GPL-2.0-or-later
"""Ports: commits of a person's worktree as patches with the mail's author, date, message and sign-offs, and a note of what was adapted."""

from __future__ import annotations

import re
import tempfile
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kpatch_ci.model.build import Tree
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.series import AppliedPatch, Patch, Series
from kpatch_ci.process import run
from kpatch_ci.series.apply import apply_on, open_index, touched
from kpatch_ci.series.commits import NOBODY, UNDATED, Words, words_of, write_commit
from kpatch_ci.series.dates import git_date
from kpatch_ci.series.functions import is_same, short_name
from kpatch_ci.series.gitindex import PrivateIndex, isolated_work
from kpatch_ci.series.mail import split_address
from kpatch_ci.series.onepatch import put_port
from kpatch_ci.series.placements import named_function
from kpatch_ci.series.sections import Hunk, sections

_NOTE = re.compile(r"^\[kpatch-ci: ported to ", re.MULTILINE)
_SIGNED = re.compile(r"^Signed-off-by:.*$", re.MULTILINE)
_UNFINISHED = {
    "rebase-apply": "am",
    "rebase-merge": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
}
"""What git leaves while a command waits for a person -> that command."""
_WIDTH = 72
_TIMEOUT = 120.0


@dataclass(frozen=True, slots=True)
class Step:
    """One commit to become a patch of a port, and the mail that it is of (None: made for the port)."""

    tree_id: str
    words: Words
    mail: Patch | None
    changed: bool
    """Whether its change is another than the mail's, line numbers aside."""


def from_worktree(index: PrivateIndex, series: Series, tree: Tree, directory: Path) -> list[Step]:
    """The commits of a worktree since the tree's. Raises UserError where something is unresolved or it is another tree."""
    place = directory.expanduser().absolute()
    tip = _tip(place)
    _nothing_unresolved(place)
    if index.git("cat-file", "-e", f"{tip}^{{commit}}") is None:
        index.must("fetch", "--quiet", "--no-tags", str(place), "HEAD")
    if index.git("merge-base", "--is-ancestor", tree.commit, tip) is None:
        what = f"{place} is not based on {tree.label} ({tree.commit[:12]})"
        raise UserError(what, where="--from", expected=f"the worktree that `check --keep` made for -t {tree.label}")
    commits = index.must("rev-list", "--reverse", "--topo-order", f"{tree.commit}..{tip}").split()
    if not commits:
        raise UserError(
            f"no commit in {place} after {tree.commit[:12]}", where="--from", expected="the port, committed"
        )
    if index.must("rev-list", "--merges", f"{tree.commit}..{tip}").strip():
        raise UserError(f"a merge among the commits of {place}", where="--from", expected="one commit a patch")
    added = index.must("diff-tree", "-r", "-z", "--name-only", tree.commit, tip).split("\0")
    if rejects := [name for name in added if name.endswith((".rej", ".orig"))]:
        raise UserError(
            f"committed by mistake: {', '.join(rejects[:5])}", where="--from", expected="a commit without them"
        )
    read = [_read(index, commit) for commit in commits]
    mails = _matched([words for _, words in read], series.patches)
    ids = [_patch_id(index.must("diff-tree", "-p", "--no-renames", f"{commit}^", commit)) for commit in commits]
    return [
        Step(tree_id, words, mail, mail is None or _patch_id(_plain(mail)) != patch_id)
        for (tree_id, words), mail, patch_id in zip(read, mails, ids, strict=True)
    ]


def from_result(series: Series, applied: Sequence[AppliedPatch]) -> list[Step]:
    """The steps of a series that went on by itself, by three-way merge or with fuzz."""
    steps = []
    for mail, done in zip(series.patches, applied, strict=True):
        if done.tree_id is None or done.method is None:
            raise ValueError("not all of the series is applied")
        steps.append(Step(done.tree_id, words_of(mail), mail, changed=bool(done.failures)))
    return steps


def make_patches(
    index: PrivateIndex, tree: Tree, steps: Sequence[Step], *, release: str, note: str, author: str
) -> tuple[dict[str, bytes], str, tuple[str, ...]]:
    """File name -> patch, the tree after all of them, and what a person should look at. Raises UserError for what is missing."""
    parent = tree.commit
    notes: list[str] = []
    today = _day_of_port(steps)
    for step in steps:
        words = _words(step, release, note, author)
        words = words if _is_date(words.when) else replace(words, when=today)
        if step.mail is not None:
            lost = set(_SIGNED.findall(step.mail.message)) - set(_SIGNED.findall(words.message))
            more = set(_SIGNED.findall(words.message)) - set(_SIGNED.findall(step.mail.message))
            notes += [f"`{step.mail.subject}` has lost `{line}`" for line in sorted(lost)]
            notes += [f"`{step.mail.subject}`: `{line}` is not the mail's" for line in sorted(more)]
        parent = write_commit(index, step.tree_id, parent, words)
    rfc = any(step.mail is not None and "RFC" in step.mail.prefix for step in steps)
    return _format(index, tree, parent, rfc=rfc), steps[-1].tree_id, tuple(notes)


def _is_date(when: str) -> bool:
    """Whether a commit has a date of its own: one of a mail without a date is pinned to the epoch."""
    return bool(when) and when != UNDATED


def _day_of_port(steps: Sequence[Step]) -> str:
    """For patches without a date: when the newest of the others was committed, so that a worktree always gives the same; else now."""
    dates = [step.words.when for step in steps if _is_date(step.words.when)]
    return max(dates, key=lambda when: int(when.split()[0]), default=f"{int(time.time())} +0000")


def verify(series: Series, port: tuple[Patch, ...], tree: Tree, tree_id: str) -> None:
    """Whether a port gives exactly the tree that was resolved: no fuzz, no offset. Raises InfrastructureError where not."""
    with open_index(tree) as index:
        index.focus(touched(replace(series, ports={"": port})))
        index.read(tree.tree_id)
        base = tree.tree_id
        for patch in port:
            done = put_port(index, patch, base)
            if done.tree_id is None or done.offsets:
                why = "; ".join(f.reason for f in done.failures) or f"hunks moved by {done.offsets} lines"
                raise InfrastructureError(
                    f"the port does not apply to {tree.label}: {why}", hint="this is a bug: report it"
                )
            base = done.tree_id
    if base != tree_id:
        raise InfrastructureError(f"the port gives tree {base[:12]}, and {tree_id[:12]} was resolved")


def same_functions(mail: Patch, port: Patch) -> list[str]:
    """Hunks of a port that make the mail's changes in another function than the mail: git am may have put them there."""
    theirs = [(part.new or part.old, hunk) for part in sections(port.diff) for hunk in part.hunks]
    found = []
    for part in sections(mail.diff):
        for hunk in part.hunks:
            meant = named_function(hunk)
            same = [h for path, h in theirs if path == (part.new or part.old) and _changes(h) == _changes(hunk)]
            went = [named_function(h) for h in same]
            if meant and went and all(name and not is_same(meant, name) for name in went):
                found.append(f"{part.path}: the mail changes {short_name(meant)}, the port {short_name(went[0])}")
    return found


def _changes(hunk: Hunk) -> list[str]:
    return [line for line in hunk.lines if line[:1] in "+-"]


def _tip(place: Path) -> str:
    done = run([*isolated_work(None, place), "rev-parse", "--verify", "HEAD"], timeout=_TIMEOUT)
    if not place.is_dir() or not done.ok:
        raise UserError(
            f"{place} is no git worktree", where="--from", expected="the directory that `check --keep` made"
        )
    return done.output.strip()


def _nothing_unresolved(place: Path) -> None:
    git = isolated_work(None, place)
    git_dir = Path(run([*git, "rev-parse", "--absolute-git-dir"], timeout=_TIMEOUT).output.strip())
    for state, verb in _UNFINISHED.items():
        if (git_dir / state).exists():
            what = f"a git {verb} is not finished in {place}"
            raise UserError(
                what, where="--from", expected=f"`git -C {place} add -A && git -C {place} {verb} --continue`"
            )
    changed = run([*git, "status", "--porcelain"], timeout=_TIMEOUT).output.splitlines()
    rejected = run([*git, "ls-files", "--others", "-z", "--", "*.rej"], timeout=_TIMEOUT).output.split("\0")[:-1]
    pending = [line[3:] for line in changed if not line.startswith("??")]
    if rejected:
        what = f"rejected hunks are left: {', '.join(rejected[:5])}"
        raise UserError(what, where="--from", expected="them resolved and the files deleted")
    if pending:
        raise UserError(f"not committed: {', '.join(pending[:5])}", where="--from", expected="the port, committed")


def _read(index: PrivateIndex, commit: str) -> tuple[str, Words]:
    shown = index.must(
        "show", "--no-patch", "--date=raw", "--encoding=UTF-8", "--format=%T%x00%an%x00%ae%x00%ad%x00%B", commit
    )
    tree_id, name, address, date, message = shown.split("\0", 4)
    return tree_id, Words(name, address, date, message.rstrip() + "\n")


def _matched(commits: Sequence[Words], mails: Sequence[Patch]) -> list[Patch | None]:
    """The mail of each commit: by subject, else by order where there are as many."""
    by_subject = {mail.subject: mail for mail in mails}
    found = [by_subject.get(words.message.partition("\n")[0]) for words in commits]
    if None in found and len(commits) == len(mails):
        return list(mails)
    return found


def _patch_id(diff: str) -> str:
    done = run(["git", "patch-id", "--stable"], timeout=_TIMEOUT, stdin=diff.encode("utf-8", "surrogateescape"))
    return done.output.partition(" ")[0]


def _plain(mail: Patch) -> str:
    return mail.diff.decode("utf-8", "surrogateescape")


def _words(step: Step, release: str, note: str, author: str) -> Words:
    words, mail = step.words, step.mail
    if mail is not None:
        when = git_date(mail.date) or words.when
        words = replace(words, author=mail.author or words.author, email=mail.email or words.email, when=when)
    if author:
        name, address = split_address(author)
        words = replace(words, author=name, email=address)
    subject = words.message.partition("\n")[0]
    if words.email in (NOBODY, "kpatch-ci@localhost") or "@" not in words.email:
        what = f"the address of the author of `{subject}` ({words.author}) is not known"
        raise UserError(what, where="--author", expected="'Name <address>', and in --note where it is from")
    if step.changed and not _NOTE.search(words.message):
        if not note:
            what = f"`{subject}` is not as mailed, and nothing says what was adapted"
            raise UserError(what, where="--note", expected="what was changed for this tree, and why")
        text = textwrap.fill(
            f"[kpatch-ci: ported to {release}: {' '.join(note.split())}]", _WIDTH, subsequent_indent=" "
        )
        gap = "\n" if _SIGNED.search(words.message) else "\n\n"
        words = replace(words, message=f"{words.message.rstrip()}{gap}{text}\n")
    return words


def _format(index: PrivateIndex, tree: Tree, tip: str, *, rfc: bool) -> dict[str, bytes]:
    """``git format-patch`` with nobody's settings, and with the tree's own attributes: they say how to find functions."""
    with tempfile.TemporaryDirectory(prefix="kpatch-ci-port-") as scratch:
        attributes = Path(scratch) / "attributes"
        attributes.write_text(index.git("show", f"{tree.commit}:.gitattributes") or "")
        out = Path(scratch) / "out"
        prefix = "RFC PATCH" if rfc else "PATCH"
        options = [
            f"--subject-prefix={prefix}",
            "-N",
            "--no-signature",
            "--zero-commit",
            "--abbrev=12",
            "-M",
            "-o",
            str(out),
        ]
        index.must("-c", f"core.attributesFile={attributes}", "format-patch", *options, f"{tree.commit}..{tip}")
        return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def check_series(series: Series, tree: Tree, fuzz: int) -> list[Step]:
    """The steps of a series that needs a port and resolves itself. Raises UserError where a person has to."""
    with open_index(tree) as index:
        result = apply_on(index, replace(series, ports={}), tree, fuzz=fuzz)
    method = str(result.fit)
    if result.tree_id is None:
        hint = f"`./kpatch-ci check {series.name} -t {tree.label} --keep DIR`, resolve it, then port --from DIR"
        raise UserError(f"{series.name} on {tree.label}: {result.reason}", expected=hint)
    if method == "as mailed":
        raise UserError(f"{series.name} applies to {tree.label} as mailed: it needs no port", expected="another tree")
    return from_result(series, result.patches)
