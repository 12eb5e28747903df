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
from kpatch_ci.config.load import Selection, load_config
from kpatch_ci.model.build import Tree
from kpatch_ci.model.errors import UserErrors
from kpatch_ci.model.machine import Accel
from kpatch_ci.model.result import RunResult, SeriesResult
from kpatch_ci.model.series import Series
from kpatch_ci.model.status import Mode
from kpatch_ci.pipeline.each import Checks
from kpatch_ci.pipeline.engine import Observer
from kpatch_ci.pipeline.session import Session
from kpatch_ci.pipeline.watch import Changes
from kpatch_ci.series.uncommitted import WorkingTree
from kpatch_ci.store.history.place import find_place


def test_a_tree_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "-t", str(tmp_path / "linux")]) == 2
    assert "no such directory" in capsys.readouterr().err


def test_series_of_the_pipeline_are_not_watched(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--series", "wakeup-gran"]) == 2
    assert "what is watched is a working tree" in capsys.readouterr().err


def test_json_is_one_document_so_one_round(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--json"]) == 2
    assert "give --once with it" in capsys.readouterr().err


PROJECT = Path(__file__).parents[3]


class _Bench:
    """The verb's loop with a real working tree and configuration, and a run that only remembers what it was given."""

    def __init__(
        self, place: Path, monkeypatch: pytest.MonkeyPatch, how: watch._How | None = None, **given: Any
    ) -> None:
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
        chosen = Selection(profile=given["profile"]) if given.get("profile") else Selection()
        config = load_config(PROJECT / "pipeline.yaml", chosen)
        session = cast(Session, SimpleNamespace(config=config, tree=tree))
        monkeypatch.setattr(watch, "run", self.run)
        monkeypatch.setattr(watch, "conclude", self.conclude)
        monkeypatch.setattr(watch, "replace", lambda value, **new: self.narrow(value, new))
        options = {"arch": (), "workload": (), "profile": None, "accel": None, **given}
        self.verb = watch._Watch(
            session, WorkingTree(self.work, ours, commit.hexsha), options, place / "out", how or watch._How()
        )
        self.events: queue.Queue[str | None] = queue.Queue()
        self.changes = Changes(iter(self.events.get, None))
        self.rounds: list[tuple[str, ...]] = []
        self.machines: list[list[str]] = []
        self.names: list[str] = []
        self.checks: list[Checks] = []
        self.concluded = 0
        self.how: dict[str, Any] = {}
        self.script: list[Callable[[Observer], None]] = []

    def narrow(self, value: Any, new: dict[str, Any]) -> Any:
        return (
            SimpleNamespace(**{**vars(value), **new}) if isinstance(value, SimpleNamespace) else replace(value, **new)
        )

    def edit(self, text: str, path: str = "kernel/sched/fair.c") -> None:
        (self.work / path).parent.mkdir(parents=True, exist_ok=True)
        (self.work / path).write_text(text)

    def once(self) -> int | None:
        self.script = [lambda _: None]
        return self.verb.round(self.verb.tree.snapshot(), None)

    def run(self, session: Session, series: Sequence[Series], observer: Observer, **how: Any) -> RunResult:
        self.rounds.append(tuple(path for one in series for path in one.paths))
        self.machines.append([machine.name for machine in session.config.machines])
        self.names.append(how["run_id"])
        self.checks.append(how["checks"])
        if not self.script:
            raise KeyboardInterrupt
        self.script.pop(0)(observer)
        found = tuple(SeriesResult(one.name, one.title, "", ()) for one in series)
        return RunResult("run", "", 0.0, "quick", Mode.DETERMINISTIC, {}, {}, found)

    def conclude(self, result: RunResult, directory: Path, **how: Any) -> int:
        self.concluded += 1
        self.how = how
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


def test_a_round_has_the_formats_checks_and_history_that_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = find_place(str(tmp_path / "h.db"))
    how = watch._How(exports=("csv",), history=place, checks=Checks(w1=True), as_json=True)
    bench = _Bench(tmp_path, monkeypatch, how)
    assert bench.once() == 0
    assert bench.how == {"as_json": True, "exports": ("csv",), "history": None}, "the base alone is no run to record"
    bench.edit("int b;\n")
    assert bench.once() == 0
    assert bench.how == {"as_json": True, "exports": ("csv",), "history": place}
    assert bench.checks == [Checks(w1=True)] * 2


def test_each_round_is_a_run_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["20260101-020000", "20260101-020100"])
    monkeypatch.setattr(watch, "new_run_id", lambda _: next(names))
    bench = _Bench(tmp_path, monkeypatch)
    bench.edit("int b;\n")
    bench.once()
    bench.once()
    assert bench.names == ["20260101-020000", "20260101-020100"]


def test_a_machine_that_the_paths_pick_and_the_accelerator_cannot_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machines of `profile: fixed` can; those that `select:` names for the governor scale frequencies."""
    bench = _Bench(tmp_path, monkeypatch, accel="tcg")
    bench.edit("int b;\n", "kernel/sched/cpufreq_schedutil.c")
    config = load_config(PROJECT / "pipeline.yaml", Selection(profile="fixed", accel=Accel.TCG))
    bench.verb = replace(
        bench.verb, session=cast(Session, SimpleNamespace(config=config, tree=bench.verb.session.tree))
    )
    with pytest.raises(UserErrors, match="arm64-6\\+2 scales frequencies, which is emulated in virtual time only"):
        bench.once()
    assert bench.rounds == []


def test_the_machines_of_a_profile_that_is_named_win_over_the_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, profile, machines in (
        ("a", None, ["arm64-6+2", "x86_64-8-percpu-dvfs"]),
        ("b", "fixed", ["arm64-6+2-fixed", "x86_64-8"]),
    ):
        (tmp_path / place).mkdir()
        with monkeypatch.context() as patched:
            bench = _Bench(tmp_path / place, patched, profile=profile)
            bench.edit("int b;\n", "kernel/sched/cpufreq_schedutil.c")
            bench.once()
            assert bench.machines == [machines]


def test_what_is_part_of_no_kernel_is_not_built_and_one_round_says_so_in_its_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = _Bench(tmp_path, monkeypatch)
    bench.edit("words\n", "Documentation/a.rst")
    assert bench.once() == 0
    assert (bench.rounds, bench.concluded) == ([], 1)
    assert bench.verb.round(bench.verb.tree.snapshot(), bench.changes) is None
    assert bench.concluded == 1, "a watch that goes on has nothing to report"
