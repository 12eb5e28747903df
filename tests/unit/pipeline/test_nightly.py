# SPDX-License-Identifier: GPL-2.0-or-later
"""A night with a fake pipeline: items that fail, that are unchanged, that go on after a kill."""

from __future__ import annotations

import datetime
import multiprocessing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kpatch_ci import process
from kpatch_ci.config.nightly import Item
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.nightly import ItemOutcome, ItemState, Night, NightRun
from kpatch_ci.pipeline.nightly import Asked, Measured, Prepared, exit_status, hold_night, look_ahead
from kpatch_ci.store.nights import NightLog


def night_run(item: str, inputs: str, night: str = "20260101-020000", **changes: str) -> NightRun:
    """A good run of an item."""
    made = {"status": "passed", "mode": "deterministic", **changes}
    shared = {"profile": "quick", "tree": "debian:6.1", "release": "6.1.9", "commit": "c" * 40}
    return NightRun(f"run-of-{night}", item, night, inputs, "2026-01-01T02:00:00+00:00", seconds=1.0, **made, **shared)


@dataclass
class FakeWork:
    """``inputs`` by item; ``faults`` raise where they are named."""

    inputs: dict[str, str] = field(default_factory=dict)
    known: dict[str, NightRun] = field(default_factory=dict)
    faults: dict[str, BaseException] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    fetched: str = ""
    repeats: bool = True
    measured: list[str] = field(default_factory=list)

    def prepare(self, item: Item, night: Night) -> Prepared:
        if item.name in self.faults:
            raise self.faults[item.name]
        inputs = self.inputs.get(item.name, "i")
        return Prepared(inputs, self.repeats, "linux 6.1.9", lambda: self._measure(item, inputs, night))

    def _measure(self, item: Item, inputs: str, night: Night) -> Measured:
        self.measured.append(item.name)
        self.known[item.name] = night_run(item.name, inputs, night.name, status=self.statuses.get(item.name, "passed"))
        return Measured(f"run-{item.name}", self.statuses.get(item.name, "passed"), "results/x")

    def newer(self, item: Item) -> str:
        return self.fetched

    def last_good(self, item: Item) -> NightRun | None:
        return self.known.get(item.name)


def items(*names: str) -> tuple[Item, ...]:
    return tuple(Item(name, "debian:6.1") for name in names)


@pytest.fixture
def kept(tmp_path: Path) -> NightLog:
    return NightLog(tmp_path, tmp_path / "pipeline.yaml")


def hold(work: FakeWork, kept: NightLog, *names: str, force: bool = False) -> Night:
    return hold_night(Asked(items(*names), force), work, kept, lambda _: None)


def states(night: Night) -> dict[str, str]:
    return {one.name: str(one.state) for one in night.outcomes}


def finished(night: Night, kept: NightLog) -> None:
    kept.write(Night(night.name, night.started, night.items, night.outcomes, finished=True))


def test_what_is_unchanged_is_not_run_and_says_since_when(kept: NightLog) -> None:
    work = FakeWork(inputs={"a": "1", "b": "2"}, known={"a": night_run("a", "1"), "b": night_run("b", "old")})
    night = hold(work, kept, "a", "b")
    assert states(night) == {"a": "unchanged", "b": "ran"}
    assert work.measured == ["b"]
    assert night.outcomes[0].said == "unchanged since 20260101-020000, not run"
    assert night.outcomes[0].run == "run-of-20260101-020000"
    assert exit_status(night, news=False) == 0


def test_force_runs_it_all_the_same(kept: NightLog) -> None:
    work = FakeWork(known={"a": night_run("a", "i")})
    assert states(hold(work, kept, "a", force=True)) == {"a": "ran"}


@pytest.mark.parametrize(("repeats", "mode"), [(False, "deterministic"), (True, "virtual-time"), (True, "kvm")])
def test_only_deterministic_figures_stay_true(kept: NightLog, repeats: bool, mode: str) -> None:
    work = FakeWork(known={"a": night_run("a", "i", mode=mode)}, repeats=repeats)
    assert states(hold(work, kept, "a")) == {"a": "ran"}


def test_an_item_that_fails_costs_no_other(kept: NightLog) -> None:
    faults = {
        "gone": UserError("no such tree: /srv/linux", where="tree"),
        "machine": InfrastructureError("no space left on the disk that holds /x", hint="free some"),
        "full": OSError(28, "No space left on device", "/x/y"),
        "bug": KeyError("oops"),
    }
    work = FakeWork(faults=dict(faults))
    night = hold(work, kept, "gone", "a", "machine", "bug", "full", "b")
    assert states(night) == {
        "gone": "not done", "a": "ran", "machine": "not done", "bug": "not done", "full": "not done", "b": "ran",
    }  # fmt: skip
    said = {one.name: one.said for one in night.outcomes}
    assert "no such tree: /srv/linux" in said["gone"]
    assert "free some" in said["machine"]
    assert "no space left on the disk (/x/y)" in said["full"]
    assert "a bug in kpatch-ci: KeyError" in said["bug"]
    assert exit_status(night, news=False) == 3


