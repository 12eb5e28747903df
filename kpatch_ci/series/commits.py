# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches as commits: author, date and message as mailed, the committer pinned, so that the same input gives the same commit."""

from __future__ import annotations

import email.utils
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kpatch_ci.model.series import AppliedPatch, Patch
from kpatch_ci.series.gitindex import PrivateIndex

NOBODY = "address-missing@invalid"
"""Stands where an archive masked an address; never in a port."""
_COMMITTER = "kpatch-ci <kpatch-ci@localhost> 0 +0000"
_UNSAFE = re.compile(r"[<>\n\x00]")


@dataclass(frozen=True, slots=True)
class Words:
    """What a commit says."""

    author: str
    email: str
    when: str
    """Seconds since 1970 and zone, as git writes it; empty: the committer's."""
    message: str
    """Subject, empty line, text."""


def words_of(patch: Patch) -> Words:
    """What the commit of a mail says."""
    message = f"{patch.subject}\n\n{patch.message}".rstrip() + "\n"
    return Words(patch.author or "nobody named", patch.email or NOBODY, git_date(patch.date), message)


def git_date(rfc5322: str) -> str:
    """A mail's date as git has it; empty where it is none."""
    try:
        when = email.utils.parsedate_to_datetime(rfc5322)
        return f"{int(when.timestamp())} {when.strftime('%z') or '+0000'}"
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def write_commit(index: PrivateIndex, tree_id: str, parent: str, words: Words) -> str:
    """A commit object in the index's repository."""
    name, address = (_UNSAFE.sub("", text).strip() for text in (words.author, words.email))
    who = f"{name} <{address}> {words.when}" if words.when else f"{name} <{address}> 0 +0000"
    text = f"tree {tree_id}\nparent {parent}\nauthor {who}\ncommitter {_COMMITTER}\n\n{words.message}"
    return index.must("hash-object", "-t", "commit", "-w", "--stdin", stdin=text).strip()


def commit_all(index: PrivateIndex, base: str, patches: Sequence[Patch], applied: Sequence[AppliedPatch]) -> str:
    """The last commit of the patches that went on, up to the first that did not; ``base`` where there is none."""
    for patch, done in zip(patches, applied, strict=False):
        if done.tree_id is None:
            break
        base = write_commit(index, done.tree_id, base, words_of(patch))
    return base


def as_mail(patch: Patch) -> bytes:
    """A patch as ``git am`` takes it."""
    words = words_of(patch)
    date = patch.date or "Thu, 1 Jan 1970 00:00:00 +0000"
    head = [
        "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001",
        f"From: {_UNSAFE.sub('', words.author)} <{_UNSAFE.sub('', words.email)}>",
        f"Date: {date}",
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
