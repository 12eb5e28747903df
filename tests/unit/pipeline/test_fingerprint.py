# SPDX-License-Identifier: GPL-2.0-or-later
"""The fingerprint does not depend on the order in which stages ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kpatch_ci.config.load import Selection, load_config
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.fingerprint import fingerprint

CONFIG = load_config(Path(__file__).resolve().parents[3] / "pipeline.yaml", Selection(arches=("arm64",)))


def boot(seed: int) -> tuple[str, Any]:
    argv = ("qemu", "-seed", str(seed))
    result = BootResult(Status.PASSED, "baseline", "arm64", "m", seed, "k" * 64, 1.0, False, qemu_argv=argv)
    return f"boot arm64 baseline seed {seed}", result


def test_the_command_line_is_that_of_the_lowest_seed_whichever_boot_ended_first() -> None:
    seeds = [3, 1, 10, 2]
    found = [fingerprint(CONFIG, dict(map(boot, order)), {}, {}) for order in (seeds, seeds[::-1], sorted(seeds))]
    assert found[0] == found[1] == found[2]
    assert found[0]["arches"]["arm64"]["qemu_argv"] == ["qemu", "-seed", "1"]
