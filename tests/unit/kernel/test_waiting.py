# SPDX-License-Identifier: GPL-2.0-or-later
"""Whoever waits for what another process is at, a build for minutes, stops waiting when all is being ended (Ctrl-C)."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kpatch_ci import process
from kpatch_ci.kernel.build import BuildRequest
from kpatch_ci.kernel.checkout import checkout, checkout_patched, source_place
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.build import Tree
from kpatch_ci.model.errors import InfrastructureError
from tests.unit.kernel.conftest import Lab


@contextmanager
def somebody_else_holds(path: Path) -> Iterator[None]:
    """Its lock, through another open file, as another process would."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def stopped_while(work: Callable[[], object]) -> str:
    """What it raises when all is ended while it waits."""
    said: list[str] = []

    def waiting() -> None:
        try:
            work()
        except InfrastructureError as error:
            said.append(error.what)

    thread = threading.Thread(target=waiting, daemon=True)
    thread.start()
    thread.join(0.5)
    assert thread.is_alive(), "it does not wait"
    process.kill_all()
    try:
        thread.join(5)
    finally:
        process.go_on()
    assert not thread.is_alive(), "it waits on"
    return said[0]


@pytest.fixture
def tree(lab: Lab) -> Tree:
    tree_id = lab.tree({"Makefile": "", "lib/a.c": "fn a\n"})
    return Tree("t", "6.1.9", Path(lab.repo.git_dir), "c", tree_id, "o")


def test_a_build_that_another_process_is_at(lab: Lab, tree: Tree, tmp_path: Path) -> None:
    request = BuildRequest("baseline", ARCHES["x86_64"], tree, tree.tree_id, {})
    with somebody_else_holds(lab.builder._output(request)):
        assert stopped_while(lambda: lab.builder.build(request, tmp_path)) == "stopping"


def test_a_working_tree_that_another_process_makes(lab: Lab, tree: Tree, tmp_path: Path) -> None:
    with somebody_else_holds(source_place(tmp_path, tree.tree_id)):
        assert stopped_while(lambda: checkout(tmp_path, tree)) == "stopping"
    patched = lab.tree({"lib/a.c": "fn b\n"})
    with somebody_else_holds(source_place(tmp_path, patched, patched=True)):
        assert stopped_while(lambda: checkout_patched(tmp_path, tree, patched)) == "stopping"
