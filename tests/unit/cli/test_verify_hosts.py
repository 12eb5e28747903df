# SPDX-License-Identifier: GPL-2.0-or-later
"""``verify-determinism --hosts``: machines that are alike, one that counts otherwise, one that boots otherwise, one that is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.cli import verify_determinism as verb
from kpatch_ci.cli.main import main
from kpatch_ci.config.load import Config
from kpatch_ci.guest.guests import Guests
from kpatch_ci.model.hosts import Host, Login
from kpatch_ci.pipeline.calls import (
    Answer,
    BootAnswer,
    BootCall,
    Call,
    Limits,
    Ref,
    ReplicateAnswer,
    ReplicateCall,
    stripped_boot,
    text_of,
)
from kpatch_ci.pipeline.farplace import FarPlace, Provide, is_there
from kpatch_ci.pipeline.places import GUEST_KINDS, PlaceLost, with_memory
from kpatch_ci.pipeline.session import Session
from kpatch_ci.store.artifacts import Artifact
from tests.unit.cli.test_verify_determinism_verb import PROJECT, Bench, bench  # noqa: F401 (a fixture)

Verify = Callable[..., tuple[int, Any]]


@dataclass
class Twin:
    """A machine with a cache of its own that does what it is called for; ``altered`` has the last word on what a guest said."""

    bench: Bench
    cache: Path
    altered: Callable[[str], str] = str
    boots: str = "well"
    lives: int = 1000
    calls: list[Call] = field(default_factory=list)
    lost: str = ""
    moved: tuple[int, int] = (0, 0)

    def do(self, call: Call, provide: Provide = is_there) -> Answer:
        if len(self.calls) >= self.lives:
            self.lost = "the connection broke"
            raise PlaceLost(self.lost)
        self.calls.append(call)
        there = replace(self.bench, folder=self.cache, boot=self.boots)
        guests: Guests = there.session().guests()
        build, image, logs = self.bench.build, self.bench.image, self.cache / "logs"
        if isinstance(call, BootCall):
            assert call.memory, "memories are compared"
            boot = with_memory(guests.boot(build, image, call.machine, call.boot_seed, logs), call.machine)
            return BootAnswer(stripped_boot(boot), text_of(boot.console))
        assert isinstance(call, ReplicateCall)
        run = guests.replicate(call.boot, build, image, call.machine, call.job, logs=logs, name="x")
        return ReplicateAnswer(replace(run, text=self.altered(run.text)), "")

    def stop(self) -> None:
        """Nothing is left at work."""

    def close(self) -> None:
        """Nothing to leave."""

    def fetch(self, ref: Ref) -> Artifact:
        raise AssertionError("verification builds here")


@dataclass
class Machines:
    """Hosts by name, as the session opens them."""

    bench: Bench
    twins: dict[str, Twin] = field(default_factory=dict)
    opened: list[Config] = field(default_factory=list)

    def add(self, name: str, **how: Any) -> Twin:
        self.twins[name] = Twin(self.bench, self.bench.folder / f"on-{name}", **how)
        self.bench.config = replace(
            self.bench.config, hosts=(*self.bench.config.hosts, Host(name, Login(f"{name}.example")))
        )
        return self.twins[name]

    def open(self, config: Config) -> Session:
        self.opened.append(config)
        limits = Limits(60.0, 60.0, 60.0)
        places = tuple(FarPlace(h.name, 1, GUEST_KINDS, self.twins[h.name], limits) for h in config.hosts)
        return replace(self.bench.session(), config=config, places=places)


@pytest.fixture
def machines(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Machines:  # noqa: F811
    made = Machines(bench)
    monkeypatch.setattr(verb, "open_session", lambda config, **_: made.open(config))
    return made


@pytest.fixture
def verify(capsys: pytest.CaptureFixture[str]) -> Verify:
    def run(*arguments: str) -> tuple[int, Any]:
        code = main(["verify-determinism", *arguments])
        out = capsys.readouterr().out
        return code, json.loads(out) if "--json" in arguments else out

    return run


def test_hosts_that_are_alike_are_said_to_be(machines: Machines, verify: Verify) -> None:
    a, b = machines.add("a"), machines.add("b")
    code, result = verify("--hosts", "a,b", "--repeats", "8", "--json")
    assert code == 0
    assert result["hosts"] == [
        {"name": name, "compared": 3, "alike": 3, "first": "", "identical": True} for name in ("a", "b")
    ]
    assert [len(one.calls) for one in (a, b)] == [3, 3], "a boot and every fourth repeat each"
    (boot,) = result["boots"]
    assert (boot["alike"], boot["repeats"]) == (4, 4)
    (case,) = result["cases"]
    assert (case["alike"], case["repeats"]) == (8, 8)


def test_a_machine_that_boots_no_guests_is_refused(machines: Machines, verify: Verify) -> None:
    machines.add("a")
    host = replace(machines.bench.config.hosts[0], uses=frozenset({"build"}))
    machines.bench.config = replace(machines.bench.config, hosts=(host,))
    assert verify("--hosts", "a", "--repeats", "8")[0] == 2
    assert machines.opened == []


def test_the_first_counter_that_differs_is_named_with_its_host(machines: Machines, verify: Verify) -> None:
    machines.add("a")
    machines.add("b", altered=lambda text: text.replace('"context_switches": 1', '"context_switches": 7'))
    code, result = verify("--hosts", "a,b", "--repeats", "8", "--json")
    assert code == 1
    a, b = result["hosts"]
    assert a["identical"]
    assert (b["compared"], b["alike"]) == (3, 1)
    assert b["first"] == (
        "run x86_64 baseline hackbench groups=4 seed 1.1: sample context_switches: 7.0 there, 1.0 here"
    )
    (case,) = result["cases"]
    assert [(odd["repeat"], odd["source"]) for odd in case["odd"]] == [(4, "host b"), (8, "host b")]
    assert case["mode"] == "virtual-time", "one counterexample is enough"


def test_a_person_reads_which_host_differs(machines: Machines, verify: Verify) -> None:
    machines.add("a")
    machines.add("b", altered=lambda text: text.replace('"migrations": 0', '"migrations": 9'))
    _, out = verify("--hosts", "a,b", "--repeats", "4")
    assert "a: all 2 boots and replicates as on this machine" in out
    assert "b DIFFERS: 1 of 2 boots and replicates as on this machine; first run x86_64 baseline hackbench" in out
    assert "sample migrations: 9.0 there, 0.0 here" in out


def test_a_host_whose_guests_memory_is_another_is_no_success(machines: Machines, verify: Verify) -> None:
    machines.add("a", boots="moody")
    code, result = verify("--hosts", "a", "--repeats", "3", "--json")
    assert code == 1
    assert result["hosts"][0]["first"].startswith("boot x86_64 baseline seed 1: memory.sha256: ")
    assert result["cases"][0]["identical"]


def test_a_host_that_is_lost_is_no_success_and_nobody_else_does_its_part(machines: Machines, verify: Verify) -> None:
    a, b = machines.add("a"), machines.add("b", lives=1)
    code, result = verify("--hosts", "a,b", "--repeats", "8", "--json")
    assert code == 1
    assert result["cases"][0]["failed"] == "repeat 4 skipped: its host was lost"
    assert [one["compared"] for one in result["hosts"]] == [3, 1]
    assert (len(a.calls), len(b.calls)) == (3, 1)


def test_without_hosts_none_is_used(machines: Machines, verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def chosen(options: dict[str, Any]) -> Config:
        asked.append(options["on"])
        return machines.bench.config

    monkeypatch.setattr(verb, "chosen", chosen)
    verify("--repeats", "2")
    verify("--hosts", " a, b ", "--repeats", "4")
    assert asked == [("here",), ("a", "b", "here")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--hosts", "a", "--repeats", "2"), "2 repeats do not go round this machine's two boots and 1 hosts"),
        (("--on", "a"), "here it is --hosts"),
    ],
)
def test_what_makes_no_sense_is_refused(
    machines: Machines, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    machines.add("a")
    assert main(["verify-determinism", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_an_unknown_host_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify-determinism", "-c", str(PROJECT / "pipeline.yaml"), "--hosts", "nobody"]) == 2
    assert "nobody" in capsys.readouterr().err
