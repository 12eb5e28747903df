# SPDX-License-Identifier: GPL-2.0-or-later
"""The verb, with a kernel that is built already and a QEMU that runs no guest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kpatch_ci.cli import verify_determinism as verb
from kpatch_ci.cli.main import main
from kpatch_ci.config.load import Config, Selection, load_config
from kpatch_ci.debian.apt import Archives
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.model.build import BuildResult, Tree
from kpatch_ci.model.machine import Cluster, Machine
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.pipeline import repeat, stages
from kpatch_ci.pipeline.engine import Node
from kpatch_ci.pipeline.inexact import mode_of
from kpatch_ci.pipeline.plan import plan
from kpatch_ci.pipeline.session import Session
from kpatch_ci.store.artifacts import ArtifactStore
from tests.fakes.qemu import FakeToolRoot

PROJECT = Path(__file__).resolve().parents[3]
MACHINE = Machine(
    name="two",
    description="d",
    arch="x86_64",
    qemu_machine="q35",
    cpu="qemu64",
    memory_mib=256,
    clusters=(Cluster("p", (0, 1)),),
    icount_shift=0,
)


@dataclass
class Bench:
    """One machine, hackbench, and a cache."""

    folder: Path
    build: BuildResult
    image: GuestImage
    config: Config
    scenario: str = "hackbench"
    boot: str = "well"
    jobs: int = 2

    def session(self) -> Session:
        tools = FakeToolRoot(self.folder, "trixie", "tools-1", {}, {"resume": self.scenario, "boot": self.boot})
        store = ArtifactStore(self.folder / "store")
        tree = Tree("t", "6.1.140", self.folder, "c", "tree-1", "o")
        return Session(
            self.config, self.folder, store, tools, Archives("m", None), tree, self.jobs, self.folder / "logs"
        )

    def run_nodes(self) -> list[Node]:
        s = self.session()
        made = stages.Stages(s, s.builder(), s.guests())
        return [n for n in plan(made, ()) if n.kind == "run"]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    artifact = tmp_path / "build"
    (artifact / "modules").mkdir(parents=True)
    (artifact / "image").write_bytes(b"kernel")
    (artifact / "modules/null_blk.ko").write_bytes(b"module")
    (artifact / "manifest.json").write_text(json.dumps({"meta": {"modules": ["null_blk.ko"]}}))
    build = BuildResult(
        status=Status.PASSED,
        arm="baseline",
        arch="x86_64",
        tree_id="t",
        key="k",
        seconds=1,
        objects=1,
        cached=False,
        release="6.1.140",
        image_digest="i",
        artifact=artifact,
    )
    packed = tmp_path / "image.cpio"
    packed.write_bytes(b"root" * 200)
    image = GuestImage("x86_64", packed, "image-1", {}, "key", packed, "preload-1")
    config = load_config(
        PROJECT / "pipeline.yaml", Selection(workloads=("hackbench",), arches=("x86_64",), seeds=1, profile="quick")
    )
    config = replace(config, machines=(MACHINE,))
    bench = Bench(tmp_path, build, image, config)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Session, "builder", lambda *_: SimpleNamespace(find=lambda _: build))
    monkeypatch.setattr(stages, "find_image", lambda *_: image)
    monkeypatch.setattr(verb, "chosen", lambda _: bench.config)
    monkeypatch.setattr(verb, "open_session", lambda config, **_: replace(bench.session(), config=config))
    return bench


@pytest.fixture
def verify(bench: Bench, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    def run(*arguments: str) -> tuple[int, Any]:
        code = main(["verify-determinism", *arguments])
        out = capsys.readouterr().out
        return code, json.loads(out) if "--json" in arguments else out

    return run


def test_all_alike_is_success_and_says_how_many(verify: Callable[..., tuple[int, Any]]) -> None:
    code, out = verify("--repeats", "4")
    assert code == 0
    assert "4 of 4 replicates identical" in out
    assert "groups=8" not in out
    row = next(line.split() for line in out.splitlines() if "hackbench" in line)
    assert row == ["x86_64", "baseline", "hackbench", "groups=4", "1.1", "4", "of", "4", "-"]


def test_a_counter_that_drifts_is_found_in_every_repeat(bench: Bench, verify: Callable[..., tuple[int, Any]]) -> None:
    bench.scenario = "drift"
    code, out = verify("--repeats", "3")
    assert code == 1
    assert "counters.delta.idle_ns" in out
    assert "virtual-time" in out


def test_every_second_repeat_comes_from_a_fresh_boot(bench: Bench, verify: Callable[..., tuple[int, Any]]) -> None:
    bench.scenario = "fresh"
    code, result = verify("--repeats", "5", "--json")
    assert code == 1
    (case,) = result["cases"]
    assert (case["alike"], case["mode"]) == (3, "virtual-time")
    assert [(o["repeat"], o["source"]) for o in case["odd"]] == [(2, "fresh boot"), (4, "fresh boot")]
    assert case["odd"][0]["differences"][0] == {"field": "sample context_switches", "usual": "1.0", "value": "2.0"}


def test_boots_are_compared_and_nothing_of_them_is_left(bench: Bench, verify: Callable[..., tuple[int, Any]]) -> None:
    _, result = verify("--json")
    (boot,) = result["boots"]
    assert (boot["identical"], boot["alike"], boot["repeats"]) == (True, 2, 2)
    assert list((bench.folder / "work").iterdir()) == []


def test_a_boot_with_other_memory_is_no_success(bench: Bench, verify: Callable[..., tuple[int, Any]]) -> None:
    bench.boot = "moody"
    code, result = verify("--repeats", "2", "--json")
    assert code == 1
    assert result["boots"][0]["first_difference"].startswith("repeat 2 (fresh boot): memory.sha256: ")
    assert result["cases"][0]["identical"]


def test_no_replicate_is_found_or_kept(bench: Bench, verify: Callable[..., tuple[int, Any]]) -> None:
    verify("--repeats", "2")
    assert not (bench.folder / "store/replicate").exists()
    bench.scenario = "drift"
    assert verify("--repeats", "2")[0] == 1


def test_a_workload_that_fails_every_time_is_no_success(bench: Bench, verify: Callable[..., tuple[int, Any]]) -> None:
    bench.scenario, bench.jobs = "loser", 1
    code, result = verify("--repeats", "6", "--json")
    assert code == 1
    assert (result["cases"][0]["mode"], result["cases"][0]["alike"]) == (None, 2)
    assert "exit status 1" in result["cases"][0]["failed"]


def test_all_cases_are_verified_when_asked(verify: Callable[..., tuple[int, Any]]) -> None:
    _, result = verify("--repeats", "2", "--all-cases", "--json")
    assert [c["case"] for c in result["cases"]] == ["groups=4", "groups=8"]


def test_the_load_is_there_meanwhile_and_ends_with_it(
    verify: Callable[..., tuple[int, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    real = repeat.verify

    @contextmanager
    def busy(loops: int) -> Iterator[None]:
        log.append(f"{loops} loops")
        yield
        log.append("ended")

    def watched(*arguments: Any, **options: Any) -> Any:
        log.append("verify")
        return real(*arguments, **options)

    monkeypatch.setattr(verb, "busy", busy)
    monkeypatch.setattr(verb, "overload", lambda: 3)
    monkeypatch.setattr(verb, "verify", watched)
    code, result = verify("--repeats", "2", "--load", "--json")
    assert (code, result["busy_loops"], log) == (0, 3, ["3 loops", "verify", "ended"])
    assert verify("--repeats", "2", "--json")[1]["busy_loops"] == 0
    assert log[3:] == ["verify"]


def test_what_differed_once_is_not_reused_by_a_run(bench: Bench, verify: Callable[..., tuple[int, Any]]) -> None:
    def values() -> dict[str, Any]:
        s = bench.session()
        made = stages.Stages(s, s.builder(), s.guests())
        boot = made.guests.boot(bench.build, bench.image, MACHINE, 1, s.logs)
        return {"build x86_64 baseline": bench.build, "image x86_64": bench.image, "boot x86_64 baseline seed 1": boot}

    def measured() -> Any:
        node = bench.run_nodes()[0]
        assert node.lookup is not None
        return node.lookup(values()) or node.work(values())

    before = [measured() for _ in range(2)]
    assert [(r.mode, r.cached) for r in before] == [(Mode.DETERMINISTIC, False), (Mode.DETERMINISTIC, True)]
    bench.scenario = "drift"
    verify("--repeats", "2")
    again = [measured() for _ in range(2)]
    assert [(r.mode, r.cached) for r in again] == [(Mode.VIRTUAL_TIME, False)] * 2
    s = bench.session()
    assert mode_of(s.store, s.tools, bench.image, MACHINE, "dd") is Mode.DETERMINISTIC
    newer = replace(s.tools, fingerprint="tools-2")
    assert mode_of(s.store, newer, bench.image, MACHINE, "hackbench") is Mode.DETERMINISTIC


def test_real_time_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["verify-determinism", "-c", str(PROJECT / "pipeline.yaml"), "--accel", "tcg", "--arch", "x86_64"]
    assert main(argv) == 2
    assert "x86_64-8 runs in real time (tcg): no two of its replicates are alike" in capsys.readouterr().err
