# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci bisect``, whole: real git, real notes and reports, but a bench of numbers (tests/fakes/kernels.py)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import git
import pytest

from kpatch_ci.cli import bisect as verb
from kpatch_ci.cli.main import main
from kpatch_ci.config.load import Config
from kpatch_ci.debian.apt import Archives
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.kernel.source import TreeCache
from kpatch_ci.pipeline.session import Session
from kpatch_ci.report.bisect import WIDTH, from_plain
from kpatch_ci.store.artifacts import ArtifactStore
from tests.fakes.kernels import Killed, World, fake_bench, line, make_repo

HACKBENCH = ("--workload", "hackbench", "--case", "groups=8", "--arch", "x86_64")


@dataclass
class Shell:
    """The command line in a directory of its own."""

    place: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    opened: int = 0
    starts: bool = True
    """Whether it was said that kernels will be started."""

    def __post_init__(self) -> None:
        def open_session(config: Config, *, jobs: int, logs: Path, say: Callable[[str], None], boots: bool) -> Session:
            self.opened, self.starts = self.opened + 1, boots
            cache, archives = self.place / "cache", Archives("http://main.invalid", None)
            tools = ToolRoot(self.place, "trixie", "f", {})
            tree = TreeCache(cache, tools, archives).get(config.tree)
            return Session(config, cache, ArtifactStore(cache / "store"), tools, archives, tree, jobs, logs)

        self.monkeypatch.chdir(self.place)
        self.monkeypatch.setattr(verb, "open_session", open_session)
        self.hashes = make_repo(self.place / "linux", line(20))

    def run(self, world: World, *words: str | Path) -> tuple[int, str, str]:
        self.monkeypatch.setattr(verb, "open_bench", fake_bench(world))
        code = main(["bisect", *map(str, words)])
        said = self.capsys.readouterr()
        return code, said.out, said.err

    def range(self, world: World, *words: str) -> tuple[int, str, str]:
        return self.run(world, "-t", "linux", "--good", "t-c0", "--bad", "master", *HACKBENCH, *words)

    def json(self, world: World, *words: str) -> tuple[int, Any]:
        code, out, _ = self.range(world, "--json", *words)
        return code, json.loads(out)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys)


def planted(number: int, by: float = 0.2) -> World:
    return World(lambda name: by * (int(name.removeprefix("c")) >= number))


def test_it_finds_the_commit_and_leaves_reports(shell: Shell) -> None:
    code, out, err = shell.range(planted(13), "--output", "out")
    assert code == 0
    assert f'Fixes: {shell.hashes["c13"][:12]} ("c13")' in out
    assert "1 file(s): c13.c" in out
    assert "A. Uthor <a@example.org>, 2023-11-14" in out
    assert out == Path("out/bisect.txt").read_text()
    assert out.isascii()
    assert max(map(len, out.splitlines())) <= WIDTH + 2
    assert "about 4 steps after it" in err or "about 3 steps after it" in err
    assert Path("out/bisect.log").read_text().endswith(f"# first bad commit: [{shell.hashes['c13']}] c13\n")
    document = json.loads(Path("out/bisect.json").read_text())
    assert document["schema"] == "kpatch-ci/bisect/1"
    assert document["first_bad"]["hash"] == shell.hashes["c13"]
    assert document["question"] == "time of hackbench groups=8 on x86_64-8"
    assert from_plain(document).first_bad == from_plain(document).steps[-1].commit or document["proofs"]


def test_json_alone_is_on_stdout_and_is_the_file(shell: Shell) -> None:
    code, document = shell.json(planted(4), "--output", "out")
    assert code == 0
    assert document == json.loads(Path("out/bisect.json").read_text())
    assert document["ending"] == "found"
    assert document["ends"]["half_percent"] == pytest.approx(-10, abs=3)
    assert all(step["how"] == "measured" and step["change"]["ci_percent"] for step in document["steps"])


def test_only_what_starts_kernels_says_that_it_will(shell: Shell) -> None:
    """Without that no board has to be there."""
    ends = ("-t", "linux", "--good", "t-c0", "--bad", "master", "--arch", "x86_64", "--restart")
    asked = (("--find", "build"), ("--symbol", "new_thing"), ("--find", "boot"), HACKBENCH)
    starts = []
    for words in asked:
        shell.run(planted(3), *ends, *words)
        starts.append(shell.starts)
    shell.run(planted(3), *ends[:-1], *HACKBENCH, "--log")
    assert [*starts, shell.starts] == [False, False, True, True, False]


