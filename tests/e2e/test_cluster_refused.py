# SPDX-License-Identifier: GPL-2.0-or-later
"""Clusters and stores that cannot be used: each is named, with what is wrong, before the first stage."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import Command
from tests.e2e.dask_cluster import PROJECT, Cluster, free_port
from tests.e2e.test_cluster import WHAT, cluster, pipeline

pytestmark = pytest.mark.e2e
cluster_fixture = cluster


def refused(kpatch_ci: Command, *options: str | Path) -> str:
    """What a run that must not begin says; its exit status is that of a machine's fault."""
    done = kpatch_ci("run", *WHAT, *options, timeout=300)
    assert done.code == 3, done.stderr
    assert "stages:" not in done.stderr
    return done.stderr


def with_tools(place: Path, change: str = "") -> Path:
    """A worker's cache whose tool root is the one that is there, or says that a package is of another version."""
    (place / "tools").mkdir(parents=True)
    for root in (cache_root() / "tools").glob("trixie-*"):
        if not (root / "packages.json").exists():
            continue
        mine = place / "tools" / root.name
        mine.mkdir()
        for name in ("usr", "etc", "bin", "sbin", "lib", "lib64"):
            if (root / name).exists():
                (mine / name).symlink_to(root / name)
        packages = json.loads((root / "packages.json").read_text())
        if change in packages:
            packages[change] = "1:1.0"
        (mine / "packages.json").write_text(json.dumps(packages))
    return place


def test_a_scheduler_that_does_not_answer(kpatch_ci: Command) -> None:
    port = free_port()
    said = refused(kpatch_ci, "--engine", f"dask://127.0.0.1:{port}")
    assert f"no dask scheduler answers at dask://127.0.0.1:{port}: " in said
    assert "is `dask scheduler` running there" in said


def test_what_listens_there_is_no_scheduler(kpatch_ci: Command, tmp_path: Path) -> None:
    with Cluster(tmp_path) as other:
        other.start_scheduler()
        other.start_worker("a", with_tools(tmp_path / "cache"))
        other.wait_for(1)
        address = next(
            w
            for w in (tmp_path / "scheduler.log").read_text().split()
            if w.startswith("tcp://") and str(other.port) not in w
        )
        said = refused(kpatch_ci, "--engine", address.replace("tcp", "dask"))
        assert f"no dask scheduler answers at {address.replace('tcp', 'dask')}: " in said


def test_a_scheduler_without_workers(kpatch_ci: Command, cluster: Cluster) -> None:
    said = refused(kpatch_ci, "--engine", cluster.engine)
    assert f"the dask scheduler at {cluster.engine} has no worker" in said


def test_every_worker_that_is_unlike_is_named(kpatch_ci: Command, cluster: Cluster, tmp_path: Path) -> None:
    """Of another version, with another tool root, with none, and without kpatch-ci: one is good, and that is not enough."""
    other = tmp_path / "other"
    shutil.copytree(PROJECT / "kpatch_ci", other / "kpatch_ci")
    with (other / "kpatch_ci" / "workloads" / "dd.py").open("a") as stream:
        stream.write("# another version\n")
    (tmp_path / "empty").mkdir()
    good = with_tools(tmp_path / "good")
    cluster.start_worker("good", good)
    cluster.start_worker("old", good, PYTHONPATH=str(other))
    cluster.start_worker("qemu", with_tools(tmp_path / "newer", change="qemu-system-arm"))
    cluster.start_worker("bare", tmp_path / "empty")
    cluster.wait_for(4)
    path = pipeline(tmp_path, f"engine: {cluster.engine}\nstore: file://{tmp_path}/store")
    said = refused(kpatch_ci, "-c", path)
    lines = {
        line.split()[1]: line
        for line in said.replace(f"{cluster.engine}: ", "\n").splitlines()
        if line.startswith("worker ")
    }
    assert sorted(lines) == ["bare", "old", "qemu"]
    assert "its kpatch-ci is of another version" in lines["old"]
    assert "its tool root differs: qemu-system-arm is 1:1.0, here 1:10" in lines["qemu"]
    assert f"has no tool root of Debian trixie below {tmp_path}/empty" in lines["bare"]
    assert not list((tmp_path / "store").glob("probe-*"))


def test_a_worker_that_has_no_kpatch_ci(kpatch_ci: Command, cluster: Cluster, tmp_path: Path) -> None:
    other = tmp_path / "other/kpatch_ci/__init__.py"  # hides the one that is installed with the tests
    other.parent.mkdir(parents=True)
    other.write_text("raise ImportError('kpatch_ci is not installed')\n")
    cluster.start_worker("bare", tmp_path, PYTHONPATH=str(tmp_path / "other"))
    cluster.wait_for(1)
    said = refused(kpatch_ci, "--engine", cluster.engine)
    assert "worker bare (tcp://127.0.0.1:" in said
    assert "has no such kpatch-ci: " in said


def test_a_worker_with_another_cache_and_no_store_between(kpatch_ci: Command, cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_worker("far", with_tools(tmp_path / "far"))
    cluster.wait_for(1)
    said = refused(kpatch_ci, "--engine", cluster.engine)
    assert f"its store {tmp_path}/far/store is not this machine's, and no `store:` is named" in said


def test_stores_that_cannot_be_reached_or_written(kpatch_ci: Command, cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    port = free_port()
    for url, why in (
        (f"file://{tmp_path}/file/x", "cannot write: .*Not a directory"),
        (f"sftp://ci@127.0.0.1:{port}/x", "cannot write: .*Unable to connect"),
    ):
        place = tmp_path / f"of-{url.partition(':')[0]}"
        place.mkdir()
        said = refused(kpatch_ci, "-c", pipeline(place, f"engine: {cluster.engine}\nstore: {url}"))
        assert re.search(f"store {url}: {why}", said), said


def test_a_cluster_that_a_deployer_of_dask_starts_does_the_work(kpatch_ci: Command, tmp_path: Path) -> None:
    """The local one, whose workers share this cache. It is stopped at the end."""
    options = "{n_workers: 1, threads_per_worker: 2, dashboard_address: null}"
    path = pipeline(tmp_path, f"engine: {{dask: {{cluster: dask.distributed.LocalCluster, options: {options}}}}}")
    done = kpatch_ci("bench", "-c", path, "--arch", "arm64", "--workload", "hackbench", "--seeds", "1", "--quick")
    assert done.code == 0, done.stderr
    assert "cluster dask.distributed.LocalCluster: 1 workers, 2 slots" in done.stderr
