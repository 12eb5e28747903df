# SPDX-License-Identifier: GPL-2.0-or-later
"""The job files of docs/ci: against their services' schemas, and every command in them against our command line."""

from __future__ import annotations

import importlib
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import tree_sitter
import tree_sitter_groovy

from kpatch_ci.cli.main import VERBS
from tests.fakes.cijobs import GITHUB, GITLAB, JENKINS, commands

JOBS = (GITHUB, GITLAB, JENKINS)


def schema_says(job: Path, *schema: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", *schema, str(job)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("job", "schema", "key"),
    [
        (GITHUB, ["vendor.github-workflows"], "runs-on"),
        (GITLAB, ["vendor.gitlab-ci", "--data-transform", "gitlab-ci"], "script"),
    ],
)
def test_the_services_schema_accepts_the_job_and_refuses_a_broken_one(
    job: Path, schema: list[str], key: str, tmp_path: Path
) -> None:
    done = schema_says(job, *schema)
    assert done.returncode == 0, done.stdout
    broken = tmp_path / job.name
    broken.write_text(job.read_text().replace(f"{key}:", f"{key}s:", 1))
    assert schema_says(broken, *schema).returncode == 1


def test_the_jenkinsfile_is_groovy() -> None:
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_groovy.language()))
    source = JENKINS.read_bytes()
    assert not parser.parse(source).root_node.has_error
    assert parser.parse(source.replace(b"}", b"", 1)).root_node.has_error, "or else this could not fail"


@pytest.mark.parametrize("job", JOBS)
def test_a_job_runs_the_pipeline_in_limited_time(job: Path) -> None:
    assert "./kpatch-ci run --quick --budget 30m --output results/ci" in commands(job)


@pytest.mark.parametrize("job", JOBS)
def test_bash_and_our_command_line_know_every_command(job: Path) -> None:
    for command in commands(job):
        assert subprocess.run(["/bin/bash", "-n", "-c", command], check=False, timeout=60).returncode == 0, command
        if command.startswith("./kpatch-ci "):
            _, verb, *arguments = shlex.split(command)
            known = importlib.import_module(VERBS[verb].module).command
            assert isinstance(known, click.Command)
            known.make_context(verb, arguments)
