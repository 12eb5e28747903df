# SPDX-License-Identifier: GPL-2.0-or-later
"""A bisection on real kernels: Debian's own patches as commits on the upstream tree, with one regression among them."""

from __future__ import annotations

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

from kpatch_ci.series.commits import as_mail
from tests.e2e.conftest import Command
from tests.e2e.linux_history import BRANCH, Planter, kernel_patches, lay_down, source_package

pytestmark = pytest.mark.e2e
FILE = "kernel/sched/fair.c"
PLANTED = "sched/fair: think about every wakeup"
BEFORE = "static int\nselect_task_rq_fair("
LOOK = "\t * required for stable ->cpus_allowed\n\t */\n\tlockdep_assert_held(&p->pi_lock);\n"
WORK = """\
static noinline void think_about_it(void)
{
	int i;

	for (i = 0; i < 8000; i++)
		barrier();
}

"""
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
    source = source_package()
    place = tmp_path_factory.mktemp("bisect")
    mails = [as_mail(patch) for patch in kernel_patches(source, place)]
    number = random.Random(64).randrange(len(mails) // 4, 3 * len(mails) // 4)  # noqa: S311 (somewhere in the middle)
    slower = (BEFORE, f"{WORK}{BEFORE}"), (LOOK, f"{LOOK}\tthink_about_it();\n")
    mails.insert(number, Planter(source).mail(PLANTED, FILE, *slower))
    return Linux(lay_down(kpatch_ci, source, mails, place), "upstream", BRANCH, len(mails), number + 1)


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
