# SPDX-License-Identifier: GPL-2.0-or-later
"""What breaks builds, boots and workloads is found on real kernels, past commits that cannot be judged.

Sixteen of Debian's own patches are commits on the upstream tree, and among them are changes made here: what is looked for,
and stretches of commits that do not build, do not boot or do not run, each mended by a commit of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import git
import pytest

from kpatch_ci.model.series import Patch
from kpatch_ci.series.commits import as_mail
from tests.e2e.conftest import Command
from tests.e2e.linux_history import BRANCH, Planter, kernel_patches, lay_down, source_package

pytestmark = pytest.mark.e2e
PLACES = ("arch/x86/", "fs/", "kernel/", "mm/", "net/", "security/")
REAL = 16
LOAD = ("--workload", "hackbench", "--case", "groups=8")
NAME = '!strcmp(current->comm, "hackbench")'

TALK = "init: say a word"
BREAK, MEND = "lib/sort: call what is not there", "lib/sort: call it no more"
PANIC, WAKE = "init: give up", "init: do not give up"
REFUSE, ALLOW = "pipe: refuse hackbench's writes", "pipe: refuse nobody's writes"
CRASH, LAST = "sched/fair: stumble over hackbench's wakeups", "lib/sort: break the build"

BANNER = '\tpr_notice("%s", linux_banner);\n'
WORD = '\tpr_notice("kpci: a word of its own\\n");\n'
SCHED = "\tsched_init();\n"
GIVE_UP = f'{SCHED}\tpanic("kpci: given up");\n'
SWAP = "static void swap_words_32(void *a, void *b, size_t n)\n{\n"
NOT_THERE = f"{SWAP}\tkpci_no_such_function();\n"
WATCH = "\tif (pipe_has_watch_queue(pipe))\n\t\treturn -EXDEV;\n"
NO_SPACE = f"\tif ({NAME})\n\t\treturn -ENOSPC;\n\n{WATCH}"
HELD = "\t * required for stable ->cpus_allowed\n\t */\n\tlockdep_assert_held(&p->pi_lock);\n"
STUMBLE = f"{HELD}\tif ({NAME} && current->se.sum_exec_runtime > 1000000)\n\t\t*(volatile int *)8 = 0;\n"


@dataclass(frozen=True, slots=True)
class Linux:
    """A repository with commits 1 to ``len(subjects)`` on the tag ``upstream``."""

    place: Path
    subjects: tuple[str, ...]
    mails: Path

    def at(self, subject: str, before: int = 0) -> str:
        """A revision: the commit called so, or one of those before it."""
        return f"{BRANCH}~{len(self.subjects) - 1 - self.subjects.index(subject) + before}"

    def between(self, first: str, end: str) -> list[str]:
        """Subjects from ``first`` to the one before ``end``."""
        return list(self.subjects[self.subjects.index(first) : self.subjects.index(end)])


@dataclass
class _History:
    """Subjects and mails, in order; real patches come as they are called for."""

    real: list[Patch]
    made: Planter
    subjects: list[str] = field(default_factory=list)
    mails: list[bytes] = field(default_factory=list)

    def patches(self, count: int) -> None:
        for _ in range(count):
            patch = self.real.pop(0)
            self.subjects.append(patch.subject)
            self.mails.append(as_mail(patch))

    def plant(self, subject: str, path: str, *edits: tuple[str, str]) -> None:
        self.subjects.append(subject)
        self.mails.append(self.made.mail(subject, path, *edits))


@pytest.fixture(scope="module")
def linux(kpatch_ci: Command, tmp_path_factory: pytest.TempPathFactory) -> Linux:
    source, place = source_package(), tmp_path_factory.mktemp("failures")
    history = _History(on_their_own(kernel_patches(source, place))[:REAL], Planter(source))
    history.patches(2)
    history.plant(TALK, "init/main.c", (BANNER, BANNER + WORD))
    history.patches(2)
    history.plant(BREAK, "lib/sort.c", (SWAP, NOT_THERE))
    history.patches(2)
    history.plant(MEND, "lib/sort.c", (NOT_THERE, SWAP))
    history.patches(1)
    history.plant(PANIC, "init/main.c", (SCHED, GIVE_UP))
    history.patches(2)
    history.plant(WAKE, "init/main.c", (GIVE_UP, SCHED))
    history.patches(1)
    history.plant(REFUSE, "fs/pipe.c", (WATCH, NO_SPACE))
    history.patches(2)
    history.plant(ALLOW, "fs/pipe.c", (NO_SPACE, WATCH))
    history.patches(2)
    history.plant(CRASH, "kernel/sched/fair.c", (HELD, STUMBLE))
    history.patches(1)
    history.plant(LAST, "lib/sort.c", (SWAP, NOT_THERE))
    history.patches(1)
    return Linux(lay_down(kpatch_ci, source, history.mails, place), tuple(history.subjects), place / "mails")


def on_their_own(patches: Sequence[Patch]) -> list[Patch]:
    """Those of code that these kernels are made of and that no other one touches, so that each applies without the others."""
    paths = [path for patch in patches for path in patch.paths]
    ours = (patch for patch in patches if all(path.startswith(PLACES) for path in patch.paths))
    return [patch for patch in ours if all(paths.count(path) == 1 for path in patch.paths)]


@pytest.fixture
def find(linux: Linux, kpatch_ci: Command, tmp_path: Path) -> Any:
    """Bisects between two revisions and checks the exit status; returns what it found and how each step went, by subject."""

    def bisect(good: str, bad: str, *words: str | Path, code: int = 0) -> tuple[Any, dict[str, str]]:
        ends = ("-t", linux.place, "--good", good, "--bad", bad)
        done = kpatch_ci("bisect", *ends, "--arch", "x86_64", *words, "--restart", "--json", "--output", tmp_path)
        assert done.code == code, done.stderr
        result = done.result
        return result, {step["commit"]["subject"]: step["how"] for step in result["steps"]}

    return bisect


def check(result: Any, subject: str, wanted: str) -> None:
    """It is found, its parent is good or cannot be judged, and the ends say ``wanted``."""
    assert (result["ending"], result["first_bad"]["subject"]) == ("found", subject)
    assert wanted in result["ends"]["why"]
    (proof,) = result["proofs"]
    assert proof["cls"] == "good"


def test_what_breaks_the_build(linux: Linux, find: Any) -> None:
    result, _ = find("upstream", BRANCH, "--find", "build")
    check(result, LAST, "kpci_no_such_function")
    assert result["spent"]["boots"] == 0


def test_what_breaks_the_boot_past_commits_that_do_not_build(linux: Linux, find: Any) -> None:
    result, how = find("upstream", linux.at(WAKE, 1), "--find", "boot")
    check(result, PANIC, "Kernel panic - not syncing: kpci: given up")
    not_built = linux.between(BREAK, MEND)
    assert {name for name, way in how.items() if way == "does not build"} == {name for name in how if name in not_built}
    assert "does not build" in how.values()


def test_words_on_the_console_also_of_a_kernel_that_does_not_come_up(linux: Linux, find: Any) -> None:
    result, how = find("upstream", linux.at(LAST, 1), "--log-pattern", "a word of its [o]wn")
    check(result, TALK, "kpci: a word of its own")
    assert set(how) & set(linux.between(PANIC, WAKE)), "one of those that give up was looked at"


def told_good(linux: Linux, names: Sequence[str], place: Path) -> Path:
    """A log to replay, in which somebody has called these commits good."""
    hashes = [git.Repo(linux.place).git.rev_parse(linux.at(name)) for name in names]
    (place / "told.log").write_text(f"git bisect start\ngit bisect good {' '.join(hashes)}\n")
    return place / "told.log"


def test_what_a_workload_fails_under_past_commits_that_do_not_boot(linux: Linux, find: Any, tmp_path: Path) -> None:
    told = told_good(linux, linux.between(BREAK, MEND), tmp_path)
    result, how = find("upstream", linux.at(ALLOW, 2), "--find", "workload", *LOAD, "--replay", told)
    check(result, REFUSE, "No space left on device")
    not_booted = {name for name, way in how.items() if way == "does not boot"}
    assert not_booted
    assert not_booted <= set(linux.between(PANIC, WAKE))
    assert "told" in how.values()


def test_what_crashes_under_a_workload_past_commits_that_fail_otherwise(
    linux: Linux, find: Any, tmp_path: Path
) -> None:
    """Those that panic in their boot would be crashes too, but are called good: they are not what is looked for."""
    told = told_good(linux, linux.between(PANIC, WAKE), tmp_path)
    result, how = find("upstream", linux.at(LAST, 1), "--find", "crash", *LOAD, "--replay", told)
    check(result, CRASH, "BUG: kernel NULL pointer dereference, address: 0000000000000008")
    failed = {name for name, way in how.items() if way == "workload fails"}
    assert failed
    assert failed <= set(linux.between(REFUSE, ALLOW))


def test_which_patch_of_a_series_breaks_the_boot(linux: Linux, kpatch_ci: Command, tmp_path: Path) -> None:
    names = [*linux.subjects[:2], PANIC, linux.subjects[3]]
    mails = [linux.mails / f"{linux.subjects.index(name) + 1:04d}.patch" for name in names]
    where = ("-t", f"{linux.place}@upstream", "--arch", "x86_64", "--find", "boot", "--restart")
    done = kpatch_ci("bisect", *mails, *where, "--json", "--output", tmp_path)
    assert done.code == 0, done.stderr
    check(done.result, PANIC, "kpci: given up")
    assert done.result["patch"] == [3, 4]
    assert "patch 3 of 4" in (tmp_path / "bisect.txt").read_text()
