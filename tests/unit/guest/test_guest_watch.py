# SPDX-License-Identifier: GPL-2.0-or-later
"""The watcher: a crash, silence or too long a time ends a guest, and nothing else does."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from kpatch_ci.guest.watch import TRACE_GRACE, Watch, attend
from kpatch_ci.process import Process


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """A console, a result channel, and a watch on them with a clock of ours."""

    def __init__(self, folder: Path) -> None:
        self.console, self.results, self.clock = folder / "console", folder / "results", Clock()
        self.watch = Watch(self.console, self.results, timeout=60, silence=10, clock=self.clock)

    def say(self, text: str) -> None:
        with self.console.open("a") as stream:
            stream.write(text)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_guest_that_talks_is_left_alone(bench: Bench) -> None:
    for _ in range(11):
        bench.clock.now += 5
        bench.say("still here\n")
        assert bench.watch.check() is None


def test_silence_ends_a_guest(bench: Bench) -> None:
    bench.say("last words\n")
    assert bench.watch.check() is None
    bench.clock.now += 9.9
    assert bench.watch.check() is None
    bench.clock.now += 0.2
    assert bench.watch.check() == "the guest said nothing for 10 s (console and result channel)"


def test_the_result_channel_counts_as_talking(bench: Bench) -> None:
    for _ in range(4):
        bench.clock.now += 9
        with bench.results.open("a") as stream:
            stream.write("{}\n")
        assert bench.watch.check() is None


def test_talking_does_not_outlast_the_timeout(bench: Bench) -> None:
    for _ in range(12):
        bench.clock.now += 5
        bench.say("still here\n")
        reason = bench.watch.check()
    assert reason == "the guest was not done after 60 s"


def test_a_crash_ends_a_guest_once_its_trace_is_out(bench: Bench) -> None:
    bench.say("fine\n[ 1.0] Kernel panic - not syncing: why not\n")
    assert bench.watch.check() is None
    bench.say("[ 1.0] Call trace:\n")
    bench.clock.now += TRACE_GRACE + 0.01
    assert bench.watch.check() == "the guest crashed: [ 1.0] Kernel panic - not syncing: why not"


def test_a_line_that_comes_in_pieces_is_seen_whole(bench: Bench) -> None:
    bench.say("[ 1.0] Kernel pa")
    assert bench.watch.crash() is None
    bench.say("nic - not syncing: in two")
    assert bench.watch.crash() is None
    bench.say(" pieces\n")
    assert bench.watch.crash() == "[ 1.0] Kernel panic - not syncing: in two pieces"


def run_guest(folder: Path, script: str, *, silence: float = 30.0, timeout: float = 30.0) -> tuple[str | None, float]:
    console = folder / "console"
    watch = Watch(console, folder / "results", timeout=timeout, silence=silence)
    started = time.monotonic()
    with Process([sys.executable, "-c", script, str(console)]) as process:
        reason = attend(process, watch)
        assert process.poll() is not None
    return reason, time.monotonic() - started


HANG = "import sys, time; open(sys.argv[1], 'w').write({!r}); time.sleep(60)"


def test_a_crashed_guest_is_ended_at_once(tmp_path: Path) -> None:
    reason, seconds = run_guest(tmp_path, HANG.format("Internal error: Oops: 96000004 [#1] SMP\n"))
    assert reason == "the guest crashed: Internal error: Oops: 96000004 [#1] SMP"
    assert seconds < 10


def test_a_silent_guest_is_ended(tmp_path: Path) -> None:
    reason, seconds = run_guest(tmp_path, HANG.format("ready\n"), silence=0.2)
    assert reason is not None
    assert "said nothing" in reason
    assert seconds < 10


def test_a_guest_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    reason, _ = run_guest(tmp_path, HANG.format("ready\n"), timeout=0.2)
    assert reason == "the guest was not done after 0.2 s"


def test_a_guest_that_ends_by_itself_is_no_loss(tmp_path: Path) -> None:
    reason, _ = run_guest(tmp_path, "pass")
    assert reason is None


def test_a_crash_is_seen_even_when_the_guest_ended_by_itself(tmp_path: Path) -> None:
    script = "import sys; open(sys.argv[1], 'w').write('Kernel panic - not syncing: x\\n')"
    reason, _ = run_guest(tmp_path, script)
    assert reason == "the guest crashed: Kernel panic - not syncing: x"
