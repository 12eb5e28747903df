# SPDX-License-Identifier: GPL-2.0-or-later
"""A run that is killed at any instant resumes by running the same command, and ends with the same figures."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import Command, arches

pytestmark = pytest.mark.e2e
RUN = ("run", "--quick", "--series", "stack-workqueue", "--arch", "arm64", "--workload", "hackbench", "--json")
PATCHED = "arm64 stack-workqueue"


def figures(result: Any) -> Any:
    part = arches(result)["arm64"]
    return part["status"], [
        (c["case"], c["metric"], c["baseline"], c["patched"], c["p_value"]) for c in part["comparisons"]
    ]


def forget_the_patched_arm(result: Any) -> None:
    """Remove its kernel, and every snapshot and sample."""
    key = arches(result)["arm64"]["build"]["patched"]["key"]
    store = cache_root() / "store"
    shutil.rmtree(store / "build" / key[:2] / key)
    for kind in ("snapshot", "replicate"):
        shutil.rmtree(store / kind, ignore_errors=True)


def kill_after(line: str, seconds: float, output: Path) -> None:
    """Start the run and SIGKILL it ``seconds`` after it has said ``line``."""
    argv = [sys.executable, "-m", "kpatch_ci", *RUN, "--output", str(output)]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=output.parent) as run:
        assert run.stderr
        heard = []
        for said in run.stderr:
            heard.append(said)
            if line in said:
                time.sleep(seconds)
                os.kill(run.pid, signal.SIGKILL)
                break
        else:
            pytest.fail(f"it never said {line!r}:\n{''.join(heard)}")
        assert run.wait(60) == -signal.SIGKILL, "it had ended before it was killed"


def test_killed_in_each_stage_it_ends_with_the_same_figures(kpatch_ci: Command, tmp_path: Path) -> None:
    whole = kpatch_ci(*RUN, "--output", tmp_path / "whole").result
    forget_the_patched_arm(whole)
    kill_after(f"build {PATCHED} ...", 3, tmp_path / "in-build")
    kill_after(f"build {PATCHED}: ", 0.3, tmp_path / "in-boot")
    kill_after("boot: 6/6", 2, tmp_path / "in-measurement")
    resumed = kpatch_ci(*RUN, "--output", tmp_path / "resumed")
    assert figures(resumed.result) == figures(whole)
    assert "stack-workqueue ..." not in resumed.stderr, "the kernel was built again"
    left = [p for p in (cache_root() / "work").glob("*") if p.is_dir()]
    assert left == [], "what killed runs left half-made is swept away"
