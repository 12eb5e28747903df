# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards, for which QEMU guests stand in: Debian's kernel there starts ours through kexec, and its network is the way in.

A stand-in is slow, and nothing is asked of its figures. What is asked: that each kernel really ran, in the order A B B A, that those
which panic, hang or have no network are told apart and named, and that the board's own system is back after each.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpatch_ci.board.install import TOKEN
from kpatch_ci.board.ssh import connect
from kpatch_ci.debian.apt import host_archives
from kpatch_ci.debian.toolroot import ToolRoot, make_toolroot
from kpatch_ci.guest.tsc import host_tsc_khz
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.board import Login
from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import MAILS, PROJECT, Command
from tests.e2e.standin import MEMORY_MIB, StandIn, fetch_disk, stand_in

pytestmark = pytest.mark.e2e
SUITE = "trixie"
BOOT, SILENCE, BACK = 150, 30, 150
"""Seconds. An idle machine of two cores boots a stand-in in 8."""
FAULTS = {"panics": "6.1-panics-at-boot.patch", "hangs": "6.1-hangs-at-boot.patch", "mute": "6.1-no-network.patch"}
CONSOLES = {"arm64": ["console=ttyAMA0", "earlycon"], "x86_64": ["console=ttyS0", "earlycon=uart8250,io,0x3f8"]}


@pytest.fixture(scope="session")
def tools() -> ToolRoot:
    return make_toolroot(cache_root(), SUITE, host_archives())


@dataclass(frozen=True, slots=True)
class Lab:
    """A stand-in, and a project of its own whose one machine it is."""

    arch: str
    board: StandIn
    project: Path

    @property
    def machine(self) -> str:
        return f"stand-in-{self.arch}"

    def write(self, **changes: Any) -> None:
        """Write the machine file, with what a test wants differently."""
        rate = [f"tsc_early_khz={host_tsc_khz()}"] if self.arch == "x86_64" else []
        settings = {
            "kind": "board",
            "name": self.machine,
            "description": "A QEMU guest that stands in for a board.",
            "arch": self.arch,
            "address": "127.0.0.1",
            "port": self.board.port,
            "key": str(self.board.key),
            "known_hosts": str(self.board.known_hosts),
            "memory_mib": MEMORY_MIB,
            "clusters": [{"name": "all", "cpus": "0-1"}],
            "console": f"tail -n 0 -F {self.board.console}",
            "power": {"cycle": self.board.power_cycle},
            "folder": "/run/kpatch-ci",
            "kconfig": ["board", "board-virtio"],
            "kernel_args": [*CONSOLES[self.arch], "rcupdate.rcu_cpu_stall_suppress=1", *rate],
            "timeouts": {"boot": BOOT, "silence": SILENCE, "back": BACK, "command": 60},
        }
        file = self.project / "qemu" / f"{self.machine}.yaml"
        file.write_text(yaml.safe_dump(settings | changes, sort_keys=False))

    def own(self) -> str:
        """The command line of what runs there now: its own system's, or a kernel's under test."""
        login = Login(
            "127.0.0.1", port=self.board.port, key=str(self.board.key), known_hosts=str(self.board.known_hosts)
        )
        shell = connect(login, 20)
        try:
            return shell.run("cat /proc/cmdline", timeout=20).output
        finally:
            shell.close()

    def kernels(self) -> list[str]:
        """Tokens of all kernels under test that its console has seen start."""
        said = self.board.console.read_text(errors="replace")
        return re.findall(rf"\] Kernel command line: .*{re.escape(TOKEN)}([0-9a-f]{{16}})", said)


def _project(place: Path, arch: str) -> Path:
    """A pipeline.yaml whose only machine is the stand-in, with series that break it."""
    for name in ("guest", "board", "cpufreq", "switchcost"):
        shutil.copytree(PROJECT / "qemu" / name, place / "qemu" / name)
    shutil.copytree(PROJECT / "kconfigs", place / "kconfigs")
    shutil.copytree(PROJECT / "patches" / "wakeup-gran", place / "patches" / "wakeup-gran")
    for name, mail in FAULTS.items():
        folder = place / "patches" / name
        folder.mkdir()
        shutil.copy(MAILS / mail, folder / "original.txt")
        (folder / "series.yaml").write_text(f"title: {name}\nfiles: [original.txt]\n")
    pipeline = {
        "tree": "debian:6.1",
        "series": ["wakeup-gran", *FAULTS],
        "machines": [f"stand-in-{arch}"],
        "kconfig": ["base", "debug"],
        "workloads": {"hackbench": {"cases": [{"groups": 1, "loops": 10}]}},
        "seeds": {"boots": 2, "runs": 1},
    }
    (place / "pipeline.yaml").write_text(yaml.safe_dump(pipeline, sort_keys=False))
    return place


