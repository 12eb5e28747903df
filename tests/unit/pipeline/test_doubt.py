# SPDX-License-Identifier: GPL-2.0-or-later
"""What another machine says against a kernel is not believed at once; what it says for it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest

from kpatch_ci.guest.guests import RawRun
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline import stages, worker
from kpatch_ci.pipeline.calls import BootAnswer, BootCall, Limits
from kpatch_ci.pipeline.engine import Node
from kpatch_ci.pipeline.places import Doubted, Place
from kpatch_ci.pipeline.plan import plan
from kpatch_ci.store import atomic
from tests.unit.cli.test_verify_determinism_verb import MACHINE, Bench, bench  # noqa: F401 (a fixture)


@dataclass
class Liar:
    """A place whose guests do what it is told."""

    boots: BootResult | None = None
    runs: RawRun | None = None
    builds: BuildResult | None = None
    name: str = "big-one"

    def build(self, *_: Any) -> BuildResult:
        assert self.builds
        return self.builds

    def boot(self, *_: Any) -> BootResult:
        assert self.boots
        return self.boots

    def replicate(self, *_: Any, logs: Path, name: str) -> RawRun:
        assert self.runs
        return self.runs


def nodes(made: Bench) -> dict[str, Node]:
    s = made.session()
    return {node.kind: node for node in plan(stages.Stages(s, s.builder(), s.guests()), ())}


@pytest.fixture
def boot(bench: Bench) -> BootResult:  # noqa: F811
    s = bench.session()
    return s.guests().boot(bench.build, bench.image, MACHINE, 1, s.logs)


def elsewhere(node: Node, made: Bench, place: Liar, boot: BootResult | None = None) -> Any:
    assert node.elsewhere
    values = {"build x86_64 baseline": made.build, "image x86_64": made.image, "boot x86_64 baseline seed 1": boot}
    return node.elsewhere(values, cast("Place", place))


def test_a_boot_that_failed_elsewhere_is_doubted(bench: Bench, boot: BootResult) -> None:  # noqa: F811
    failed = replace(boot, status=Status.FAILED, reason="the guest panicked")
    with pytest.raises(Doubted, match="the guest panicked"):
        elsewhere(nodes(bench)["boot"], bench, Liar(boots=failed))
    assert elsewhere(nodes(bench)["boot"], bench, Liar(boots=boot)).status is Status.PASSED


def test_a_kernel_that_does_not_build_elsewhere_is_doubted(bench: Bench) -> None:  # noqa: F811
    node = nodes(bench)["build"]
    failed = replace(bench.build, status=Status.FAILED, reason="make failed with exit status 2")
    assert node.elsewhere
    with pytest.raises(Doubted, match="exit status 2"):
        node.elsewhere({}, cast("Place", Liar(builds=failed)))
    assert node.elsewhere({}, cast("Place", Liar(builds=bench.build))) == bench.build


@pytest.mark.parametrize(
    "run",
    [
        RawRun(Status.FAILED, "", 1.0, "the guest stopped"),
        RawRun(Status.ERROR, "", 1.0, "QEMU ended with exit status -9"),
        RawRun(Status.PASSED, '{"event": "end", "status": "ok"}\n', 1.0),
    ],
)
def test_a_replicate_without_figures_is_doubted(bench: Bench, boot: BootResult, run: RawRun) -> None:  # noqa: F811
    with pytest.raises(Doubted, match=r"the guest stopped|exit status -9|."):
        elsewhere(nodes(bench)["run"], bench, Liar(runs=run), boot)
    assert not (bench.folder / "store/replicate").exists()


def test_this_machine_is_believed(bench: Bench, boot: BootResult) -> None:  # noqa: F811
    bench.scenario = "failed"
    node = nodes(bench)["run"]
    values = {"build x86_64 baseline": bench.build, "image x86_64": bench.image, "boot x86_64 baseline seed 1": boot}
    assert node.work(values).reason == "run /usr/bin/dd: exit status 1"


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """No disk has room enough."""
    monkeypatch.setattr(atomic, "SPARE", 1 << 62)


def test_a_guest_on_a_full_disk_is_nobodys_failure(bench: Bench, full: None) -> None:  # noqa: F811
    bench.boot = "panic"
    values = {"build x86_64 baseline": bench.build, "image x86_64": bench.image}
    with pytest.raises(InfrastructureError, match="no space left"):
        nodes(bench)["boot"].work(values)


def test_nor_is_one_of_a_worker(bench: Bench, full: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(worker, "placed", lambda call, _: call)
    monkeypatch.setattr(worker.Worker, "missing", lambda *_: [])
    bench.boot = "panic"
    does = worker.Worker(bench.folder, bench.session().tools)
    call = BootCall(bench.build, bench.image, MACHINE, 1, Limits(60.0, 60.0, 60.0))
    with pytest.raises(InfrastructureError, match="no space left"):
        does.do(call)
    monkeypatch.setattr(atomic, "SPARE", 0)
    answer = does.do(call)
    assert isinstance(answer, BootAnswer)
    assert answer.boot.status is Status.FAILED
