# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that are built on another machine: the ones of this machine to the byte, whatever happens to it meanwhile."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import Command as Cli
from tests.e2e.conftest import arches
from tests.e2e.hosts_run import RUN, Command, comparisons, project
from tests.e2e.sshclient import Client
from tests.e2e.sshd import SshHost, host, install
from tests.e2e.unmeasured import unmeasured_cache

pytestmark = pytest.mark.e2e
COMPILING = "vmlinux modules"
"""On the command line of the make that builds the kernel."""
ONE_BOOT = (*RUN, "--profile", "short", "--seeds", "1")
_numbers = itertools.count()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    return Client(tmp_path_factory.mktemp("client") / "home")


@pytest.fixture(scope="module")
def here(kpatch_ci: Cli, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Result of the run on this machine alone."""
    install()
    config = project(tmp_path_factory.mktemp("here") / "project", ())
    return kpatch_ci("run", "-c", config, *ONE_BOOT).result


def built(result: Any, arm: str) -> Any:
    return arches(result)["x86_64"]["build"][arm]


def artifact(cache: Path, build: Any) -> Path:
    return ArtifactStore(cache / "store").place("build", build["key"])


def give_objects(result: Any, cache: Path) -> None:
    """The baseline's working tree and objects, as whoever has built it has them."""
    build = built(result, "baseline")
    source = f"src/{build['tree_id'][:16]}"
    kernel = (artifact(cache_root(), build) / "vmlinux").read_bytes()
    like = [p.parent for p in (cache_root() / "out").glob("x86_64-*/vmlinux") if p.read_bytes() == kernel]
    assert like, "the baseline's objects are not in the cache: build it once with an empty one"
    for name, links in ((source, ["-l"]), *((f"out/{one.name}", list[str]()) for one in like)):
        (cache / name).parent.mkdir(parents=True, exist_ok=True)
        where = ["-T", str(cache_root() / name), str(cache / name)]
        if subprocess.run(["cp", "-a", *links, *where], check=False).returncode:  # noqa: S607 (another disk)
            shutil.rmtree(cache / name, ignore_errors=True)
            subprocess.run(["cp", "-a", *where], check=True)  # noqa: S607


@pytest.fixture(scope="module")
def builder(client: Client, tmp_path_factory: pytest.TempPathFactory, here: Any) -> Iterator[SshHost]:
    """A host that has built the baseline, and nothing else."""
    tools = cache_root() / "tools"
    with host("b", tmp_path_factory.mktemp("hosts"), client, tools=tools) as made:
        give_objects(here, made.work)
        yield made


@pytest.fixture
def fresh(client: Client, here: Any, tmp_path: Path) -> Callable[[], Command]:
    """Makes a command whose cache has the baseline's kernel, no objects, and no patched kernel."""

    def make() -> Command:
        return Command(client, unmeasured_cache(here, tmp_path / f"cache{next(_numbers)}", ["baseline"]), tmp_path)

    return make


@pytest.fixture
def words(builder: SshHost, tmp_path: Path) -> tuple[str | Path, ...]:
    config = project(tmp_path / "project", [builder], uses=("build", "guest"), slots=2)
    return ("run", "-c", config, *ONE_BOOT, "--on", "b")


def test_after_ctrl_c_no_compiler_is_left_there(
    fresh: Callable[[], Command], builder: SshHost, words: tuple[str | Path, ...]
) -> None:
    with fresh().begun(*words) as running:
        builder.wait_for(COMPILING)
        running.interrupt()
        builder.wait_quiet(seconds=10)
        done = running.ends()
    assert done.code == 130


def test_a_host_that_dies_in_a_build_costs_time_and_nothing_else(
    fresh: Callable[[], Command], builder: SshHost, words: tuple[str | Path, ...], here: Any
) -> None:
    command = fresh()
    give_objects(here, command.cache)
    try:
        with command.begun(*words) as running:
            builder.wait_for(COMPILING)
            builder.kill()
            running.hears("b is lost")
            done = running.ends()
    finally:
        builder.start()
    assert comparisons(done.result) == comparisons(here)
    assert built(done.result, "patched")["image_digest"] == built(here, "patched")["image_digest"]
    uses = {one["name"]: one for one in done.result["hosts"]}
    assert uses["here"]["stages"] > 0
    assert uses["b"]["lost"]


def test_a_kernel_that_was_built_there_is_the_one_of_this_machine(
    fresh: Callable[[], Command], builder: SshHost, words: tuple[str | Path, ...], here: Any
) -> None:
    command = fresh()
    first = command(*words).result
    mine, theirs = built(here, "patched"), built(first, "patched")
    assert (theirs["cached"], theirs["key"]) == (False, mine["key"])
    for name in ("image", "vmlinux", "System.map", "config"):
        there, alone = (artifact(cache, mine) / name for cache in (command.cache, cache_root()))
        assert there.read_bytes() == alone.read_bytes(), name
    same = ("objects", "image_digest", "warnings", "new_warnings", "compiled", "differing", "proofs")
    assert {name: theirs.get(name) for name in same} == {name: mine.get(name) for name in same}
    assert comparisons(first) == comparisons(here)
    stages = {one["name"]: one["stages"] for one in first["hosts"]}
    assert (stages["here"], stages["b"] > 0) == (0, True)
    assert not (command.cache / "out").exists()
    again = command(*words).result
    assert sum(one["sent"] + one["received"] for one in again["hosts"]) < 50_000
    other = fresh()(*words).result
    assert comparisons(other) == comparisons(here)
    assert built(other, "patched")["cached"], "the host has it still"
    builder.wait_quiet()
