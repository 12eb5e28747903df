# SPDX-License-Identifier: GPL-2.0-or-later
"""The main job on a real series: both architectures built, booted and measured with every workload."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import xmlschema

from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import PROJECT, Command, Done, arches

pytestmark = pytest.mark.e2e
QUICK = ("run", "--quick", "--series", "wakeup-gran", "--json")
CASES = {
    ("hackbench", "groups=4"), ("hackbench", "groups=8"),
    ("dbench", "fs=xfs,clients=4"), ("dbench", "fs=ext4,clients=4"),
    ("dd", "rw=read,bs=1M"), ("dd", "rw=write,bs=1M"),
    ("dd-dsync", "rw=write,bs=4k,fs=xfs,oflag=direct+dsync,latency_us=100"),
    ("dd-dsync", "rw=write,bs=4k,fs=ext4,oflag=direct+dsync,latency_us=100"),
}  # fmt: skip


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def first(kpatch_ci: Command, output: Path) -> Done:
    return kpatch_ci(*QUICK, "--output", output / "first")


def figures(result: Any) -> dict[tuple[str, ...], Any]:
    return {
        (arch, c["workload"], c["case"], c["metric"]): (c["seeds"], c["baseline"], c["patched"])
        for arch, part in arches(result).items()
        for c in part["comparisons"]
    }


def test_both_architectures_are_applied_built_booted_and_measured(first: Done) -> None:
    result = first.result
    assert result["schema"] == "kpatch-ci/result/1"
    assert first.code == (0 if result["status"] == "passed" else 1)
    assert set(arches(result)) == {"arm64", "x86_64"}
    for arch, part in arches(result).items():
        assert part["apply"]["method"] == "as-mailed", arch
        for arm in ("baseline", "patched"):
            assert part["build"][arm]["status"] == "passed", arch
            assert part["boot"][arm]["status"] == "passed", arch
            assert part["boot"][arm]["cpus"] == 8, arch
        assert {(c["workload"], c["case"]) for c in part["comparisons"] if c["case"] != "all"} == CASES
        for c in part["comparisons"]:
            assert c["mode"] == "deterministic"
            assert len(c["baseline"]) == len(c["patched"]) == len(c["seeds"]) == 3, c
            assert all(v > 0 for v in [*c["baseline"], *c["patched"]]) or c["metric"] == "migrations", c


def test_the_patch_is_proven_to_be_in_the_patched_image_only(first: Done) -> None:
    for part in arches(first.result).values():
        proofs = [p for p in part["proofs"] if p["name"] == "SCALE_WAKEUP_GRAN"]
        assert [(p["in_patched"], p["in_baseline"]) for p in proofs] == [(True, False)]


def test_a_patched_arm_compiles_only_what_the_patch_touches(first: Done) -> None:
    """Of some 850 (arm64) and 1,110 (x86_64). The baseline's count says nothing where its objects were there from before."""
    for part in arches(first.result).values():
        assert 0 < part["build"]["patched"]["objects"] < 50


def test_the_patch_lowers_hackbenchs_context_switches(first: Done) -> None:
    """By some 40 % at 4 groups; deterministic, so three boots show the direction."""
    for part in arches(first.result).values():
        found = {(c["case"], c["metric"]): c for c in part["comparisons"] if c["workload"] == "hackbench"}
        c = found["groups=4", "context_switches"]
        assert c["change_percent"] > 20
        assert all(p < b for b, p in zip(c["baseline"], c["patched"], strict=True))
        assert found["groups=8", "context_switches"]["change_percent"] > 10


def test_the_reports_are_there_and_junit_is_valid(first: Done, output: Path) -> None:
    assert first.stdout
    place = output / "first"
    for name in ("result.json", "junit.xml", "report.txt", "report.md", "report.html"):
        assert (place / name).stat().st_size > 500, name
    xmlschema.XMLSchema(str(PROJECT / "tests/data/junit/jenkins-junit.xsd")).validate(str(place / "junit.xml"))
    assert max(map(len, (place / "report.txt").read_text().splitlines())) <= 72
    assert any((place / "logs").rglob("build.log"))


def test_a_second_run_reuses_everything_and_says_so(kpatch_ci: Command, first: Done, output: Path) -> None:
    again = kpatch_ci(*QUICK, "--output", output / "again")
    assert again.code == first.code
    assert "everything was reused" in again.stderr
    assert figures(again.result) == figures(first.result)


def test_a_replicate_that_is_measured_again_gives_the_same_samples(
    kpatch_ci: Command, first: Done, output: Path
) -> None:
    """Deterministic: the samples are thrown away, the snapshots too for one architecture, and all come back alike."""
    shutil.rmtree(cache_root() / "store" / "replicate")
    again = kpatch_ci(*QUICK, "--arch", "arm64", "--workload", "hackbench", "--output", output / "measured")
    before = {k: v for k, v in figures(first.result).items() if k[0] == "arm64" and k[1] == "hackbench"}
    assert figures(again.result) == before
    assert "everything was reused" not in again.stderr


def test_a_damaged_cache_entry_is_said_and_made_again(kpatch_ci: Command, first: Done, output: Path) -> None:
    kernels = sorted((cache_root() / "store" / "build").glob("*/*/image"), key=os.path.getmtime)
    assert kernels
    arm64 = arches(first.result)["arm64"]["build"]["patched"]["key"]
    image = next(p for p in kernels if p.parent.name == arm64)
    data = bytearray(image.read_bytes())
    data[len(data) // 2] ^= 0xFF
    image.write_bytes(data)
    again = kpatch_ci(*QUICK, "--arch", "arm64", "--workload", "hackbench", "--output", output / "mended")
    assert "damaged" in again.stderr
    assert (
        arches(again.result)["arm64"]["build"]["patched"]["image_digest"]
        == arches(first.result)["arm64"]["build"]["patched"]["image_digest"]
    )
