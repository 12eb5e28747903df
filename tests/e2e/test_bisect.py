# SPDX-License-Identifier: GPL-2.0-or-later
"""A bisection on real kernels: Debian's own patches as commits on the upstream tree, with one regression among them."""

from __future__ import annotations

import difflib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import git
import pytest

from kpatch_ci.debian.apt import host_archives
from kpatch_ci.debian.toolroot import make_toolroot
from kpatch_ci.model.series import Patch
from kpatch_ci.process import run
from kpatch_ci.series.commits import as_mail
from kpatch_ci.series.intake import read_series
from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import Command
from tests.e2e.source_package import corpus

pytestmark = pytest.mark.e2e
FILE = "kernel/sched/fair.c"
PLANTED = "sched/fair: think about every wakeup"
BEFORE = "static int\nselect_task_rq_fair("
LOOK = "\tlockdep_assert_held(&p->pi_lock);\n"
WORK = """\
static noinline void think_about_it(void)
{
	int i;

	for (i = 0; i < 8000; i++)
		barrier();
}

"""
CODE = (".c", ".h", ".S", "Makefile", "Kconfig")
ELSEWHERE = ("Documentation/", "tools/", "samples/")
WIDE, WIDE_HEADERS = ("Makefile", "init/Makefile"), ("include/linux/", "arch/x86/include/")
QUESTION = ("--arch", "x86_64", "--workload", "hackbench", "--case", "groups=8", "--metric", "time")


@dataclass(frozen=True, slots=True)
class Linux:
    """A repository with the upstream commit, and a branch of patches on it. ``planted`` is a number, from 1."""

    place: Path
    good: str
    bad: str
    count: int
    planted: int


@pytest.fixture(scope="module")
def linux(kpatch_ci: Command, tmp_path_factory: pytest.TempPathFactory) -> Linux:
    source = corpus(cache_root(), make_toolroot(cache_root(), "trixie", host_archives()), host_archives())
    place = tmp_path_factory.mktemp("bisect")
    unpacked = run(["tar", "-C", place, "-xJf", source.patches], timeout=60)
    assert unpacked.ok, unpacked.output
    patches = [patch for patch in read_series([place / "debian/patches"])[0] if of_kernel_code(patch)]
    upstream = git.Repo(source.repo)
    text = upstream.git.execute(["git", "show", f"{source.upstream}:{FILE}"], strip_newline_in_stdout=False)
    number = random.Random(64).randrange(len(patches) // 4, 3 * len(patches) // 4)  # noqa: S311 (somewhere in the middle)
    mails = [as_mail(patch) for patch in patches]
    mails.insert(number, planted(str(text)))
    (place / "mails").mkdir()
    for index, mail in enumerate(mails, 1):
        (place / "mails" / f"{index:04d}.patch").write_bytes(mail)
    (place / "mails" / "series").write_text("".join(f"{n:04d}.patch\n" for n in range(1, len(mails) + 1)))
    where = f"{source.repo}@{source.upstream}"
    done = kpatch_ci("check", place / "mails", "-t", where, "--base-time", "0", "--branch", "bisected", "--json")
    assert done.code == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "to have it: git fetch " in line]
    ours = git.Repo.init(place / "linux.git", bare=True)
    (Path(ours.git_dir) / "objects/info/alternates").write_text(f"{source.repo}/objects\n")
    ours.git.fetch(line.split()[-2], "bisected:refs/heads/bisected")
    ours.git.tag("upstream", source.upstream)
    return Linux(place / "linux.git", "upstream", "bisected", len(mails), number + 1)


def of_kernel_code(patch: Patch) -> bool:
    """Not those that have everything compiled again, nor the lockdown patches, which are on one of them: a test has no time for it."""
    if "/lockdown/" in patch.source or any(path in WIDE or path.startswith(WIDE_HEADERS) for path in patch.paths):
        return False
    return any(path.endswith(CODE) and not path.startswith(ELSEWHERE) for path in patch.paths)


def planted(text: str) -> bytes:
    """A mail that makes every wakeup execute some thousand instructions more."""
    head, start, tail = text.partition(BEFORE)
    before, look, after = tail.partition(LOOK)
    assert start, text[:100]
    assert look
    new = f"{head}{WORK}{start}{before}{look}\tthink_about_it();\n{after}"
    lines = difflib.unified_diff(text.splitlines(True), new.splitlines(True), f"a/{FILE}", f"b/{FILE}")
    words = f"From: Test Author <test@example.org>\nSubject: [PATCH] {PLANTED}\n\nFor the tests of kpatch-ci.\n\n---\n"
    return f"{words}{''.join(lines)}".encode()


def arguments(linux: Linux) -> Sequence[str]:
    return ("bisect", "-t", str(linux.place), "--good", linux.good, "--bad", linux.bad, *QUESTION, "--json")


def kill_in_step(number: int, words: Sequence[str], place: Path) -> list[str]:
    """Start it and SIGKILL it when it has begun a step; what it said."""
    argv = [sys.executable, "-m", "kpatch_ci", *words]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=place) as process:
        assert process.stderr
        heard = []
        for said in process.stderr:
            heard.append(said)
            if f"step {number} (" in said:
                os.kill(process.pid, signal.SIGKILL)
                return heard
    pytest.fail(f"it never came to step {number}:\n{''.join(heard)}")


def check_found(result: Any, linux: Linux) -> None:
    assert result["ending"] == "found", result["why"]
    assert result["first_bad"]["subject"] == PLANTED
    assert result["files"] == [FILE]
    assert result["commits"] == linux.count >= 65
    assert result["patch"] is None
    (proof,) = result["proofs"]
    assert proof["cls"] == "good"
    assert proof["share_percent"] == pytest.approx(100, abs=30)
    assert proof["change"]["ci_percent"][1] < 0
    assert all(step["cls"] in ("good", "bad") for step in result["steps"]), "nothing was skipped or undecided"
    assert {step["how"] for step in result["steps"]} <= {"measured", "same kernel"}


def test_it_finds_the_commit_although_it_was_killed_half_way(linux: Linux, kpatch_ci: Command, tmp_path: Path) -> None:
    words = arguments(linux)
    heard = kill_in_step(4, [*words, "--restart"], tmp_path)
    assert any("step 3: " in line for line in heard)
    refs = git.Repo(linux.place).git.for_each_ref()
    done = kpatch_ci(*words, "--output", tmp_path / "out")
    assert done.code == 0, done.stderr
    check_found(done.result, linux)
    assert done.result["spent"]["resumed"] == 3
    assert git.Repo(linux.place).git.for_each_ref() == refs
    assert not list(linux.place.glob("BISECT_*"))
    assert json.loads((tmp_path / "out/bisect.json").read_text()) == done.result
    again = kpatch_ci(*words)
    assert again.result["spent"]["builds"] == again.result["spent"]["replicates"] == 0
    assert [s["commit"] for s in again.result["steps"]] == [s["commit"] for s in done.result["steps"]]
