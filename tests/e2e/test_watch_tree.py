# SPDX-License-Identifier: GPL-2.0-or-later
"""`watch` on a real kernel's working tree: an edit becomes a verdict, and the repository stays as it was."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import git
import pytest

from kpatch_ci.store.cache import cache_root
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.place import find_place
from kpatch_ci.store.history.query import Filter, list_runs
from tests.e2e.conftest import Command, arches

pytestmark = pytest.mark.e2e
ONE = ("--arch", "x86_64", "--workload", "dd", "--seeds", "2")


@pytest.fixture(scope="module")
def linux(tmp_path_factory: pytest.TempPathFactory, kpatch_ci: Command) -> Path:
    """A working tree of the cache's 6.1, which borrows its objects."""
    assert kpatch_ci("check", "--series", "wakeup-gran").code == 0
    (tree,) = (p for p in (cache_root() / "trees").glob("debian-6.1-*/tree.json"))
    place = tmp_path_factory.mktemp("watch") / "linux"
    repo = git.Repo.init(place)
    (place / ".git/objects/info/alternates").write_text(f"{tree.parent / 'objects'}\n")
    repo.git.reset("--hard", json.loads(tree.read_text())["commit"])
    return place


class _Said:
    """Lines of a running command, with a limit on how long to wait for one."""

    def __init__(self, stream: IO[str]) -> None:
        self._lines: queue.Queue[str] = queue.Queue()
        self.all: list[str] = []
        threading.Thread(target=self._read, args=[stream], daemon=True).start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(line)

    def wait_for(self, text: str, timeout: float) -> None:
        try:
            while True:
                self.all.append(self._lines.get(timeout=timeout))
                if text in self.all[-1]:
                    return
        except queue.Empty:
            pytest.fail(f"it never said {text!r}:\n{''.join(self.all)}")


@contextmanager
def watching(linux: Path, output: Path) -> Iterator[_Said]:
    argv = [sys.executable, "-m", "kpatch_ci", "watch", "-t", str(linux), *ONE, "--output", str(output)]
    argv += ["--format", "csv", "--history", str(output.parent / "history.sqlite3")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=output.parent) as verb:
        assert verb.stdout
        said = _Said(verb.stdout)
        try:
            yield said
            verb.send_signal(signal.SIGINT)
            assert verb.wait(60) == 130, "Ctrl-C is how it ends"
        finally:
            verb.kill()
            print("".join(said.all))  # noqa: T201 (shown by pytest when the test fails)


def test_each_edit_is_tested_and_a_broken_one_says_where(linux: Path, tmp_path: Path) -> None:
    source = linux / "kernel/sched/fair.c"
    text = source.read_text()
    index = (linux / ".git/index").read_bytes()
    with watching(linux, tmp_path / "out") as said:
        said.wait_for("waiting for changes", 1500)
        broken = text.replace(
            "unsigned long gran = sysctl_sched", "unsigned long gran = no_such_thing; sysctl_sched", 1
        )
        assert broken != text
        source.write_text(broken)
        said.wait_for("no_such_thing", 600)
        said.wait_for("waiting for changes", 600)
        source.write_text(text.replace("unsigned long gran = sysctl", "unsigned long gran = 2 * sysctl", 1))
        said.wait_for("waiting for changes", 900)
    part = arches(json.loads((tmp_path / "out/result.json").read_text()))["x86_64"]
    assert part["apply"]["changed_paths"] == ["kernel/sched/fair.c"]
    assert part["build"]["patched"]["status"] == "passed"
    (primary,) = (c for c in part["comparisons"] if c["primary"])
    assert len(primary["seeds"]) == 2
    assert (linux / ".git/index").read_bytes() == index
    assert (tmp_path / "out/samples.csv").read_text().count(",dd,") > 0
    runs = list_runs(Database(find_place(str(tmp_path / "history.sqlite3"))), Filter())
    assert [run.status for run in runs] == ["failed", "passed"], "each round with a verdict, and not the base alone"
    source.write_text(text)
