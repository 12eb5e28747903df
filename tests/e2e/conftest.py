# SPDX-License-Identifier: GPL-2.0-or-later
"""Real kernels, real QEMU: the command line as a person types it, on the cache that is there (or an empty one)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.debian.apt import host_archives
from kpatch_ci.debian.toolroot import ToolRoot, make_toolroot
from kpatch_ci.host.install import ensure
from kpatch_ci.store.cache import cache_root

PROJECT = Path(__file__).resolve().parents[2]
MAILS = PROJECT / "tests" / "data" / "mails"


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended. ``result`` is the JSON document that it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def result(self) -> Any:
        assert self.stdout, f"no JSON on stdout; stderr was:\n{self.stderr}"
        return json.loads(self.stdout)


Command = Callable[..., Done]


@pytest.fixture(scope="session")
def kpatch_ci(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Run the command line in a directory of the test's own; what it says goes to the test's log."""
    place = tmp_path_factory.mktemp("e2e")

    def run(*arguments: str | Path, timeout: float = 3000) -> Done:
        argv = [sys.executable, "-m", "kpatch_ci", *map(str, arguments)]
        env = {**os.environ, "KPATCH_CI_HISTORY": str(place / "history.sqlite3")}  # not the one of whoever tests
        done = subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True, timeout=timeout, check=False)
        print(f"$ {' '.join(argv[2:])}\n{done.stderr}")  # noqa: T201 (shown by pytest when the test fails)
        return Done(done.returncode, done.stdout, done.stderr)

    return run


def own_toolroot() -> ToolRoot:
    """This machine's, made where it is not there.

    Not through a session, which marks the cache as in use for as long as the tests last: test_resume sees what a run that is alone
    sweeps away.
    """
    ensure(print)
    return make_toolroot(cache_root(), "trixie", host_archives())


def arches(result: Any) -> dict[str, Any]:
    """Architecture -> its part of a result of one series."""
    assert len(result["series"]) == 1
    return {part["arch"]: part for part in result["series"][0]["arches"]}
