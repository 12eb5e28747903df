# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of docs/ci as they stand in the job files, one after another, in a clone of this repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import git
import pytest

from tests.e2e.conftest import PROJECT
from tests.fakes.cijobs import GITHUB, GITLAB, JENKINS, commands

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ci") / "project"
    git.Repo.clone_from(str(PROJECT), place).close()
    return place


@pytest.mark.parametrize("job", [GITHUB, GITLAB, JENKINS])
def test_a_jobs_commands_do_what_they_are_there_for(job: Path, clone: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    for command in commands(job):
        environment = {**os.environ, "CI": "true", "GITHUB_STEP_SUMMARY": str(summary)}
        if "apt-get" in command:
            continue  # prepares a bare container, which this machine is not
        if " clean " in command:  # not the cache that other tests go on with
            environment["KPATCH_CI_CACHE"] = str(tmp_path / "cache")
        done = subprocess.run(
            ["/bin/bash", "-eo", "pipefail", "-c", command],
            cwd=clone, env=environment, capture_output=True, text=True, check=False, timeout=2400,
        )  # fmt: skip
        assert done.returncode in ((0, 1) if " run " in command else (0,)), f"{command}\n{done.stdout}\n{done.stderr}"
    assert (clone / "results/ci/junit.xml").stat().st_size > 1000
    assert (clone / "results/ci/report.md").read_text().count("wakeup-gran") > 1
    if job == GITHUB:
        assert summary.read_text() == (clone / "results/ci/report.md").read_text()
