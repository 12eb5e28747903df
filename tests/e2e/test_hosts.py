# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs on other machines: the same figures to the byte, whatever happens to the machines; and nothing is left there."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import Command as Cli
from tests.e2e.hosts_run import RUN, Command, comparisons, project
from tests.e2e.sshclient import Client
from tests.e2e.sshd import SshHost, host, install
from tests.e2e.unmeasured import unmeasured_cache

pytestmark = pytest.mark.e2e
QEMU = "qemu-system-x86_64"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def stack() -> Iterator[ExitStack]:
    install()
    with ExitStack() as made:
        yield made


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    return Client(tmp_path_factory.mktemp("client") / "home")


@pytest.fixture(scope="module")
def here(kpatch_ci: Cli, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Profile -> result of the run on this machine alone."""
    install()
    config = project(tmp_path_factory.mktemp("here") / "project", ())
    return {name: kpatch_ci("run", "-c", config, *RUN, "--profile", name).result for name in ("short", "long")}


@pytest.fixture(scope="module")
def hosts(stack: ExitStack, client: Client, tmp_path_factory: pytest.TempPathFactory, here: Any) -> list[SshHost]:
    """One on the loopback, one with an address of its own; both with tools and nothing else."""
    place, tools = tmp_path_factory.mktemp("hosts"), cache_root() / "tools"
    return [stack.enter_context(host(name, place, client, network=name == "b", tools=tools)) for name in "ab"]


@pytest.fixture
def fresh(client: Client, here: Any, tmp_path: Path) -> Callable[[], Command]:
    """Makes a command whose cache has never seen a figure of these kernels."""

    def make() -> Command:
        cache = unmeasured_cache(here["short"], tmp_path / f"cache{next(_numbers)}")
        return Command(client, cache, tmp_path)

    return make


def on(config: Path, names: str, profile: str) -> tuple[str | Path, ...]:
    return ("run", "-c", config, *RUN, "--profile", profile, "--on", names)


def traffic(result: Any) -> int:
    return sum(one["sent"] + one["received"] for one in result["hosts"])


def test_two_hosts_give_the_figures_of_this_machine_and_the_second_time_next_to_nothing_travels(
    fresh: Callable[[], Command], hosts: list[SshHost], here: Any, tmp_path: Path
) -> None:
    config = project(tmp_path / "project", hosts)
    first, second = (fresh()(*on(config, "a,b", "short")) for _ in range(2))
    for done in (first, second):
        assert comparisons(done.result) == comparisons(here["short"])
        assert {one["name"]: one["stages"] > 0 for one in done.result["hosts"]} == {
            "here": False,
            "a": True,
            "b": True,
        }
    assert traffic(second.result) < 1_000_000 < traffic(first.result)
    for one in hosts:
        one.wait_quiet()


@pytest.mark.parametrize("happens", ["dies", "is cut off"])
def test_a_host_that_is_lost_in_the_middle_loses_nothing(
    fresh: Callable[[], Command], hosts: list[SshHost], here: Any, tmp_path: Path, happens: str
) -> None:
    config = project(tmp_path / "project", hosts)
    victim = hosts[1]
    try:
        with fresh().begun(*on(config, "a,b", "long")) as running:
            running.hears("boot: ")
            victim.wait_for(QEMU)
            at = time.monotonic()
            victim.kill() if happens == "dies" else victim.cut()
            noticed = running.hears("b is lost")
            done = running.ends()
    finally:
        if happens == "dies":
            victim.start()
        else:
            victim.wait_quiet(seconds=60)  # though nobody could tell it
            victim.mend()
    assert noticed - at < (5 if happens == "dies" else 25)
    assert comparisons(done.result) == comparisons(here["long"])
    lost = {one["name"]: one["lost"] for one in done.result["hosts"]}
    assert lost["a"] == ""
    assert lost["b"]


def test_a_disk_that_fills_up_in_the_middle_is_a_host_that_is_lost(
    fresh: Callable[[], Command], client: Client, hosts: list[SshHost], here: Any, tmp_path: Path
) -> None:
    with host("small", tmp_path, client, size="1200m", tools=cache_root() / "tools") as small:
        config = project(tmp_path / "project", [hosts[0], small])
        with fresh().begun(*on(config, "a,small", "long")) as running:
            small.wait_for(QEMU)
            small.fill()
            running.hears("small is lost: .*[Nn]o space")
            done = running.ends()
        small.wait_quiet()
        assert comparisons(done.result) == comparisons(here["long"])
        refused = fresh()(*on(config, "a,small", "short"))
    assert refused.code == 3
    assert "small has 0.0 GB free" in refused.stderr


@pytest.mark.parametrize("signal", ["Ctrl-C", "SIGKILL"])
def test_whoever_goes_away_leaves_nothing_running_there(
    fresh: Callable[[], Command], hosts: list[SshHost], tmp_path: Path, signal: str
) -> None:
    config = project(tmp_path / "project", hosts)
    with fresh().begun(*on(config, "a,b", "long")) as running:
        for one in hosts:
            one.wait_for(QEMU)
        running.interrupt() if signal == "Ctrl-C" else running.running.kill()
        for one in hosts:
            one.wait_quiet(seconds=10)
        done = running.ends()
    assert done.code == (130 if signal == "Ctrl-C" else -9)


def test_two_hosts_are_found_to_be_as_this_machine(
    fresh: Callable[[], Command], hosts: list[SshHost], tmp_path: Path
) -> None:
    config = project(tmp_path / "project", hosts)
    verify = ("verify-determinism", "-c", config, "--profile", "short", *RUN[2:], "--hosts", "a,b", "--repeats", "4")
    result = fresh()(*verify).result
    assert result["identical"]
    assert [(one["name"], one["compared"], one["alike"]) for one in result["hosts"]] == [("a", 2, 2), ("b", 2, 2)]
    assert [(one["alike"], one["repeats"]) for one in (*result["boots"], *result["cases"])] == [(4, 4), (4, 4)]
    for one in hosts:
        one.wait_quiet()