def test_not_narrowed_down_is_exit_status_1(shell: Shell) -> None:
    world = planted(10)
    world.broken = lambda name: 8 <= int(name[1:]) <= 12
    code, document = shell.json(world)
    assert code == 1
    assert {c["subject"] for c in document["candidates"]} == {"c8", "c9", "c10", "c11", "c12", "c13"}
    code, out, _ = shell.range(World(), "--restart")
    assert code == 1
    assert "Not narrowed down" in out
    assert "good and bad do not" in out


def test_a_killed_one_goes_on_and_restart_forgets(shell: Shell) -> None:
    world = planted(7)
    world.kill_at = 12
    with pytest.raises(Killed):
        shell.range(world)
    shell.capsys.readouterr()
    code, log, _ = shell.range(planted(7), "--log")
    assert code == 0
    assert log.startswith("# bad: [")
    assert log.count("\ngit bisect ") >= 2
    code, document = shell.json(planted(7))
    assert (code, document["first_bad"]["subject"]) == (0, "c7")
    assert document["spent"]["resumed"] >= 1
    _, again = shell.json(planted(7), "--restart")
    assert again["spent"]["resumed"] == 0
    assert [s["commit"]["subject"] for s in again["steps"]] == [s["commit"]["subject"] for s in document["steps"]]
    _, whole = shell.json(planted(7))
    assert whole["spent"]["resumed"] == len(whole["steps"]), "a third time everything is known"


def test_another_question_does_not_take_the_notes_of_this_one(shell: Shell) -> None:
    shell.json(planted(7))
    code, document = shell.json(planted(7), "--metric", "context_switches")
    assert (code, document["first_bad"]["subject"]) == (0, "c7")
    assert document["spent"]["resumed"] == 0


def test_a_log_is_replayed(shell: Shell) -> None:
    shell.range(planted(7), "--output", "first")
    _, document = shell.json(planted(7), "--replay", "first/bisect.log")
    assert {step["how"] for step in document["steps"]} == {"told"}
    assert document["first_bad"]["subject"] == "c7"


def test_a_log_of_another_repository_is_told(shell: Shell) -> None:
    Path("other.log").write_text(f"git bisect start\ngit bisect good {'1' * 40}\n")
    code, _, err = shell.range(World(), "--replay", "other.log")
    assert code == 2
    assert "--replay: the log names a commit 111111111111 that is not in this repository" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-t", "linux", "--good", "nope", "--bad", "master", *HACKBENCH), "--good: no commit nope in linux"),
        (("-t", "linux", "--good", "t-c0", "--bad", "nope", *HACKBENCH), "--bad: no commit nope in linux"),
        (("-t", "linux", "--good", "t-c20", "--bad", "master", *HACKBENCH), "are the same commit"),
        (("-t", "linux", "--good", "master", "--bad", "t-c3", *HACKBENCH), "comes before good"),
        (("-t", "nowhere", "--good", "a", "--bad", "b", *HACKBENCH), "nowhere is no git repository"),
        (("-t", "debian:6.1", "--good", "a", "--bad", "b", *HACKBENCH), "debian:6.1 has no history here"),
        (("--good", "a", "--bad", "b", *HACKBENCH), "whose commits?"),
        (("-t", "linux", "--good", "t-c0", *HACKBENCH), "--good and --bad are missing"),
        (("--series", "wakeup-gran", "--good", "a", *HACKBENCH), "not both"),
        (("-t", "linux", "--good", "t-c0", "--bad", "master"), "which workload?"),
        (("-t", "linux", "--good", "t-c0", "--bad", "master", "--workload", "hack"), "did you mean 'hackbench'"),
        (
            ("-t", "linux", "--good", "t-c0", "--bad", "master", "--workload", "hackbench", "--case", "groups=9"),
            "one of: groups=1; groups=2; groups=4; groups=8; groups=16",
        ),
        (("-t", "linux", "--good", "t-c0", "--bad", "master", *HACKBENCH, "--metric", "tim"), "did you mean 'time'"),
        (
            ("-t", "linux", "--good", "t-c0", "--bad", "master", "--workload", "hackbench", "--metric", "wakeups"),
            "compared case by case",
        ),
        (("-t", "linux", "--good", "t-c0", "--bad", "master", "--log-pattern", "("), "no regular expression"),
        (
            ("-t", "linux", "--good", "t-c0", "--bad", "master", *HACKBENCH, "--accel", "tcg"),
            "x86_64-8 measures in real time",
        ),
        (
            ("-t", "linux", "--good", "t-c0", "--bad", "master", "--quick", "--profile", "precise"),
            "contradict each other",
        ),
        (("-t", "linux", "--good", "t-c0", "--bad", "master", *HACKBENCH, "--path", "x.c"), "touches these paths"),
        (("-t", "linux", "--good", "t-c0", "--bad", "master", *HACKBENCH, "--replay", "linux/HEAD"), "no log of git"),
    ],
)
def test_bad_input_is_told_before_anything_is_opened(shell: Shell, words: tuple[str, ...], said: str) -> None:
    code, _, err = shell.run(World(), *words)
    assert code == 2
    assert said in " ".join(err.split())
    assert shell.opened == 0


