# SPDX-License-Identifier: GPL-2.0-or-later
"""``engine:`` and ``store:`` of pipeline.yaml, and --engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.config.cluster import EngineSettings
from kpatch_ci.config.load import Selection, load_config
from kpatch_ci.model.errors import UserError
from kpatch_ci.store.depot import Depot
from tests.unit.config.test_config import pipeline as pipeline_fixture

pipeline = pipeline_fixture


def loaded(pipeline: Path, more: str, engine: str | None = None) -> EngineSettings | None:
    with pipeline.open("a") as stream:
        stream.write(more)
    return load_config(pipeline, Selection(engine=engine)).engine


def test_without_an_engine_all_is_done_here(pipeline: Path) -> None:
    assert loaded(pipeline, "") is None
    assert loaded(pipeline, "engine: local\n") is None


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("dask://head:8786", "tcp://head:8786", "dask://head:8786"),
        ("dask+tls://10.0.0.1:8786", "tls://10.0.0.1:8786", "dask+tls://10.0.0.1:8786"),
        ("dask://[::1]:8786", "tcp://[::1]:8786", "dask://[::1]:8786"),
    ],
)
def test_a_scheduler_that_runs_already(pipeline: Path, text: str, address: str, shown: str) -> None:
    found = loaded(pipeline, f'engine: "{text}"\n')
    assert found == EngineSettings(address=address)
    assert found.shown == shown


def test_a_cluster_that_is_started_and_a_store_with_options(pipeline: Path) -> None:
    """Lists stay lists: asyncssh takes a tuple of keys for something else."""
    text = """
engine: {dask: {cluster: dask_jobqueue.SLURMCluster, options: {cores: 16, memory: 64GB, more: [[a], {b: [c]}]}, scale: 4}}
store: {url: s3://kpatch/ci, options: {endpoint_url: http://s3.lan, list: [1]}}
"""
    depot = Depot("s3://kpatch/ci", {"endpoint_url": "http://s3.lan", "list": [1]})
    found = loaded(pipeline, text)
    options = {"cores": 16, "memory": "64GB", "more": [["a"], {"b": ["c"]}]}
    assert found == EngineSettings(deployer="dask_jobqueue.SLURMCluster", options=options, scale=4, depot=depot)
    assert found.shown == "dask_jobqueue.SLURMCluster"


def test_the_command_line_names_another_engine_and_the_store_stays(pipeline: Path) -> None:
    found = loaded(pipeline, "engine: dask://a:1\nstore: file:///srv/x\n", engine="dask://b:2")
    assert found == EngineSettings(address="tcp://b:2", depot=Depot("file:///srv/x"))
    assert load_config(pipeline, Selection(engine="local")).engine is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("engine: dask://head", r":\d+: no engine 'dask://head' \(local, dask://HOST:PORT"),
        ("engine: dask://head:99999", r":\d+: no engine 'dask://head:99999'"),
        ("engine: slurm", r":\d+: no engine 'slurm'"),
        ("engine: {dask: {cluster: SLURMCluster}}", r":\d+: no deployer 'SLURMCluster' \(did you mean dask_jobqueue.SLURMCluster\?"),
        ("engine: {dask: {cluster: os.system}}", r":\d+: no deployer 'os.system' \(one of dask.distributed.LocalCluster"),
        ("store: nfs://x/y", r":\d+: no store at nfs://x/y \(file:///DIRECTORY"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_told_with_its_line_and_what_would_be_right(
    pipeline: Path, text: str, what: str
) -> None:
    with pytest.raises(UserError, match=what):
        loaded(pipeline, f"{text}\n")


def test_an_engine_of_the_command_line_is_told_by_its_option(pipeline: Path) -> None:
    with pytest.raises(UserError, match=r"--engine: no engine 'dask:/x'"):
        loaded(pipeline, "", engine="dask:/x")
