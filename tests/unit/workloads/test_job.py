# SPDX-License-Identifier: GPL-2.0-or-later
"""The text that the guest's agent reads."""

from __future__ import annotations

import pytest

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import Switches
from kpatch_ci.model.workload import Seed
from kpatch_ci.workloads import JOB_BYTES, WORKLOADS, Step, make_case, render_job, workload_job
from kpatch_ci.workloads.job import switch_off

NULLB = "/sys/kernel/config/nullb/nullb0"


def job(kind: str, **raw: object) -> list[list[str]]:
    text = workload_job(WORKLOADS[kind], make_case(kind, raw), Seed(3, 17))
    assert text.endswith("\n")
    return [line.split("\t") for line in text.splitlines()]


def test_hackbench_runs_as_in_the_mail() -> None:
    assert job("hackbench", groups=8, loops=50) == [
        ["seed", "17"],
        ["timeout", "120"],
        ["run", "/usr/bin/hackbench", "--process", "--pipe", "--groups=8", "--loops=50", "--datasize=100"],
    ]
    assert job("hackbench", mode="thread", transport="socket", loops=1)[-1][2:4] == ["--threads", "--groups=8"]


def test_hackbench_is_invoked_as_often_as_asked() -> None:
    lines = job("hackbench", groups=1, loops=50, iterations=3)
    assert lines[2:] == [job("hackbench", groups=1, loops=50)[2]] * 3
    assert WORKLOADS["hackbench"].runs(make_case("hackbench", {"iterations": 3})) == 3
    assert WORKLOADS["dd"].runs(make_case("dd", {"fs": "xfs"})) == 1


def test_the_most_iterations_fit_into_a_job_beside_what_is_switched_off() -> None:
    options = {"groups": 1000, "loops": 1_000_000, "datasize": 1 << 20, "iterations": 40, "mode": "thread"}
    switches = switch_off(Switches(sysctls=(("kernel/sched_wakeup_work", "1000000"),)), "6.1.0")
    text = workload_job(WORKLOADS["hackbench"], make_case("hackbench", options), Seed(1, 1 << 32), switches)
    assert len(text.encode()) <= JOB_BYTES


def test_dd_reads_a_device_of_the_latency_asked_for() -> None:
    lines = job("dd", bs="1M", latency_us=500, timeout_s=9)
    assert lines[1:] == [
        ["timeout", "9"],
        ["mkdir", NULLB],
        ["write", f"{NULLB}/size", "64"],
        ["write", f"{NULLB}/blocksize", "512"],
        ["write", f"{NULLB}/memory_backed", "1"],
        ["write", f"{NULLB}/irqmode", "2"],
        ["write", f"{NULLB}/completion_nsec", "500000"],
        ["write", f"{NULLB}/submit_queues", "1"],
        ["write", f"{NULLB}/power", "1"],
        ["run", "/usr/bin/dd", "if=/dev/nullb0", "of=/dev/null", "bs=1M", "count=64", "iflag=direct"],
    ]


def test_dd_writes_with_the_flags_asked_for() -> None:
    expected = ["run", "/usr/bin/dd", "if=/dev/zero", "of=/dev/nullb0", "bs=4k", "count=9", "oflag=direct,dsync"]
    assert job("dd", rw="write", bs="4k", count=9, oflag="direct+dsync")[-1] == expected


DD_DSYNC = ["/usr/bin/dd", "if=/dev/zero", "of=/mnt/file", "bs=4k", "count=300", "oflag=direct,dsync"]


@pytest.mark.parametrize(("fs", "mkfs"), [("xfs", "/usr/sbin/mkfs.xfs"), ("ext4", "/usr/sbin/mke2fs")])
def test_dd_writes_a_new_file_on_a_file_system(fs: str, mkfs: str) -> None:
    lines = job("dd", rw="write", bs="4k", count=300, fs=fs, oflag="direct+dsync")
    assert ["write", f"{NULLB}/size", "320"] in lines
    assert [line[:2] for line in lines[-4:-2]] == [["prep", mkfs], ["mkdir", "/mnt"]]
    assert lines[-2:] == [["mount", fs, "/dev/nullb0", "/mnt"], ["run", *DD_DSYNC]]