def test_a_shallow_clone_that_is_cut_between_the_ends_is_told(shell: Shell) -> None:
    source = f"file://{shell.place}/linux"
    clone = git.Repo.clone_from(source, shell.place / "shallow", depth=5)
    clone.git.fetch("--depth=1", "origin", "tag", "t-c0")
    code, _, err = shell.run(World(), "-t", "shallow", "--good", "t-c0", "--bad", "HEAD", *HACKBENCH)
    assert code == 2
    assert "is a shallow clone: its history ends between t-c0 and HEAD" in err
    assert "git fetch --unshallow" in err
    near = shell.run(planted(19), "-t", "shallow", "--good", "HEAD~3", "--bad", "HEAD", *HACKBENCH)
    assert near[0] == 0, near[2]
    assert '("c19")' in near[1]


def test_histories_without_anything_in_common_are_told(shell: Shell) -> None:
    other = make_repo(shell.place / "other", {"a": [], "b": ["a"]})
    git.Repo(shell.place / "linux").git.fetch(str(shell.place / "other"), "t-b:refs/tags/other")
    assert other
    code, _, err = shell.run(World(), "-t", "linux", "--good", "other", "--bad", "master", *HACKBENCH)
    assert code == 2
    assert "have no history in common" in err


MAIL = """\
From: A. Uthor <a@example.org>
Date: Tue, 14 Nov 2023 12:0{n}:00 +0000
Subject: [PATCH {n}/4] sched: part {n}

Text.

Signed-off-by: A. Uthor <a@example.org>
---
diff --git a/part{n}.c b/part{n}.c
new file mode 100644
--- /dev/null
+++ b/part{n}.c
@@ -0,0 +1 @@
+int part{n};
"""


def test_which_patch_of_a_series_did_it(shell: Shell) -> None:
    mails = [Path(f"{n}.patch") for n in range(1, 5)]
    for n, mail in enumerate(mails, 1):
        mail.write_text(MAIL.format(n=n))
    for culprit in range(1, 5):
        world = World(lambda name, c=culprit: 0.2 * (name.startswith("sched") and int(name[-1]) >= c))  # type: ignore[misc]
        code, out, err = shell.run(world, *mails, "-t", "linux@t-c20", *HACKBENCH, "--json", "--restart")
        assert code == 0, err
        document = json.loads(out)
        assert document["patch"] == [culprit, 4]
        assert document["first_bad"]["subject"] == f"sched: part {culprit}"
        assert document["commits"] == 4
        assert len(document["steps"]) == 2
    code, out, _ = shell.run(world, *mails, "-t", "linux@t-c20", *HACKBENCH)
    assert "First bad commit (patch 4 of 4)" in out
    refs = git.Repo(shell.place / "linux").git.for_each_ref("--format=%(refname)").split()
    assert all(ref.startswith(("refs/tags/t-", "refs/heads/")) for ref in refs)


def test_a_series_that_does_not_apply_is_said(shell: Shell) -> None:
    Path("a.patch").write_text("--- a/c3.c\n+++ b/c3.c\n@@ -1 +1 @@\n-int other;\n+int new;\n")
    code, _, err = shell.run(World(), "a.patch", "-t", "linux@t-c20", *HACKBENCH)
    assert code == 2
    assert "did not apply" in err


def test_help_says_what_there_is(shell: Shell) -> None:
    code, out, _ = shell.run(World(), "--help")
    assert code == 0
    for word in ("--first-parent", "--find", "--replay", "--restart", "Exit status: 0 found"):
        assert word in out
