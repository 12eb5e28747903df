# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU that runs no guest: it reads a real command line, does what FAKE_QEMU says, and speaks QMP like the real one.

As a module it is the tool root that starts it (`FakeToolRoot`); as a program it is the emulator.
"""

from __future__ import annotations

import json
import math
import os
import random
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kpatch_ci.debian.toolroot import ToolRoot

FACTS = {
    "event": "facts",
    "release": "6.1.140",
    "cpus": 2,
    "cpu": [],
    "clocksource": "tsc",
    "timer_resolution_ns": 1,
    "mem_kb": 250_000,
    "modules": ["null_blk"],
}
SNAPSHOT_BYTES = 4 * 1024 * 1024
MEASURING = ("hackbench", "drift", "fresh", "loser", "wakeups", "deaf-to-work")
CRASH = "[    0.100000] Kernel panic - not syncing: fake\n"


@dataclass(frozen=True, slots=True)
class FakeToolRoot(ToolRoot):
    """Starts this file in place of a sandboxed QEMU, and a copy in place of cpio."""

    scenario: dict[str, str] = field(default_factory=dict)

    def argv(
        self,
        command: Sequence[str | Path],
        *,
        read: Sequence[Path] = (),
        write: Sequence[Path] = (),
        mounts: Sequence[tuple[Path, str]] = (),
        write_mounts: Sequence[tuple[Path, str]] = (),
        devices: Sequence[Path] = (),
        cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        bwrap: str = "bwrap",
    ) -> list[str]:
        """The command with every inside path turned back into the outside one."""
        words = [str(c) for c in command]
        for outside, inside in (*mounts, *write_mounts):
            words = [w.replace(inside, str(outside)) for w in words]
        scenario = self.scenario.get(_kind(words), "well")
        return [sys.executable, __file__, scenario, *words]


def _kind(argv: Sequence[str]) -> str:
    if "-incoming" in argv:
        return "resume"
    return "fresh" if "panic=shutdown" in argv else "boot"


def _value(argv: list[str], start: str) -> str:
    return next(a for a in argv if a.startswith(start))


def _path(argv: list[str], identity: str) -> Path:
    return Path(_value(argv, f"file,id={identity},path=").rpartition("path=")[2])


def _write(path: Path, *rows: str | Mapping[str, Any]) -> None:
    with path.open("a") as stream:
        stream.writelines(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)


Send = Callable[[Mapping[str, Any]], None]


def _monitor(argv: list[str], scenario: str) -> tuple[socket.socket, Send]:
    """The monitor, its greeting said, and a console that has begun."""
    channel = socket.socket(fileno=int(_value(argv, "socket,id=qmp,fd=").rpartition("=")[2]))

    def send(value: Mapping[str, Any]) -> None:
        channel.sendall(json.dumps(value).encode() + b"\r\n")

    if scenario == "deaf":
        _write(_path(argv, "con"), "starting\n")
        time.sleep(60)
    send({"QMP": {"version": {"qemu": {"major": 10, "minor": 0, "micro": 13}, "package": ""}, "capabilities": []}})
    _write(_path(argv, "con"), "[    0.000000] Linux version 6.1.140\n")
    return channel, send


def _fresh(argv: list[str], scenario: str) -> int:
    """Boots and does its job in one go; ``impostor``: on another accelerator than it was told."""
    scenario = _turn(argv, scenario)
    channel, send = _monitor(argv, scenario)
    for request in _requests(channel):
        kvm = ("kvm" in argv) is not (scenario == "impostor")
        told = {"enabled": kvm, "present": True} if request["execute"] == "query-kvm" else {}
        send({"return": told, **({"id": request["id"]} if "id" in request else {})})
        if request["execute"] == "query-kvm":
            break
    _guest(argv, {"hang-job": "well", "panic": "well"}.get(scenario, scenario.removeprefix("boot-")))
    return _job(argv, scenario.removesuffix("-job"), "")


def _turn(argv: list[str], scenario: str) -> str:
    """``once-X``: X for the first guest in a working directory, and a guest that measures after it."""
    mark, what = _path(argv, "con").with_name("was-here"), scenario.removeprefix("once-")
    if what != scenario and mark.exists():
        return "hackbench"
    mark.touch()
    return what


def _boot(argv: list[str], scenario: str) -> int:
    channel, send = _monitor(argv, scenario)
    for request in _requests(channel):
        name = request["execute"]
        identity = {"id": request["id"]} if "id" in request else {}
        told = {"status": "failed", "error-desc": "No space left on device"} if name == "query-migrate" else {}
        send({"return": told, **identity})
        if name == "qmp_capabilities":
            _guest(argv, scenario)
            send({"event": "STOP", "timestamp": {"seconds": 0, "microseconds": 0}})
        if name == "migrate":
            if scenario == "vanish":
                return 1
            state = "failed" if scenario == "full" else "completed"
            with _path(argv, "con").with_name(Path(request["arguments"]["uri"]).name).open("wb") as snapshot:
                snapshot.write(b"state of the machine")
                if scenario == "moody":
                    snapshot.write(str(time.time_ns()).encode())
                snapshot.truncate(SNAPSHOT_BYTES)
            send({"event": "MIGRATION", "data": {"status": state}, "timestamp": {"seconds": 0, "microseconds": 0}})
        if name == "quit":
            return 0
    return 1


def _requests(channel: socket.socket) -> Iterator[dict[str, Any]]:
    """JSON objects with nothing between them, until the other side hangs up."""
    decoder, text = json.JSONDecoder(), ""
    while data := channel.recv(4096):
        text += data.decode()
        while text.strip():
            try:
                request, end = decoder.raw_decode(text.strip())
            except ValueError:
                break
            text = text.strip()[end:]
            yield request


def _guest(argv: list[str], scenario: str) -> None:
    results = _path(argv, "res")
    if scenario == "panic":
        _write(_path(argv, "con"), CRASH)
        sys.exit(0)
    if scenario == "hang":
        time.sleep(60)
    if scenario == "agent":
        _write(results, {"event": "end", "status": "failed", "reason": "boot seed: No such device"})
        sys.exit(0)
    if scenario == "other":
        _write(_path(argv, "con"), "[    2.0] tsc: Refined TSC clocksource calibration: 2596.120 MHz\n")
        _write(results, {**FACTS, "cpus": 1}, {"event": "ready"})
        return
    if scenario != "busy":
        _write(_path(argv, "con"), "[    2.0] tsc: Refined TSC clocksource calibration: 2596.120 MHz\n")
    _write(results, FACTS, {"event": "ready"})


def _resume(argv: list[str], scenario: str) -> int:
    snapshot = Path(argv[argv.index("-incoming") + 1].removeprefix("file:")).read_bytes()
    return _job(argv, scenario, snapshot[:5].decode())


def _job(argv: list[str], scenario: str, snapshot: str) -> int:
    job = Path(_value(argv, "name=opt/kpatch-ci/job,file=").rpartition("file=")[2]).read_bytes()
    _path(argv, "con").touch()
    text = job.rstrip(b"\0").decode()
    if scenario not in MEASURING:
        _write(_path(argv, "res"), {"event": "job", "text": text, "bytes": len(job), "snapshot": snapshot})
    if scenario == "panic":
        _write(_path(argv, "con"), CRASH)
        time.sleep(60)
    if scenario == "hang":
        time.sleep(60)
    if scenario == "killed":
        os.kill(os.getpid(), 9)
    if scenario == "mute":
        return 0
    if scenario in MEASURING and text:
        _write(_path(argv, "res"), *_measured(argv, text, scenario))
        return 0
    status = "failed" if scenario == "failed" else "ok"
    _write(_path(argv, "res"), {"event": "end", "status": status, "reason": "run /usr/bin/dd: exit status 1"})
    return 0


def _measured(argv: list[str], job: str, scenario: str) -> list[Mapping[str, Any]]:
    """What hackbench says; `drift`: other idle times each time, `fresh`: other switches when resumed from a second boot."""
    fresh = scenario == "fresh" and "/verify-" in argv[argv.index("-incoming") + 1]
    delta = {"context_switches": 2 if fresh else 1, "migrations": 0, "wakeups": 1}
    delta["idle_ns"] = time.time_ns() if scenario == "drift" else 5
    return [
        {"event": "job", "seed": int(job.split()[1])},
        {"event": "output", "text": f"Time: {_time(argv, job, scenario):.3f}\n"},
        {"event": "run", "exit": 1 if scenario == "loser" else 0, "elapsed_ns": 4},
        {"event": "counters", "delta": delta, "schedstat_sum": "ab"},
        {"event": "end", "status": "ok"},
    ]


def _time(argv: list[str], job: str, scenario: str) -> float:
    """Seconds; `wakeups`: of each kernel and boot its own, and a percent longer for each 100 steps of work in a wakeup."""
    if scenario not in ("wakeups", "deaf-to-work"):
        return 0.4
    guest = [argv[argv.index(option) + 1] for option in ("-kernel", "-append")]
    draw = random.Random(f"{guest}{job}")  # noqa: S311
    steps = int(job.partition("sched_wakeup_work\t")[2].partition("\n")[0] or 0) if scenario == "wakeups" else 0
    return 40 * (1 + steps / 10_000) * math.exp(draw.gauss(0, 0.001))


def main(scenario: str, argv: list[str]) -> int:
    """Exit status as QEMU's."""
    if argv[0] == "cpio":
        Path(_value(argv, "--file=").removeprefix("--file=")).write_bytes(sys.stdin.buffer.read())
        return 0
    if scenario == "broken":
        print("qemu-system-x86_64: unsupported machine type", file=sys.stderr)  # noqa: T201
        return 1
    return {"resume": _resume, "fresh": _fresh, "boot": _boot}[_kind(argv)](argv, scenario)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