@pytest.fixture(scope="module", params=["x86_64", "arm64"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tools: ToolRoot) -> Iterator[Lab]:
    arch = ARCHES[request.param]
    place = tmp_path_factory.mktemp(f"board-{arch.name}")
    disk = fetch_disk(arch, place / "disk", host_archives(), SUITE)
    with stand_in(arch, disk, place / "run", tools) as board:
        made = Lab(arch.name, board, _project(place / "project", arch.name))
        made.write()
        yield made


ONE_ARCHITECTURE = pytest.mark.parametrize("lab", ["x86_64"], indirect=True, scope="module")
"""For what does not depend on the architecture: SSH, the power switch, an interrupt."""


def _run(kpatch_ci: Command, lab: Lab, tmp_path: Path, *more: str, timeout: float = 1800) -> Any:
    return kpatch_ci(
        "run", "-c", lab.project / "pipeline.yaml", "--json", "--output", tmp_path / "out", *more, timeout=timeout
    )


def test_a_board_is_measured_a_b_b_a_and_broken_kernels_are_told_apart(
    kpatch_ci: Command, lab: Lab, tmp_path: Path
) -> None:
    """On arm64 one broken kernel and one boot only: what differs between architectures is kexec and the console, not the judgement.

    The one that hangs is in the test of a board that stays away.
    """
    whole = lab.arch == "x86_64"
    faults = ["panics", "mute"] if whole else ["panics"]
    series = [word for one in ("wakeup-gran", *faults) for word in ("--series", one)]
    done = _run(kpatch_ci, lab, tmp_path, *series, "--seeds", "2" if whole else "1")
    assert done.code == 1, "some of the series cannot be started"
    parts = {s["name"]: s["arches"][0] for s in done.result["series"]}

    good = parts["wakeup-gran"]
    assert done.result["mode"] == "hardware"
    assert good["status"] == "passed"
    times = next(c for c in good["comparisons"] if c["metric"] == "time" and c["case"] == "groups=1")
    assert (times["mode"], times["seeds"]) == ("hardware", ["1.1", "2.1"] if whole else ["1.1"])
    assert all(value > 0 for value in (*times["baseline"], *times["patched"]))
    assert {c["metric"] for c in good["comparisons"]} >= {"time", "context_switches", "migrations", "wakeups"}
    assert good["boot"]["baseline"]["cpus"] == 2
    seen = sorted((tmp_path / "out/logs").glob("*.board.json"), key=lambda p: p.stat().st_mtime_ns)
    order = [path.name.removeprefix(f"{lab.arch}-").removesuffix(".board.json") for path in seen]
    wanted = [("baseline", "1.1"), ("wakeup-gran", "1.1"), ("wakeup-gran", "2.1"), ("baseline", "2.1")]
    wanted = wanted if whole else wanted[:2]
    assert order == [f"{arm}-hackbench-groups=1-{seed}" for arm, seed in wanted]
    assert all(json.loads(path.read_text())["after"]["load"] >= 0 for path in seen)

    reasons = {name: parts[name]["boot"]["patched"] for name in faults}
    assert {boot["status"] for boot in reasons.values()} == {"failed"}
    assert "a patch under test broke the boot" in str(reasons["panics"])
    if whole:
        assert "no network: there is no card with address" in reasons["mute"]["reason"]
        (console,) = (tmp_path / "out/logs").glob("boot-x86_64-mute-*.console.log")
        assert "kpatch-ci board: init runs" in console.read_text()
    started = lab.kernels()
    assert len(started) == len(set(started)) == 2 + len(faults) + len(wanted), (
        "one start a kernel, and one each measurement"
    )
    assert TOKEN not in lab.own(), "the board's own system is back"

    own = done.result["fingerprint"]["arches"][lab.arch]
    assert own["machine"] == lab.machine
    assert own["accelerator"] == "hardware, 127.0.0.1"
    assert own["board"]["cpu"]
    count = len(wanted) // 2
    stages = json.dumps(done.result["stages"])
    assert f"0 of {count} reused, {count} measured; in real time nothing is kept or reused" in stages


def _refused(kpatch_ci: Command, lab: Lab, tmp_path: Path) -> str:
    """What a run says that ends at once, before it builds anything."""
    began = time.monotonic()
    done = _run(kpatch_ci, lab, tmp_path, timeout=120)
    lab.write()
    assert (done.code, done.stdout) == (3, "")
    assert time.monotonic() - began < 60
    assert "build" not in done.stderr
    assert f"board {lab.machine}" in done.stderr or f"board root@127.0.0.1:{lab.board.port}" in done.stderr
    return str(done.stderr)


@ONE_ARCHITECTURE
def test_a_wrong_key_a_changed_host_key_and_nobody_there_are_said_before_any_work(
    kpatch_ci: Command, lab: Lab, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong"
    shutil.copy(lab.board.key.parent / "hostkey", wrong)  # a key, but not the one that may log in
    lab.write(key=str(wrong))
    assert "does not let you in with a key" in _refused(kpatch_ci, lab, tmp_path)
    changed = tmp_path / "known_hosts"
    _, public = _other_key(tmp_path)
    changed.write_text(f"[127.0.0.1]:{lab.board.port} {public}\n")
    lab.write(known_hosts=str(changed))
    assert "shows another host key than known_hosts has" in _refused(kpatch_ci, lab, tmp_path)
    (tmp_path / "none").write_text("")
    lab.write(known_hosts=str(tmp_path / "none"))
    assert "the host key of" in _refused(kpatch_ci, lab, tmp_path)
    lab.write(port=1)
    done = _run(kpatch_ci, lab, tmp_path, timeout=120)
    lab.write()
    assert done.code == 3
    assert f"board {lab.machine} (root@127.0.0.1:1): it cannot be reached: " in done.stderr


def _other_key(place: Path) -> tuple[Path, str]:
    from tests.e2e.standin import key_pair  # noqa: PLC0415

    return key_pair(place, "other")


@ONE_ARCHITECTURE
def test_a_board_that_stays_away_ends_the_run_by_name_and_the_next_run_brings_it_back(
    kpatch_ci: Command, lab: Lab, tmp_path: Path
) -> None:
    lab.write(power={"cycle": "true"}, timeouts={"boot": BOOT, "silence": SILENCE, "back": 15, "command": 60})
    gone = _run(kpatch_ci, lab, tmp_path, "--series", "hangs")
    pipeline = ("-c", lab.project / "pipeline.yaml")
    assert kpatch_ci("build", *pipeline, "--series", "hangs", "--output", tmp_path / "build").code == 0, (
        "a build needs no board"
    )
    lab.write()
    assert gone.code == 3
    assert f"board {lab.machine}" in gone.stderr
    assert "did not come back within 15 s, even after a power cycle" in gone.stderr
    assert not (tmp_path / "out/result.json").exists()
    back = kpatch_ci("boot", *pipeline, "--series", "hangs", "--json", "--output", tmp_path / "again")
    assert back.code == 1
    assert f"board {lab.machine} was left with a kernel under test: bringing it back" in back.stderr
    (boot,) = back.result
    assert f"it hangs: nothing from it for {SILENCE} s; the last that its console said: " in boot["reason"]
    assert TOKEN not in lab.own()


@ONE_ARCHITECTURE
def test_ctrl_c_leaves_the_board_with_its_own_system(lab: Lab, tmp_path: Path) -> None:
    long = tmp_path / "long.yaml"
    settings = yaml.safe_load((lab.project / "pipeline.yaml").read_text())
    settings["workloads"]["hackbench"]["cases"] = [{"groups": 1, "loops": 100000}]
    pipeline = lab.project / "long.yaml"
    pipeline.write_text(yaml.safe_dump(settings))
    argv = [
        sys.executable,
        "-m",
        "kpatch_ci",
        "bench",
        "-c",
        str(pipeline),
        "--output",
        str(tmp_path / "out"),
    ]
    before = len(lab.kernels())
    with long.open("w") as log:
        running = subprocess.Popen(
            argv, stderr=log, stdout=log, env={**os.environ, "KPATCH_CI_HISTORY": str(tmp_path / "history")}
        )
        try:
            _wait(lambda: len(lab.kernels()) == before + 2 and "init runs" in _last_boot(lab), "the first measurement")
            time.sleep(5)  # hackbench is at work
            running.send_signal(signal.SIGINT)
            assert running.wait(timeout=90) == 130
        finally:
            running.kill()
    _wait(lambda: _last_boot(lab).count("stand-in: up") > 0, "the board's own system")
    assert TOKEN not in lab.own()


def _last_boot(lab: Lab) -> str:
    """What the console said since a kernel under test last started."""
    said = lab.board.console.read_text(errors="replace")
    return said[said.rfind(TOKEN) :]


def _wait(condition: Any, what: str, limit: float = 600) -> None:
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"{what} did not come"
        time.sleep(0.5)