def test_dd_reads_a_file_that_it_wrote_before_past_the_cache() -> None:
    lines = job("dd", bs="1M", count=8, fs="xfs")
    write = ["/usr/bin/dd", "if=/dev/zero", "of=/mnt/file", "bs=1M", "count=8", "oflag=direct"]
    read = ["/usr/bin/dd", "if=/mnt/file", "of=/dev/null", "bs=1M", "count=8", "iflag=direct"]
    assert lines[-3:] == [["mount", "xfs", "/dev/nullb0", "/mnt"], ["prep", *write], ["run", *read]]


def test_a_device_without_latency_completes_at_once() -> None:
    assert ["write", f"{NULLB}/irqmode", "0"] in job("dd", latency_us=0)


@pytest.mark.parametrize(("fs", "mkfs"), [("xfs", "/usr/sbin/mkfs.xfs"), ("ext4", "/usr/sbin/mke2fs")])
def test_dbench_makes_and_mounts_its_file_system_before_it_is_measured(fs: str, mkfs: str) -> None:
    lines = job("dbench", fs=fs, clients=4)
    assert [line[:2] for line in lines[-4:-1]] == [["prep", mkfs], ["mkdir", "/mnt"], ["mount", fs]]
    lens = ["/bin/busybox", "env", "LD_PRELOAD=/lib/kpci/clocklens.so", "KPCI_CLOCK_FACTOR=20"]
    dbench = ["/usr/bin/dbench", "-t", "4", "-D", "/mnt", "-c", "/usr/share/dbench/nofill.txt", "-s", "4"]
    assert lines[-1] == ["run", *lens, *dbench]


def test_dbench_without_a_clock_lens_runs_bare() -> None:
    expected = ["run", "/usr/bin/dbench", "-t", "2", "-D", "/mnt", "-c", "/x", "1"]
    assert job("dbench", clients=1, clock_factor=1, time_s=2, sync="none", loadfile="/x")[-1] == expected


@pytest.mark.parametrize("kind", WORKLOADS)
def test_every_job_has_one_measured_run_and_leaves_room(kind: str) -> None:
    lines = job(kind)
    assert [line[0] for line in lines].count("run") == 1
    assert lines[-1][0] == "run"
    assert sum(len("\t".join(line)) + 1 for line in lines) < JOB_BYTES // 2


def test_a_job_may_fill_the_item_to_the_last_byte_and_no_further() -> None:
    room = JOB_BYTES - len("seed\t1\nmkdir\t/\n")
    assert len(render_job(1, [Step("mkdir", ("/" + "a" * room,))])) == JOB_BYTES
    with pytest.raises(UserError, match=f"job of {JOB_BYTES + 1} bytes"):
        render_job(1, [Step("mkdir", ("/" + "a" * (room + 1),))])
    with pytest.raises(UserError, match="at most 4096"):
        render_job(1, [Step("mkdir", ("/" + "ü" * (room // 2 + 1),))])


@pytest.mark.parametrize("bad", ["a\tb", "a\nb", "a\0b"])
def test_a_field_that_would_break_the_format_is_refused(bad: str) -> None:
    with pytest.raises(UserError, match="no tab, newline or NUL"):
        render_job(1, [Step("run", ("/bin/true", bad))])


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step("reboot", ()), "unknown directive 'reboot'"),
        (Step("write", ("/a",)), "write with 1 fields"),
        (Step("run", ()), "run with 0 fields"),
        (Step("run", ("x",) * 128), "run with 128 fields .1 to 127"),
    ],
)
def test_a_directive_that_the_agent_would_refuse_is_refused_here(step: Step, message: str) -> None:
    with pytest.raises(UserError, match=message):
        render_job(1, [step])


def test_a_change_is_switched_off_before_the_workload_where_the_kernel_has_its_switches() -> None:
    off = Switches(("F",), (("kernel/ticks", "0"),))
    steps = switch_off(off, "6.1.192")
    lines = workload_job(WORKLOADS["hackbench"], make_case("hackbench", {"groups": 1}), Seed(1, 2), steps).splitlines()
    assert lines[1:4] == [
        "timeout\t120",
        "write\t/sys/kernel/debug/sched/features\tNO_F",
        "write\t/proc/sys/kernel/ticks\t0",
    ]
    assert lines[4].startswith("run\t")
    assert [s.fields[0] for s in switch_off(Switches(("F",)), "5.10.1")] == ["/sys/kernel/debug/sched_features"]
    assert switch_off(Switches(), "6.1") == ()
