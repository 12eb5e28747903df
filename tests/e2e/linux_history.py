# SPDX-License-Identifier: GPL-2.0-or-later
"""Histories of a kernel for bisections: Debian's own patches as commits on the upstream tree, and changes made here among them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import git

from kpatch_ci.debian.apt import host_archives
from kpatch_ci.debian.toolroot import make_toolroot
from kpatch_ci.model.series import Patch
from kpatch_ci.process import run
from kpatch_ci.series.intake import read_series
from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import Command
from tests.e2e.source_package import Corpus, corpus

BRANCH = "bisected"
CODE = (".c", ".h", ".S", "Makefile", "Kconfig")
ELSEWHERE = ("Documentation/", "tools/", "samples/")
WIDE, WIDE_HEADERS = ("Makefile", "init/Makefile"), ("include/linux/", "arch/x86/include/")
WORDS = """\
From: Test Author <test@example.org>
Date: Mon, 1 Jan 2024 12:00:00 +0000
Subject: [PATCH] {subject}

For the tests of kpatch-ci.

---
"""


def source_package() -> Corpus:
    """Debian's package in the cache, fetched where it is not."""
    return corpus(cache_root(), make_toolroot(cache_root(), "trixie", host_archives()), host_archives())


def kernel_patches(source: Corpus, scratch: Path) -> list[Patch]:
    """Those of the package's quilt series that touch code, and not everything: in the order of the series."""
    unpacked = run(["tar", "-C", scratch, "-xJf", source.patches], timeout=60)
    assert unpacked.ok, unpacked.output
    return [patch for patch in read_series([scratch / "debian/patches"])[0] if of_kernel_code(patch)]


def of_kernel_code(patch: Patch) -> bool:
    """Not those that have everything compiled again, nor the lockdown patches, which are on one of them: a test has no time for it."""
    if "/lockdown/" in patch.source or any(path in WIDE or path.startswith(WIDE_HEADERS) for path in patch.paths):
        return False
    return any(path.endswith(CODE) and not path.startswith(ELSEWHERE) for path in patch.paths)


def lay_down(kpatch_ci: Command, source: Corpus, mails: Sequence[bytes], place: Path) -> Path:
    """A repository below ``place`` whose branch ``bisected`` has a commit a mail, on the tag ``upstream``; the mails are in ``mails``."""
    (place / "mails").mkdir()
    for index, mail in enumerate(mails, 1):
        (place / "mails" / f"{index:04d}.patch").write_bytes(mail)
    (place / "mails" / "series").write_text("".join(f"{n:04d}.patch\n" for n in range(1, len(mails) + 1)))
    where = f"{source.repo}@{source.upstream}"
    done = kpatch_ci("check", place / "mails", "-t", where, "--base-time", "0", "--branch", BRANCH, "--json")
    assert done.code == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "to have it: git fetch " in line]
    ours = git.Repo.init(place / "linux.git", bare=True)
    (Path(ours.git_dir) / "objects/info/alternates").write_text(f"{source.repo}/objects\n")
    ours.git.fetch(line.split()[-2], f"{BRANCH}:refs/heads/{BRANCH}")
    ours.git.tag("upstream", source.upstream)
    return place / "linux.git"


@dataclass
class Planter:
    """Makes mails of small changes to the upstream tree, each on those before it."""

    source: Corpus
    texts: dict[str, str] = field(default_factory=dict)

    def mail(self, subject: str, path: str, *edits: tuple[str, str]) -> bytes:
        """A mail that replaces the first of each of ``edits`` by the second, at its first place in ``path``."""
        before = self.texts.get(path) or self._upstream(path)
        after = before
        for old, new in edits:
            assert old in after, (path, old)
            after = after.replace(old, new, 1)
        self.texts[path] = after
        lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
        return f"{WORDS.format(subject=subject)}{''.join(lines)}".encode()

    def _upstream(self, path: str) -> str:
        command = ["git", "show", f"{self.source.upstream}:{path}"]
        return str(git.Repo(self.source.repo).git.execute(command, strip_newline_in_stdout=False))
