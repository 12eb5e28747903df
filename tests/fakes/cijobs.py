# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of the job files in docs/ci, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

CI = Path(__file__).parents[2] / "docs" / "ci"
GITHUB, GITLAB, JENKINS = CI / "github-actions.yml", CI / "gitlab-ci.yml", CI / "Jenkinsfile"


def commands(job: Path) -> list[str]:
    """What a runner would execute, in order."""
    if job == JENKINS:
        return re.findall(r"^\s*sh '([^']+)'", job.read_text(), re.MULTILINE)
    data = yaml.safe_load(job.read_text())
    if job == GITHUB:
        return [step["run"] for one in data["jobs"].values() for step in one["steps"] if "run" in step]
    one = data["kernel-patches"]
    return [*one["before_script"], *one["script"], *one["after_script"]]
