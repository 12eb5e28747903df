# SPDX-License-Identifier: GPL-2.0-or-later
"""The verb, with pools that were measured nowhere; and measuring, with kernels that are built already and a QEMU that runs no guest."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kpatch_ci.cli import calibrate as verb
from kpatch_ci.cli.main import main
from kpatch_ci.config.load import Config, Selection, load_config
from kpatch_ci.debian.apt import Archives
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.kernel.build import BuildRequest
from kpatch_ci.model.build import BuildResult, Tree
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.series import ApplyResult, Series
from kpatch_ci.model.status import Status
from kpatch_ci.model.workload import Seed
from kpatch_ci.pipeline import stages
from kpatch_ci.pipeline.calibrate import LAYOUT, WAKEUP, Pools, calibration_series, measure, work_arm
from kpatch_ci.pipeline.session import Session
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.workloads import make_case
from tests.fakes.pools import MACHINE, PLAN, pools
from tests.fakes.progress import Silent
from tests.fakes.qemu import FakeToolRoot

PROJECT = Path(__file__).resolve().parents[3]
Result = tuple[int, Any]


@pytest.fixture
def config() -> Config:
    found = load_config(PROJECT / "pipeline.yaml", Selection(workloads=("hackbench",), arches=("x86_64",), seeds=1))
    return replace(
        found, machines=(MACHINE,), workloads=(replace(PLAN, cases=(make_case("hackbench", {"groups": 1}),)),)
    )


def built(folder: Path, arm: str) -> BuildResult:
    """A kernel of its own for each arm."""
    artifact = folder / "build" / arm
    (artifact / "modules").mkdir(parents=True, exist_ok=True)
    (artifact / "image").write_bytes(arm.encode())
    (artifact / "manifest.json").write_text(json.dumps({"meta": {"modules": []}}))
    return BuildResult(
        status=Status.PASSED,
        arm=arm,
        arch="x86_64",
        tree_id=arm,
        key=arm,
        seconds=1,
        objects=1,
        cached=True,
        release="6.1.140",
        image_digest=arm,
        kernel_digest=arm,
        artifact=artifact,
    )


@pytest.fixture
def session(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    def find(request: BuildRequest) -> BuildResult:
        return built(tmp_path, request.arm)

    def apply(series: Series, *_: object, **__: object) -> ApplyResult:
        return ApplyResult(Status.PASSED, None, series.name, ())

    packed = tmp_path / "image.cpio"
    packed.write_bytes(b"root" * 200)
    image = GuestImage("x86_64", packed, "image-1", {}, "key", packed, "preload-1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Session, "builder", lambda *_: SimpleNamespace(find=find))
    monkeypatch.setattr(stages, "find_image", lambda *_: image)
    monkeypatch.setattr(stages, "apply_series", apply)
    tools = FakeToolRoot(tmp_path, "trixie", "tools-1", {}, {"resume": "wakeups"})
    tree = Tree("debian:6.1", "6.1.140", tmp_path, "c", "tree-1", "o")
    store = ArtifactStore(tmp_path / "store")
    return Session(config, tmp_path, store, tools, Archives("m", None), tree, 2, tmp_path / "logs")


def measured(session: Session, boots: int) -> Pools:
    series = calibration_series(session.config.patches)
    (found,) = measure(session, series, Silent, [Seed(boot, 1) for boot in range(1, boots + 1)], (0.5, 5.0))
    return found


def test_every_arm_is_measured_under_every_seed_and_the_steps_follow_from_the_probe(session: Session) -> None:
    found = measured(session, 3)
    keys = {("hackbench", "groups=1", Seed(boot, 1)) for boot in (1, 2, 3)}
    assert set(found.plain) == set(found.layout) == keys
    # The fake is a percent slower for each 100 steps, and spreads by 0.1 percent.
    assert found.probe == {"hackbench": pytest.approx(10, abs=0.4)}
    half, five = found.slowed["hackbench"]
    assert (half.level_percent, five.level_percent) == (0.5, 5.0)
    assert (half.steps, five.steps) == pytest.approx((50, 500), rel=0.05)
    assert set(five.arm) == keys
    assert all(r.status is Status.PASSED for r in five.arm.values())
    ratios = [five.arm[key].samples["time"] / found.plain[key].samples["time"] for key in keys]
    assert ratios == pytest.approx([1.05] * 3, abs=0.005)
    again = measured(session, 3)
    assert all(r.cached for r in (*again.plain.values(), *again.slowed["hackbench"][0].arm.values()))
    assert again.slowed["hackbench"][0].arm.keys() == half.arm.keys()


def test_work_that_slows_nothing_sets_no_level(session: Session) -> None:
    deaf = replace(session, tools=FakeToolRoot(session.cache, "trixie", "tools-1", {}, {"resume": "deaf-to-work"}))
    with pytest.raises(
        InfrastructureError, match=r"two: 1000 steps of work in each wakeup slow hackbench by -?0\.\d+ % only"
    ):
        measured(deaf, 3)


def test_a_kernel_that_does_not_go_with_the_tree_says_so(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(series: Series, *_: object, **__: object) -> ApplyResult:
        return ApplyResult(Status.FAILED, None, None, (), reason="hunk 1 of kernel/sched/core.c")

    monkeypatch.setattr(stages, "apply_series", refuse)
    with pytest.raises(UserError, match=r"tree debian:6.1: calibration-layout does not apply: hunk 1"):
        measured(session, 3)


def test_our_two_series_are_there_and_an_arm_sets_the_work(config: Config) -> None:
    layout, wakeup = calibration_series(config.patches)
    assert (layout.name, wakeup.name) == (LAYOUT, WAKEUP)
    arm = work_arm(37)
    assert (arm.kernel, arm.label) == (WAKEUP, f"{WAKEUP}(work=37)")
    assert arm.off.sysctls == (("kernel/sched_wakeup_work", "37"),)
    assert wakeup.adds.sysctls == ("kernel/sched_wakeup_work",)


@pytest.fixture
def calibrate(
    session: Session, config: Config, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    plain = replace(config, workloads=(PLAN,))

    def run(found: Pools, *arguments: str) -> Result:
        def made(
            _: Session, __: object, ___: object, seeds: Sequence[Seed], levels: Sequence[float]
        ) -> tuple[Pools, ...]:
            assert seeds == tuple(Seed(boot, 1) for boot in range(1, 41))
            assert list(levels) == ([1.0, 3.5] if "--level" in arguments else [0.5, 1.0, 2.0, 5.0])
            return (found,)

        monkeypatch.setattr(verb, "narrowed", lambda *_, **__: plain)
        monkeypatch.setattr(verb, "open_session", lambda config, **_: replace(session, config=config))
        monkeypatch.setattr(verb, "measure", made)
        code = main(["calibrate", "--trials", "20", *arguments])
        out = capsys.readouterr().out
        return code, json.loads(out) if "--json" in arguments else out

    return run


def test_targets_that_are_met_are_success_and_all_is_kept(calibrate: Callable[..., Result], tmp_path: Path) -> None:
    code, out = calibrate(pools(40), "--output", str(tmp_path / "out"))
    assert code == 0
    assert sum(line.endswith(" met") for line in out.splitlines()) == 3
    assert "MISSED" not in out
    assert "x86_64 (two): 20 trials of 10 seeds, drawn from pools of 40" in out
    kept = json.loads((tmp_path / "out/calibration.json").read_text())
    assert (kept["schema"], kept["met"], kept["tree"]["release"]) == ("kpatch-ci/calibration/1", True, "6.1.140")
    (machine,) = kept["machines"]
    assert set(machine["samples"]) == {"A", "A'", *(f"hackbench: {n} steps" for n in (50, 100, 200, 500))}
    assert set(machine["samples"]["A"]["hackbench"]["groups=1"]) == {f"{boot}.1" for boot in range(1, 41)}
    one = next(level for level in machine["levels"] if level["level_percent"] == 1)
    assert one["effect"]["change_percent"] == pytest.approx(-1, abs=0.3)
    assert [row["seeds"] for row in one["power"]] == [5, 10, 12, 20]


def test_a_target_that_is_missed_is_exit_code_1_and_named(calibrate: Callable[..., Result]) -> None:
    code, out = calibrate(pools(40, spread=3))
    assert code == 1
    missed = [line for line in out.splitlines() if "MISSED" in line]
    assert "hackbench: a slow-down of 1 % found in 95 % of trials of 10 seeds" in missed[-1]
    assert " of 20: " in missed[-1]


def test_an_effect_of_layout_is_said(calibrate: Callable[..., Result]) -> None:
    code, out = calibrate(pools(40, layout=3), "--json", "--level", "3.5", "--level", "1")
    assert code == 1
    (machine,) = out["machines"]
    assert machine["layout_effect"][0]["verdict"] == "regressed"
    assert [target["met"] for target in machine["targets"]] == [False, True, True]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--series", "wakeup-gran"), "calibrate has its own series"),
        (("--pool", "8"), "a trial of 10 seeds: from 2 to --pool, which is 8"),
        (("--seeds", "1"), "a trial of 1 seeds: from 2"),
        (("--accel", "tcg", "--arch", "x86_64"), "runs in real time"),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", "-c", str(PROJECT / "pipeline.yaml"), *arguments]) == 2
    assert said in capsys.readouterr().err
