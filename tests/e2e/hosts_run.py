# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs on hosts as a person types them: a project with ``hosts:``, the command in the background, and what it says meanwhile."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.conftest import PROJECT, Done
from tests.e2e.sshclient import Client
from tests.e2e.sshd import SshHost

PROFILES = """\
  short:
    seeds: {boots: 3, runs: 2}
    workloads: {hackbench: [{groups: 1, loops: 20}]}
  long:
    seeds: {boots: 3, runs: 2}
    workloads: {hackbench: [{groups: 4, loops: 20}]}
"""
RUN = ("--series", "wakeup-gran", "--arch", "x86_64", "--workload", "hackbench", "--json")


def project(
    place: Path,
    hosts: Iterable[SshHost],
    *,
    jump: str | None = None,
    uses: Sequence[str] = ("guest",),
    slots: int = 1,
) -> Path:
    """This project's files, with two small profiles, and hosts, reached through ``jump`` and for ``uses``; its pipeline file."""
    place.mkdir()
    for name in ("patches", "kconfigs", "qemu"):
        (place / name).symlink_to(PROJECT / name)
    entries = {
        one.name: {
            "address": one.address, "user": "root", "port": one.port, "key": str(one.key), "work": str(one.work), "slots": slots,
            "for": [*uses],
            **({"jump": jump} if jump else {}),
        }
        for one in hosts
    }  # fmt: skip
    text = (PROJECT / "pipeline.yaml").read_text().replace("\nprofiles:\n", f"\nprofiles:\n{PROFILES}", 1)
    (place / "pipeline.yaml").write_text(f"{text}\n{yaml.safe_dump({'hosts': entries})}")
    return place / "pipeline.yaml"


def comparisons(result: Any) -> str:
    """All figures of a run, byte for byte."""
    return json.dumps([part["comparisons"] for one in result["series"] for part in one["arches"]])


@dataclass
class Command:
    """The program, as somebody who logs in as ``client`` starts it with a cache of its own."""

    client: Client
    cache: Path
    place: Path

    def argv(self, *arguments: str | Path) -> list[str]:
        """What is run."""
        return [sys.executable, "-m", "kpatch_ci", *map(str, arguments)]

    @property
    def env(self) -> dict[str, str]:
        """Of the command."""
        own = {"KPATCH_CI_CACHE": str(self.cache), "KPATCH_CI_HISTORY": str(self.place / "history.sqlite3")}
        return {**os.environ, **self.client.env, **own, "PYTHONPATH": str(PROJECT)}

    def __call__(self, *arguments: str | Path, timeout: float = 600) -> Done:
        """Run it to its end."""
        argv = self.argv(*arguments)
        done = subprocess.run(
            argv, cwd=self.place, env=self.env, capture_output=True, text=True, timeout=timeout, check=False
        )
        print(f"$ {' '.join(argv[2:])}\n{done.stderr}")  # noqa: T201 (shown by pytest when the test fails)
        return Done(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def begun(self, *arguments: str | Path) -> Iterator[Begun]:
        """Start it, and go on; it is killed at the end of the block where it has not ended by then."""
        with subprocess.Popen(
            self.argv(*arguments), cwd=self.place, env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as running:  # fmt: skip
            try:
                yield Begun(running)
            finally:
                running.kill()


@dataclass
class Begun:
    """A command that runs."""

    running: subprocess.Popen[str]
    said: list[tuple[float, str]] = field(default_factory=list)
    """time.monotonic() and line, of standard error."""
    _lines: queue.Queue[tuple[float, str] | None] = field(default_factory=queue.Queue)
    _stdout: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read_errors, self._read_output)]
        for thread in self._threads:
            thread.start()

    def _read_errors(self) -> None:
        assert self.running.stderr
        for line in self.running.stderr:
            self._lines.put((time.monotonic(), line))
        self._lines.put(None)

    def _read_output(self) -> None:
        assert self.running.stdout
        self._stdout.append(self.running.stdout.read())

    def hears(self, pattern: str, *, seconds: float = 120) -> float:
        """Wait until it says something, and return when it did."""
        end = time.monotonic() + seconds
        while True:
            try:
                one = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                one = None
            assert one is not None, f"it never said {pattern!r}:\n{self.text}"
            self.said.append(one)
            if re.search(pattern, one[1]):
                return one[0]

    @property
    def text(self) -> str:
        """All that it has said and that was waited for."""
        return "".join(line for _, line in self.said)

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.running.send_signal(signal.SIGINT)

    def ends(self, *, seconds: float = 300) -> Done:
        """Wait for its end."""
        code = self.running.wait(seconds)
        for thread in self._threads:
            thread.join(10)
        while (one := self._lines.get(timeout=10)) is not None:
            self.said.append(one)
        print(self.text)  # noqa: T201
        return Done(code, "".join(self._stdout), self.text)
