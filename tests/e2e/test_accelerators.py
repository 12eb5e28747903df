# SPDX-License-Identifier: GPL-2.0-or-later
"""Real time: TCG everywhere, KVM where it really runs a guest; where it does not, the run says so and ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Command, Done, arches

pytestmark = pytest.mark.e2e
ACCELERATOR = {"tcg": "tcg,thread=single", "kvm": "kvm"}
"""x86_64's: docs/accelerators.md says why TCG has one thread there."""
RUN = ("run", "--quick", "--series", "wakeup-gran", "--arch", "x86_64", "--workload", "hackbench", "--seeds", "2")


def check(result: Any, mode: str) -> None:
    """Two seeds, each arm booted afresh for each, compared unpaired."""
    assert result["mode"] == mode
    assert result["fingerprint"]["arches"]["x86_64"]["accelerator"].startswith(f"{mode}, ")
    argv = result["fingerprint"]["arches"]["x86_64"]["qemu_argv"]
    assert argv[argv.index("-accel") + 1] == ACCELERATOR[mode]
    assert "-icount" not in argv
    part = arches(result)["x86_64"]
    for arm in ("baseline", "patched"):
        assert part["boot"][arm]["status"] == "passed"
        assert part["boot"][arm]["cpus"] == 8
        assert part["replicates"][arm]["cached"] == 0
    times = [c for c in part["comparisons"] if c["metric"] == "time"]
    assert [c["case"] for c in times] == ["all", "groups=4", "groups=8"]
    for c in times:
        assert (c["mode"], c["seeds"], c["verdict"]) == (mode, ["1.1", "2.1"], "inconclusive")
        assert all(0.05 < value < 120 for value in (*c["baseline"], *c["patched"]))
        assert c["p_value"] in (pytest.approx(1 / 3), pytest.approx(2 / 3), 1)
    # Times have three decimals, so two runs may be alike by chance; all of them never are.
    assert any(len(set(c[arm])) == 2 for c in times for arm in ("baseline", "patched"))
    assert "2 and 2 runs cannot give p below 0.33" in times[0]["reason"]


def check_end(done: Done, mode: str) -> None:
    """A guest that the emulator may have lost, and that was booted again, makes the run an error and is told; else all passed.

    One of a run's twelve guests at most: more would be no accident.
    """
    part = arches(done.result)["x86_64"]
    once = part["lost_once"]
    assert len(once) <= (mode == "tcg"), once
    assert (done.code, part["status"]) == ((3, "error") if once else (0, "passed")), part["reason"]
    for one in once:
        assert one["reason"] in done.stderr
        assert "not so when booted again" in part["reason"]


def test_tcg_in_real_time_measures_anew_each_time(kpatch_ci: Command, tmp_path: Path) -> None:
    results = []
    for name in ("one", "two"):
        done = kpatch_ci(*RUN, "--accel", "tcg", "--json", "--output", tmp_path / name)
        check_end(done, "tcg")
        check(done.result, "tcg")
        assert "x86_64-8: tcg, real time: one guest at a time, nothing measured is kept or reused" in done.stderr
        stages = {s["stage"]: s for s in done.result["stages"]}
        measured = stages["run x86_64 wakeup-gran hackbench groups=4"]
        assert "0 of 2 reused, 2 measured; in real time nothing is kept or reused" in measured["why"]
        results.append(done.result)
    figures = [[c["baseline"] for c in arches(r)["x86_64"]["comparisons"] if c["metric"] == "time"] for r in results]
    assert figures[0] != figures[1]


def test_kvm_is_used_where_it_runs_a_guest_and_refused_where_not(kpatch_ci: Command, tmp_path: Path) -> None:
    """Never skipped: one of the two must be seen."""
    done = kpatch_ci(*RUN, "--accel", "kvm", "--json", "--output", tmp_path / "out")
    if "KVM cannot be used here: " in done.stderr:
        assert (done.code, done.stdout) == (3, "")
        assert "--accel tcg (real time, emulated)" in done.stderr
        assert not (tmp_path / "out/result.json").exists()
    else:
        check_end(done, "kvm")
        check(done.result, "kvm")


def test_kvm_is_refused_for_another_architecture_before_anything_is_done(kpatch_ci: Command, tmp_path: Path) -> None:
    done = kpatch_ci("run", "--profile", "fixed", "--accel", "kvm", "--output", tmp_path / "out", timeout=60)
    assert done.code == 2
    assert "`--arch x86_64` to leave it out" in done.stderr
    assert not (tmp_path / "out").exists()