def test_an_engine_that_ended_its_children_does_not_stop_the_next_item(kept: NightLog) -> None:
    class Ending(FakeWork):
        def prepare(self, item: Item, night: Night) -> Prepared:
            if item.name == "a":
                process.kill_all()
                raise InfrastructureError("QEMU is gone")
            assert process.run(["true"], timeout=10).ok
            return super().prepare(item, night)

    assert states(hold(Ending(), kept, "a", "b")) == {"a": "not done", "b": "ran"}


@pytest.mark.parametrize(
    ("status", "news", "code"), [("passed", False, 0), ("passed", True, 1), ("failed", False, 1), ("error", False, 3)]
)
def test_exit_status(kept: NightLog, status: str, news: bool, code: int) -> None:
    assert exit_status(hold(FakeWork(statuses={"a": status}), kept, "a"), news=news) == code


def test_a_known_failure_that_is_unchanged_is_quiet(kept: NightLog) -> None:
    night = hold(FakeWork(known={"a": night_run("a", "i", status="failed")}), kept, "a")
    assert exit_status(night, news=False) == 0


def test_a_killed_night_goes_on(kept: NightLog) -> None:
    work = FakeWork(faults={"b": KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        hold(work, kept, "a", "b", "c")
    first = kept.read()[-1]
    assert states(first) == {"a": "ran"}
    del work.faults["b"]
    night = hold(work, kept, "a", "b", "c")
    assert night.name == first.name
    assert work.measured == ["a", "b", "c"]
    assert states(night) == {"a": "ran", "b": "ran", "c": "ran"}


def test_what_was_recorded_just_before_the_kill_is_this_nights(kept: NightLog) -> None:
    work = FakeWork()
    night = hold(work, kept, "a")
    kept.write(Night(night.name, night.started, night.items))  # killed before the outcome was kept
    again = hold(work, kept, "a")
    assert again.name == night.name
    assert work.measured == ["a"]
    assert (again.outcomes[0].state, again.outcomes[0].said.split("; ")[1]) == (
        ItemState.RAN,
        "measured before the night was killed",
    )


def test_what_could_not_be_done_is_tried_again_when_the_night_goes_on(kept: NightLog) -> None:
    work = FakeWork(faults={"a": InfrastructureError("no network"), "b": KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        hold(work, kept, "a", "b")
    work.faults.clear()
    assert states(hold(work, kept, "a", "b")) == {"a": "ran", "b": "ran"}


def test_a_finished_night_or_yesterdays_or_another_lists_does_not_go_on(kept: NightLog) -> None:
    now = datetime.datetime(2026, 1, 2, 2, 0, tzinfo=datetime.UTC)
    one = Night("20260102-010000", "2026-01-02T01:00:00+00:00", ("a",))
    kept.write(one)
    assert kept.unfinished(("a",), now) == one
    assert kept.unfinished(("a", "b"), now) is None
    assert kept.unfinished(("a",), now + datetime.timedelta(days=1)) is None
    finished(one, kept)
    assert kept.unfinished(("a",), now) is None


def test_a_first_night_says_that_there_is_nothing_to_compare_with(kept: NightLog) -> None:
    assert "nothing to compare with" in hold(FakeWork(), kept, "a").outcomes[0].said


def hold_lock(cache: Path, pipeline: Path, held: object, done: object) -> None:
    with NightLog(cache, pipeline).alone():
        held.set()  # type: ignore[attr-defined]
        done.wait(30)  # type: ignore[attr-defined]


def test_two_nights_at_once_are_refused(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    held, done = context.Event(), context.Event()
    other = context.Process(target=hold_lock, args=(tmp_path, tmp_path / "p.yaml", held, done))
    other.start()
    try:
        assert held.wait(30)
        at_work = rf"a night is at work already \(process {other.pid}, since 20"
        with pytest.raises(InfrastructureError, match=at_work), NightLog(tmp_path, tmp_path / "p.yaml").alone():
            pass
        with NightLog(tmp_path, tmp_path / "another.yaml").alone():
            pass
    finally:
        done.set()
        other.join()
    with NightLog(tmp_path, tmp_path / "p.yaml").alone():  # and free again
        pass


def test_a_damaged_log_is_passed_over(kept: NightLog) -> None:
    good = hold(FakeWork(), kept, "a")
    for name, text in (("night-1.json", "{"), ("night-2.json", "[]"), ("night-3.json", '{"name": "x"}')):
        (kept.place / name).write_text(text)
    assert kept.read() == [good]


def test_a_dry_run_says_what_would_run_and_measures_nothing() -> None:
    work = FakeWork(
        known={"a": night_run("a", "i"), "b": night_run("b", "other")}, faults={"d": UserError("no such tree")}
    )
    found = [look_ahead(item, work, force=False) for item in items("a", "b", "c", "d")]
    assert [str(one.state) for one in found] == ["unchanged", "ran", "ran", "not done"]
    assert "not as in 20260101-020000" in found[1].said
    assert "its first night" in found[2].said
    work.fetched = "linux-source 6.1.200-1"
    assert look_ahead(items("a")[0], work, force=False) == ItemOutcome(
        "a", ItemState.RAN, said="after fetching linux-source 6.1.200-1"
    )
    assert work.measured == []
