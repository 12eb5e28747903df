# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches as commits: author, date and message as mailed, the committer pinned, so that the same input gives the same commit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from kpatch_ci.model.build import Tree
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import AppliedPatch, ApplyResult, Patch, Series
from kpatch_ci.series.apply import open_index
from kpatch_ci.series.dates import git_date
from kpatch_ci.series.gitindex import PrivateIndex

NOBODY = "address-missing@invalid"
"""Stands where an archive masked an address; never in a port."""
UNDATED = "0 +0000"
"""Date of a commit whose mail has none: the same input gives the same commit."""
_COMMITTER = "kpatch-ci <kpatch-ci@localhost> 0 +0000"
_TRAILER = re.compile(r"[A-Za-z][A-Za-z0-9-]*: |\(cherry picked from commit ")


@dataclass(frozen=True, slots=True)
class Words:
    """What a commit says."""

    author: str
    email: str
    when: str
    """Seconds since 1970 and zone, as git writes it; empty: the committer's."""
    message: str
    """Subject, empty line, text."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The commits of a series, in its order. ``notes`` says what they have that the mails had not."""

    commits: tuple[str, ...]
    notes: tuple[str, ...] = ()


def words_of(patch: Patch) -> Words:
    """What the commit of a mail says: its own words, and the trailers that replies to it gave."""
    author = _plain(patch.author) or _plain(patch.email).partition("@")[0] or "nobody named"
    return Words(author, _plain(patch.email) or NOBODY, git_date(patch.date), _message(patch))


def write_commit(index: PrivateIndex, tree_id: str, parent: str, words: Words) -> str:
    """A commit object in the index's repository; without a ``parent`` it is a first one."""
    who = f"{_plain(words.author)} <{_plain(words.email)}> {words.when or UNDATED}"
    above = f"parent {parent}\n" if parent else ""
    text = f"tree {tree_id}\n{above}author {who}\ncommitter {_COMMITTER}\n\n{words.message}"
    return index.must("hash-object", "-t", "commit", "-w", "--stdin", stdin=text).strip()


def commit_all(index: PrivateIndex, base: str, series: Series, applied: Sequence[AppliedPatch]) -> tuple[str, ...]:
    """Commits of the patches that went on, on top of ``base``, up to the first that did not."""
    known = {patch.source: patch for patch in _patches(series)}
    made: list[str] = []
    for done in applied:
        if done.tree_id is None:
            break
        base = write_commit(index, done.tree_id, base, words_of(known[done.source]))
        made.append(base)
    return tuple(made)


def commit_series(series: Series, applied: ApplyResult, tree: Tree, branch: str = "") -> Committed:
    """Make a commit of every patch of ``applied``, on top of ``tree``'s, in ``tree.repo``; ``branch`` is set to the last one.

    Raises UserError where the series did not apply or ``branch`` is no name for one, InfrastructureError where git fails.
    """
    if applied.tree_id is None:
        raise UserError(f"{series.name} did not apply: {applied.reason}", expected="a series that applies")
    with open_index(tree) as index:
        if branch and index.git("check-ref-format", "--branch", branch) is None:
            raise UserError(f"{branch!r} is no name for a branch", expected="see git check-ref-format")
        made = commit_all(index, tree.commit, series, applied.patches)
        if branch:
            index.must("update-ref", f"refs/heads/{branch}", made[-1])
    known = {patch.source: patch for patch in _patches(series)}
    return Committed(made, tuple(chain.from_iterable(_lacks(known[done.source]) for done in applied.patches)))


def _lacks(patch: Patch) -> Iterator[str]:
    words = words_of(patch)
    if not patch.author and not patch.email:
        yield f"`{patch.subject}` names no author: committed as by {words.author}"
    if not words.when:
        yield f"`{patch.subject}` has no date that can be used: committed as of 1970"


def _patches(series: Series) -> Iterator[Patch]:
    yield from series.patches
    yield from chain.from_iterable(series.ports.values())
    for member in series.members:
        yield from _patches(member)


def _message(patch: Patch) -> str:
    text = patch.message.strip("\n").rstrip()
    given = "\n".join(line for line in patch.trailers if line not in text.split("\n"))
    last = text.rpartition("\n\n")[2].split("\n")
    gap = "\n" if text and all(_TRAILER.match(line) for line in last) else "\n\n" if text else ""
    body = text + (gap + given if given else "")
    return f"{patch.subject}\n\n{body}\n" if body else f"{patch.subject}\n"


def as_mail(patch: Patch) -> bytes:
    """A patch as ``git am`` takes it."""
    words = words_of(patch)
    head = [
        "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001",
        f"From: {words.author} <{words.email}>",
        *([f"Date: {patch.date}"] if words.when else []),
        f"Subject: [PATCH] {' '.join(patch.subject.split())}",
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=UTF-8",
        "Content-Transfer-Encoding: 8bit",
        "",
        patch.message,
        "---",
        "",
    ]
    return "\n".join(head).encode("utf-8", "replace") + patch.diff


def _plain(text: str) -> str:
    """A name or address without what would break a commit's header or a terminal: angle brackets, line ends, control characters."""
    return " ".join("".join(" " if ord(char) < 32 or char in "<>\x7f" else char for char in text).split())
