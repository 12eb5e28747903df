# SPDX-License-Identifier: GPL-2.0-or-later
"""The result channel's text to a replicate, however the run ended."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Replicate, Seed
from kpatch_ci.workloads import WORKLOADS, make_case, parse_events

OUTPUT = (
    "Running in process mode with 8 groups using 40 file descriptors each (== 320 tasks)\n"
    "Each sender will pass 50 messages of 100 bytes\nTime: 0.400\n"
)
FACTS = {"event": "facts", "cpus": 8}
READY = {"event": "ready", "uptime_ns": 131283360}
JOB = {"event": "job", "seed": 6}
SAID = {"event": "output", "stream": "stdout+stderr", "bytes": 143, "truncated": False, "text": OUTPUT}
RUN = {
    "event": "run",
    "argv": ["/usr/bin/hackbench", "--pipe"],
    "exit": 0,
    "signal": 0,
    "timed_out": False,
    "elapsed_ns": 445020448,
    "utime_us": 361692,
    "nvcsw": 18981,
}
COUNTED = {
    "event": "counters",
    "delta": {"context_switches": 32328, "migrations": 1989, "wakeups": 18732, "wakeups_local": 13419, "forks": 321},
    "time_in_state": {"policy0": {"500000": 12}},
    "cpu_times": {"cpu0": {"run_ns": 82390448, "wait_ns": 3888}},
    "frequency": {
        "span_ns": 402689024,
        "lost": 0,
        "known_from_ns": 0,
        "policies": {"policy6": {"khz": 1500000, "changes": [[3347152, 700000]]}},
    },
    "schedstat_sum": "4e5c917ef98cd0de",
}
END = {"event": "end", "status": "ok", "reason": "job done"}
GOOD = (FACTS, READY, JOB, SAID, RUN, COUNTED, END)


def text(*events: Mapping[str, object]) -> str:
    return "".join(json.dumps(e) + "\n" for e in events)


def parsed(channel: str, name: str | None = None) -> Replicate:
    case = make_case("hackbench", {"groups": 8})
    return parse_events(channel, WORKLOADS["hackbench"], case, Seed(2, 6), Mode.DETERMINISTIC, name)


def test_a_good_run_gives_its_figure_and_the_counters() -> None:
    r = parsed(text(*GOOD), "hackbench-long")
    assert (r.status, r.reason) == (Status.PASSED, "")
    assert (r.workload, r.case, r.seed, r.mode) == ("hackbench-long", "groups=8", Seed(2, 6), Mode.DETERMINISTIC)
    counted = {"context_switches": 32328, "migrations": 1989, "wakeups": 18732}
    assert r.samples == {"time": 0.4, **counted, "migrations_per_1000_switches": pytest.approx(61.5256, rel=1e-6)}
    assert r.extra == {
        "argv": ["/usr/bin/hackbench", "--pipe"],
        "elapsed_ns": 445020448,
        "rusage": {"utime_us": 361692, "nvcsw": 18981},
        "counters": {"wakeups_local": 13419, "forks": 321},
        "time_in_state": {"policy0": {"500000": 12}},
        "cpu_times": COUNTED["cpu_times"],
        "frequency": COUNTED["frequency"],
        "schedstat_sum": "4e5c917ef98cd0de",
    }
    assert r.log_tail.endswith("Time: 0.400")


def test_a_kernel_without_schedstat_and_frequencies_tells_of_neither() -> None:
    r = parsed(text(JOB, SAID, RUN, {k: v for k, v in COUNTED.items() if k not in {"cpu_times", "frequency"}}, END))
    assert (r.status, r.extra["cpu_times"], r.extra["frequency"]) == (Status.PASSED, {}, {})


def test_what_came_before_the_snapshot_may_be_missing() -> None:
    assert parsed(text(*GOOD[2:])).status is Status.PASSED


def test_a_counter_that_the_guest_cannot_read_is_no_sample() -> None:
    r = parsed(text(JOB, SAID, RUN, COUNTED | {"delta": {"wakeups": 3}}, END))
    assert r.samples == {"time": 0.4, "wakeups": 3}


@pytest.mark.parametrize(
    "delta", [{"context_switches": 0, "migrations": 0}, {"migrations": 3}, {"context_switches": 9}]
)
def test_without_switches_or_migrations_there_is_no_rate(delta: dict[str, int]) -> None:
    assert parsed(text(JOB, SAID, RUN, COUNTED | {"delta": delta}, END)).samples == {"time": 0.4, **delta}


def test_no_migrations_are_a_rate_of_zero() -> None:
    delta = {"context_switches": 2100, "migrations": 0}
    samples = parsed(text(JOB, SAID, RUN, COUNTED | {"delta": delta}, END)).samples
    assert samples["migrations_per_1000_switches"] == 0


@pytest.mark.parametrize(
    ("channel", "status", "reason"),
    [
        ("", Status.FAILED, "stopped before the end of its job .* nothing at all"),
        (text(*GOOD[:3]), Status.FAILED, "stopped before the end of its job .* event `job`"),
        (text(*GOOD[:-1]), Status.FAILED, "stopped before the end of its job .* event `counters`"),
        (text(*GOOD)[:-9], Status.FAILED, "stopped amid a line of its results, after event `counters`"),
        ("[    1.2] Kernel panic\n" + text(*GOOD), Status.ERROR, "line 1 .* not the agent's: .*Kernel panic"),
        (text(JOB) + "[1]\n" + text(*GOOD[3:]), Status.ERROR, "line 2"),
        (text({"event": "job", "seed": 7}, *GOOD[3:]), Status.ERROR, r"run seeds \[7\], not under 6"),
        (text(JOB, SAID, RUN, END), Status.ERROR, "1 measured runs and 0 sets of counters"),
        (text(JOB, END), Status.ERROR, "0 measured runs"),
        (text(JOB, SAID | {"text": "cannot run"}, RUN, COUNTED, END), Status.ERROR, "hackbench says: cannot run"),
        (
            text(JOB, SAID | {"truncated": True, "tail": "x"}, RUN, COUNTED, END),
            Status.ERROR,
            "more than the agent keeps",
        ),
        (text(JOB, SAID, RUN, COUNTED | {"delta": {"wakeups": -3}}, END), Status.ERROR, "counter wakeups is -3"),
        (text(JOB, SAID, RUN, COUNTED | {"delta": {"wakeups": "3"}}, END), Status.ERROR, "counter wakeups is 3"),
    ],
)
def test_a_run_that_gives_no_figures_says_why(channel: str, status: Status, reason: str) -> None:
    r = parsed(channel)
    assert (r.status, r.samples) == (status, {})
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(r.reason)


def ended(reason: str) -> dict[str, str]:
    return {"event": "end", "status": "failed", "reason": reason}


@pytest.mark.parametrize(
    ("run", "output", "reason"),
    [
        ({"exit": 1}, "fork() (error: x)\n", "hackbench ended with exit status 1: fork() (error: x)"),
        ({"exit": 127}, "", "hackbench ended with exit status 127"),
        ({"exit": -1, "signal": 11}, "", "hackbench was killed by signal 11"),
        (
            {"exit": -1, "signal": 9, "timed_out": True, "elapsed_ns": 60_000_000_000},
            "Running\n",
            "hackbench did not finish in time (ended after 60 s of the guest's clock): Running",
        ),
    ],
)
def test_a_command_that_ends_badly_is_a_failure_with_its_last_words(
    run: dict[str, object], output: str, reason: str
) -> None:
    r = parsed(text(JOB, SAID | {"text": output}, RUN | run, COUNTED, ended("run /usr/bin/hackbench: ...")))
    assert (r.status, r.reason, r.samples) == (Status.FAILED, reason, {})


def test_a_preparation_that_the_kernel_refused_is_a_failure_and_any_other_an_error() -> None:
    said = SAID | {"text": "mkfs.xfs: pwrite failed: Input/output error\nUsage: mkfs.xfs\n"}
    prep = {"event": "prep", "argv": ["mkfs.xfs"], "exit": 1}
    r = parsed(text(JOB, said, prep, ended("prep mkfs.xfs: exit status 1")))
    assert r.status is Status.FAILED
    assert r.reason == "prep mkfs.xfs: exit status 1: mkfs.xfs: pwrite failed: Input/output error"
    r = parsed(text(JOB, ended("mount xfs /dev/nullb0 on /mnt: No such device")))
    assert (r.status, r.reason) == (Status.FAILED, "mount xfs /dev/nullb0 on /mnt: No such device")
    assert parsed(text(ended("write 1 to /sys/x: No such file or directory"))).status is Status.ERROR
    assert "without a reason" in parsed(text(JOB, {"event": "end"})).reason


def test_the_last_twenty_lines_are_kept_for_people() -> None:
    r = parsed(text(JOB, SAID | {"text": "\n".join(map(str, range(50)))}, RUN | {"exit": 1}, COUNTED))
    assert r.log_tail.splitlines() == [str(n) for n in range(30, 50)]


@given(st.integers(0, len(text(*GOOD)) - 2))
def test_a_channel_cut_anywhere_is_never_a_pass(length: int) -> None:
    r = parsed(text(*GOOD)[:length])
    assert r.status is Status.FAILED
    assert r.reason


@given(st.text())
def test_nothing_in_the_channel_raises(garbage: str) -> None:
    assert parsed(garbage).status is not Status.PASSED
    assert parsed(text(*GOOD[:3]) + garbage).status is not Status.PASSED


def invocation(time: str, switches: int) -> tuple[Mapping[str, object], ...]:
    delta = {"context_switches": switches, "migrations": 30, "wakeups": 7, "forks": 321}
    return (SAID | {"text": OUTPUT.replace("0.400", time)}, RUN, COUNTED | {"delta": delta})


def several(channel: str, iterations: int = 2) -> Replicate:
    case = make_case("hackbench", {"groups": 8, "iterations": iterations})
    return parse_events(channel, WORKLOADS["hackbench"], case, Seed(2, 6), Mode.DETERMINISTIC)


def test_several_invocations_give_their_means_and_each_figure() -> None:
    r = several(text(JOB, *invocation("0.400", 1000), *invocation("0.500", 2000), END))
    assert (r.status, r.case) == (Status.PASSED, "groups=8")
    assert r.samples == {
        "time": pytest.approx(0.45),
        "context_switches": 1500,
        "migrations": 30,
        "wakeups": 7,
        "migrations_per_1000_switches": 20,
    }
    assert r.extra["iterations"] == {
        "time": [0.4, 0.5],
        "context_switches": [1000, 2000],
        "migrations": [30, 30],
        "wakeups": [7, 7],
    }


def test_what_explains_several_invocations_is_their_total() -> None:
    r = several(text(JOB, *invocation("0.400", 1000), *invocation("0.500", 2000), END))
    assert r.extra["elapsed_ns"] == 2 * 445020448
    assert r.extra["rusage"] == {"utime_us": 723384, "nvcsw": 37962}
    assert r.extra["counters"] == {"forks": 642}
    assert r.extra["time_in_state"] == {"policy0": {"500000": 24}}


@pytest.mark.parametrize(
    ("events", "status", "reason"),
    [
        (invocation("0.400", 9), Status.ERROR, "1 measured runs and 1 sets of counters where 2 each are expected"),
        (invocation("0.400", 9) * 3, Status.ERROR, "3 measured runs"),
        ((*invocation("0.400", 9), SAID, RUN | {"exit": 1}), Status.FAILED, "hackbench ended with exit status 1"),
        ((*invocation("0.400", 9), *invocation("x", 9)), Status.ERROR, "hackbench printed no line `Time: `"),
        ((*invocation("0.400", 9), RUN, COUNTED), Status.ERROR, "no line `Time: `"),
    ],
)
def test_an_invocation_that_failed_fails_the_replicate(
    events: tuple[Mapping[str, object], ...], status: Status, reason: str
) -> None:
    r = several(text(JOB, *events, END))
    assert (r.status, r.samples) == (status, {})
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(r.reason)
