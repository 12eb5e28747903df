# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci watch``: what is refused before anything is fetched."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import git
import pytest

from kpatch_ci.cli import watch
from kpatch_ci.cli.main import main
from kpatch_ci.config.load import load_config
from kpatch_ci.model.build import Tree
from kpatch_ci.model.result import RunResult
from kpatch_ci.model.series import Series
from kpatch_ci.model.status import Mode
from kpatch_ci.pipeline.engine import Observer
from kpatch_ci.pipeline.session import Session
from kpatch_ci.pipeline.watch import Changes
from kpatch_ci.series.uncommitted import WorkingTree


def test_a_tree_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "-t", str(tmp_path / "linux")]) == 2
    assert "no such directory" in capsys.readouterr().err


def test_series_of_the_pipeline_are_not_watched(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--series", "wakeup-gran"]) == 2
    assert "what is watched is a working tree" in capsys.readouterr().err


PROJECT = Path(__file__).parents[3]


class _Bench:
    """The verb's loop with a real working tree and configuration, and a run that only remembers what it was given."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.work = place / "linux"
        repo = git.Repo.init(self.work)
        (self.work / "kernel/sched").mkdir(parents=True)
        self.edit("int a;\n")
        repo.git.add("-A")
        repo.git.execute(["git", "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-q", "-m", "base"])
        ours = place / "ours"
        git.Repo.init(ours, bare=True)
        (ours / "objects/info/alternates").write_text(f"{self.work / '.git/objects'}\n")
        commit = repo.head.commit
        tree = Tree("linux", "6.1.1", ours, commit.hexsha, commit.tree.hexsha, "a test")
        config = load_config(PROJECT / "pipeline.yaml")
        session = cast(Session, SimpleNamespace(config=config, tree=tree))
        monkeypatch.setattr(watch, "run", self.run)
        monkeypatch.setattr(watch, "conclude", self.conclude)
        monkeypatch.setattr(watch, "replace", lambda value, **new: self.narrow(value, new))
        options = {"arch": (), "workload": ()}
        self.verb = watch._Watch(session, WorkingTree(self.work, ours, commit.hexsha), options, "run", place / "out")
        self.events: queue.Queue[str | None] = queue.Queue()
        self.changes = Changes(iter(self.events.get, None))
        self.rounds: list[tuple[str, ...]] = []
        self.concluded = 0
        self.script: list[Callable[[Observer], None]] = []

    def narrow(self, value: Any, new: dict[str, Any]) -> Any:
        return (
            SimpleNamespace(**{**vars(value), **new}) if isinstance(value, SimpleNamespace) else replace(value, **new)
        )

    def edit(self, text: str) -> None:
        (self.work / "kernel/sched/fair.c").write_text(text)

    def run(self, session: Session, series: Sequence[Series], observer: Observer, **_: Any) -> RunResult:
        self.rounds.append(tuple(path for one in series for path in one.paths))
        if not self.script:
            raise KeyboardInterrupt
        self.script.pop(0)(observer)
        return RunResult("run", "", 0.0, "quick", Mode.DETERMINISTIC, {}, {}, ())

    def conclude(self, result: RunResult, directory: Path, *, as_json: bool) -> int:
        self.concluded += 1
        return 0

    def change(self, text: str) -> None:
        self.edit(text)
        self.events.put("changed")


def test_the_base_is_measured_ahead_then_each_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _Bench(tmp_path, monkeypatch)
    bench.script = [lambda _: bench.change("int b;\n"), lambda _: bench.change("int c;\n")]
    with pytest.raises(KeyboardInterrupt):
        bench.verb.forever(bench.changes)
    assert bench.rounds == [(), ("kernel/sched/fair.c",), ("kernel/sched/fair.c",)]
    assert bench.concluded == 1, "the base alone has no verdict, and the last round was interrupted"


def test_a_round_that_is_overtaken_is_given_up_and_the_next_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = _Bench(tmp_path, monkeypatch)
    bench.edit("int b;\n")

    def overtaken(observer: Observer) -> None:
        bench.change("int c;\n")
        for _ in range(500):
            observer.tick()
            time.sleep(0.01)

    bench.script = [overtaken, lambda _: bench.change("int d;\n")]
    with pytest.raises(KeyboardInterrupt):
        bench.verb.forever(bench.changes)
    assert len(bench.rounds) == 3
    assert bench.concluded == 1, "the round that was overtaken has no verdict"
    assert "this round is given up" in capsys.readouterr().err
