# SPDX-License-Identifier: GPL-2.0-or-later
"""A board that is none: it answers scripts as a board would, boots in no time, and fails in whatever way a test wants."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kpatch_ci.board.ssh import Answer, BrokenError, SilentError, Watch
from kpatch_ci.model.board import Board, Login, Timeouts
from kpatch_ci.model.machine import Accel, Cluster, Machine

NETWORK = """\
mac lo 00:00:00:00:00:00
mac eth0 52:54:00:12:34:56
addr 1: lo    inet 127.0.0.1/8 scope host lo
addr 2: eth0    inet 192.0.2.7/24 scope global eth0
route default via 192.0.2.1 dev eth0
connection 192.0.2.9 40000 192.0.2.7 22
"""
NOTES = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0" + bytes(range(20))
FACTS = {
    "event": "facts",
    "release": "6.1.0",
    "cpus": 2,
    "cpu": [{"cpu": 0, "cluster_cpus": "0-1"}, {"cpu": 1, "cluster_cpus": "0-1"}],
    "clocksource": "tsc",
    "mem_kb": 1000 * 1024,
    "modules": ["null_blk"],
}
JOB_SAID = '{"event":"job","seed":1}\n{"event":"end","status":"ok","reason":"job done"}\n'


def machine(**changes: Any) -> Machine:
    """A board of two CPUs, with a console and a power switch."""
    given = {
        "console": "sleep 600",
        "power_cycle": "true",
        "timeouts": Timeouts(boot=30, silence=12, back=60, command=5),
        **changes,
    }
    board = Board(Login("board.example"), **given)
    return Machine("lab", "", "x86_64", "", "", 1024, (Cluster("all", (0, 1)),), 0, accel=Accel.HARDWARE, board=board)


@dataclass
class Clock:
    """Time that passes only in sleep()."""

    now: float = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class FakeBoard:
    """``dies``: what a kernel under test does instead of answering: "" (nothing), "panic", "hang", "mute" or "job" (in its job)."""

    clock: Clock = field(default_factory=Clock)
    dies: str = ""
    comes_back: bool = True
    """Whether a reboot brings its own system."""
    power_works: bool = True
    console: Path | None = None
    state: str = "own"
    boots: int = 0
    command_line: str = ""
    loaded: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    power_cycles: int = 0
    answers: dict[str, str] = field(default_factory=dict)
    """Part of a script -> what it prints instead."""
    facts: dict[str, Any] = field(default_factory=lambda: dict(FACTS))
    looks: list[str] = field(default_factory=list)
    """What further looks at what disturbs print."""
    damages: bool = False
    """Whether what is copied arrives damaged."""
    breaks: Counter[str] = field(default_factory=Counter)
    """Part of a script -> how often the connection breaks under it, while the kernel lives on."""
    refuses: dict[str, str] = field(default_factory=dict)
    """Part of a script -> the last words on stderr with which it fails."""

    def connect(self, login: Login, timeout: float) -> FakeShell:
        self.clock.now += 0.1
        if self.state in ("dead", "hung"):
            raise SilentError("timed out")
        return FakeShell(self)

    def power_cycle(self) -> None:
        self.power_cycles += 1
        if self.power_works:
            self._own()

    def _own(self) -> None:
        self.state, self.command_line = "own", "root=/dev/sda1"
        self.boots += 1

    def say(self, text: str) -> None:
        if self.console:
            self.console.parent.mkdir(parents=True, exist_ok=True)
            with self.console.open("a") as stream:
                stream.write(text)

    def start(self) -> None:
        """Leave its own system."""
        self.boots += 1
        self.command_line = self.loaded
        self.say(f"[    0.000000] Kernel command line: {self.loaded}\n[    0.000000] Linux version\n")
        match self.dies:
            case "panic":
                self.say("Kernel panic - not syncing: no luck\n")
                self._own()
            case "hang":
                self.state = "hung"
            case "mute":
                self.say("kpatch-ci board: init runs\nkpatch-ci board: no network: there is no card\n")
                self.state = "hung"
            case "reset":
                self._own()
            case _:
                self.state = "test"

    def reboot(self) -> None:
        if self.comes_back:
            self._own()
        else:
            self.state = "dead"

    def answer(self, script: str, stdin: bytes) -> str:
        """What a script prints."""
        self.asked.append(script)
        for part, said in self.answers.items():
            if part in script:
                return said
        if script.startswith("id -u"):
            return f"0\nx86_64\n6.12.0-own\nboot-{self.boots}\n{self.command_line}\n{NETWORK}"
        if script.startswith("cat /proc/sys/kernel/random/boot_id"):
            return f"boot-{self.boots}\n6.12.0-own\n{self.command_line}\n"
        return self._doing(script, stdin)

    def _doing(self, script: str, stdin: bytes) -> str:
        if script.startswith("kexec "):
            self.loaded = script.split("--command-line=", 1)[1].split("; s=$?", maxsplit=1)[0].strip("'")
        elif "kexec -e" in script:
            self.start()
        elif "reboot -f" in script:
            self.reboot()
        elif script == "kpci-agent facts":
            return json.dumps(self.facts) + "\n"
        elif script == "kpci-agent job":
            return self._job()
        elif "cat_ load" in script:
            return self.looks.pop(0) if self.looks else "load /proc/loadavg 0.10 0.2 0.3\n"
        return self._file(script, stdin)

    def _file(self, script: str, stdin: bytes) -> str:
        if "sys/kernel/notes" in script:
            return " ".join(f"{byte:02x}" for byte in NOTES)
        if found := re.search(r"mv \S+ (\S+) &&", script):
            content = gzip.decompress(stdin)
            self.files[found[1]] = content[:-1] if self.damages else content
            return f"{hashlib.sha256(self.files[found[1]]).hexdigest()}  {found[1]}\n"
        if (found := re.match(r"sha256sum (\S+)", script)) and found[1] in self.files:
            return f"{hashlib.sha256(self.files[found[1]]).hexdigest()}  {found[1]}\n"
        return ""

    def _job(self) -> str:
        if self.dies == "job":
            self.say("Kernel panic - not syncing: in the job\n")
            self._own()
            raise BrokenError("the connection broke")
        return JOB_SAID


@dataclass
class FakeShell:
    """A connection to it."""

    board: FakeBoard
    closed: bool = False

    def run(
        self, script: str, *, timeout: float, stdin: bytes = b"", last: bool = False, watch: Watch | None = None
    ) -> Answer:
        if self.board.state in ("dead", "hung"):
            raise SilentError("no answer in time")
        for part in self.board.breaks:
            if part in script and self.board.breaks[part] > 0:
                self.board.breaks[part] -= 1
                raise BrokenError("the connection broke")
        for part, words in self.board.refuses.items():
            if part in script:
                return Answer(1, "", words)
        return Answer(0, self.board.answer(script, stdin), "")

    def close(self) -> None:
        self.closed = True
