# SPDX-License-Identifier: GPL-2.0-or-later
"""A synthetic history, as wide and as deep as asked for, made with one git fast-import: no kernel's history is at hand."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import git

MAKEFILE = b"VERSION = 6\nPATCHLEVEL = 1\nNAME = X\n"
FIRST = 1_000_000_000
"""Time of the first commit, seconds since 1970."""
EVERY = 600
"""Seconds between two commits."""
FORKED = 500
"""A topic begins up to so many commits before it is merged."""


def make_history(
    place: Path, commits: int, *, directories: int = 40, files: int = 25, merges: float = 0.08
) -> git.Repo:
    """A bare repository whose branch ``master`` has ``commits`` commits over ``directories`` x ``files`` files.

    Every commit changes one line of one to three files; a share of them are merges of a branch of one commit that began
    up to FORKED commits earlier. Files of small numbers are hot, as in a kernel. Commit N (from 1) has subject ``change N``.
    """
    repo = git.Repo.init(place, bare=True)
    with tempfile.TemporaryFile() as stream:
        for chunk in _stream(commits, directories, files, merges):
            stream.write(chunk)
        stream.seek(0)
        repo.git.execute(["git", "fast-import", "--quiet"], istream=stream)
    return repo


def path_of(number: int, files: int = 25) -> str:
    """File ``number`` of the history: three directories deep."""
    directory, name = divmod(number, files)
    return f"sub{directory % 7}/dir{directory}/file{name}.c"


def text_of(number: int, versions: list[int]) -> bytes:
    """A file's text after its lines were changed so many times each."""
    return b"".join(b"int file_%d_line_%d = %d;\n" % (number, line, count) for line, count in enumerate(versions))


def _stream(commits: int, directories: int, files: int, merges: float) -> Iterator[bytes]:
    chance = random.Random(1)  # noqa: S311 (the same history each time)
    total = directories * files
    versions = [[0] * 40 for _ in range(total)]
    yield b"blob\nmark :1\ndata %d\n%s\n" % (len(MAKEFILE), MAKEFILE)
    yield _commit(2, "the first", 0, ())
    yield b"M 100644 :1 Makefile\n"
    for number in range(total):
        yield _file(number, files, versions[number])
    tip = 2
    for count in range(1, commits + 1):
        parents = (tip,)
        if tip > 3 and chance.random() < merges:
            fork = max(2, tip - 2 * chance.randrange(FORKED))
            yield _commit(2 * count + 1, f"topic {count}", count, (fork,))
            number = chance.randrange(total)
            versions[number][chance.randrange(40)] += 1
            changed = _file(number, files, versions[number])
            yield changed
            yield _commit(2 * count + 2, f"change {count}", count, (tip, 2 * count + 1))
            yield changed
        else:
            yield _commit(2 * count + 2, f"change {count}", count, parents)
            for _ in range(chance.randint(1, 3)):
                number = min(chance.randrange(total), chance.randrange(total))
                versions[number][chance.randrange(40)] += 1
                yield _file(number, files, versions[number])
        tip = 2 * count + 2


def _commit(mark: int, subject: str, count: int, parents: tuple[int, ...]) -> bytes:
    who = b"A <a@b> %d +0000" % (FIRST + EVERY * count)
    lines = [b"commit refs/heads/master", b"mark :%d" % mark, b"author " + who, b"committer " + who]
    lines += [b"data %d\n%s" % (len(subject), subject.encode())]
    for word, parent in zip((b"from", b"merge"), parents, strict=False):
        lines.append(b"%s :%d" % (word, parent))
    return b"\n".join(lines) + b"\n"


def _file(number: int, files: int, versions: list[int]) -> bytes:
    text = text_of(number, versions)
    return b"M 100644 inline %s\ndata %d\n%s\n" % (path_of(number, files).encode(), len(text), text)
