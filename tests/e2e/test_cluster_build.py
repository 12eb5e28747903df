# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel that a cluster's worker builds is the one of this machine to the byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import Command as Cli
from tests.e2e.dask_cluster import Cluster
from tests.e2e.hosts_run import Command, comparisons, project
from tests.e2e.sshclient import Client
from tests.e2e.test_hosts_build import ONE_BOOT, artifact, built, give_objects
from tests.e2e.unmeasured import unmeasured_cache

pytestmark = pytest.mark.e2e


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "processes") as made:
        made.start_scheduler()
        yield made


def test_a_worker_builds_what_this_machine_would(kpatch_ci: Cli, cluster: Cluster, tmp_path: Path) -> None:
    """It has the baseline's objects, as one that has built before; this machine has the baseline's kernel alone."""
    here: Any = kpatch_ci("run", "-c", project(tmp_path / "alone", ()), *ONE_BOOT).result
    worker = tmp_path / "worker"
    worker.mkdir()
    (worker / "tools").symlink_to(cache_root() / "tools")
    give_objects(here, worker)
    cluster.start_worker("w", worker, "slot=2,build=1,memory=8e9")
    cluster.wait_for(1)
    config = project(tmp_path / "clustered", ())
    config.write_text(f"{config.read_text()}\nengine: {cluster.engine}\nstore: file://{tmp_path}/store\n")
    cache = unmeasured_cache(here, tmp_path / "cache", ["baseline"])
    done = Command(Client(tmp_path / "home"), cache, tmp_path)("run", "-c", config, *ONE_BOOT)
    assert done.code == 0
    assert "build x86_64 wakeup-gran is built on worker w" in done.stderr
    assert comparisons(done.result) == comparisons(here)
    kernel = built(done.result, "patched")
    assert kernel["objects"] < 20, "from the objects that are there"
    for name in ("image", "vmlinux", "System.map", "config"):
        assert (artifact(cache, kernel) / name).read_bytes() == (artifact(cache_root(), kernel) / name).read_bytes()
    assert {one["name"].split()[0]: one["stages"] for one in done.result["hosts"]} == {"here": 0, "worker": 5}
    assert not (cache / "out").exists()
