# SPDX-License-Identifier: GPL-2.0-or-later
"""Puts changed files into a git tree: only the directories on the way to them are read and written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class RunGit(Protocol):
    """Runs a git command and gives what it prints; raises where it fails."""

    def __call__(self, *words: str, stdin: str = "") -> str: ...


def splice(tree_id: str, changes: Mapping[str, str], git: RunGit) -> str:
    """The tree with some paths changed: path -> ``mode blob``, or empty for a file that goes. Directories come and go with them."""
    return _splice(tree_id, changes, git) or _make("", git)


def _splice(tree_id: str, changes: Mapping[str, str], git: RunGit) -> str:
    """The new tree; empty where nothing is left in it."""
    entries = _entries(git("ls-tree", "-z", tree_id)) if tree_id else {}
    below: dict[str, dict[str, str]] = {}
    for path, entry in changes.items():
        name, slash, rest = path.partition("/")
        if slash:
            below.setdefault(name, {})[rest] = entry
        elif entry:
            mode, blob = entry.split(" ")
            entries[name] = f"{mode} {'commit' if mode == '160000' else 'blob'} {blob}"
        else:
            entries.pop(name, None)
    for name, inner in below.items():
        known = entries.get(name, "").split(" ")
        new = _splice(known[2] if known[0] == "040000" else "", inner, git)
        if new:
            entries[name] = f"040000 tree {new}"
        elif known[0] == "040000":
            del entries[name]
    return _make("".join(f"{entry}\t{name}\0" for name, entry in entries.items()), git) if entries else ""


def _entries(listed: str) -> dict[str, str]:
    """Name -> ``mode type id``."""
    return {name: entry for entry, _, name in (line.partition("\t") for line in listed.split("\0") if line)}


def _make(entries: str, git: RunGit) -> str:
    return git("mktree", "-z", stdin=entries).strip()
