# SPDX-License-Identifier: GPL-2.0-or-later
"""What a build leaves is taken with care: a patch's Makefile may have put anything there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kpatch_ci.kernel.outputs import (
    OddOutput,
    all_logs,
    compiled,
    config_changes,
    next_log,
    plain_file,
    read_small,
    take,
)
from kpatch_ci.model.arch import ARM64


@pytest.fixture
def out(tmp_path: Path) -> Path:
    place = tmp_path / "out"
    (place / "arch/arm64/boot").mkdir(parents=True)
    (place / "drivers").mkdir()
    for name in ("arch/arm64/boot/Image", "vmlinux", "System.map", ".config", "drivers/null_blk.ko"):
        (place / name).write_text(name)
    (place / "modules.order").write_text("drivers/null_blk.o\n")
    return place


def test_image_map_config_and_modules_are_taken(out: Path, tmp_path: Path) -> None:
    place = tmp_path / "artifact"
    place.mkdir()
    assert take(out, ARM64, place) == ["null_blk.ko"]
    assert (place / "image").read_text() == "arch/arm64/boot/Image"
    assert (place / "config").read_text() == ".config"
    assert (place / "modules/null_blk.ko").read_text() == "drivers/null_blk.ko"


def test_a_link_to_a_file_of_the_host_is_not_followed(out: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    (out / ".config").unlink()
    (out / ".config").symlink_to(secret)
    with pytest.raises(OddOutput, match=r"no regular file \.config"):
        read_small(out, ".config")
    (out / "elsewhere").symlink_to(tmp_path)
    with pytest.raises(OddOutput):
        plain_file(out, "elsewhere/secret")
    with pytest.raises(OddOutput):
        plain_file(out, "../secret")


def test_a_fifo_does_not_hang_the_run(out: Path) -> None:
    (out / "vmlinux").unlink()
    os.mkfifo(out / "vmlinux")
    with pytest.raises(OddOutput, match="vmlinux"):
        plain_file(out, "vmlinux")


def test_a_module_outside_of_the_output_is_refused(out: Path, tmp_path: Path) -> None:
    (tmp_path / "evil.ko").write_text("x")
    (out / "modules.order").write_text(f"{tmp_path}/evil.o\n")
    (tmp_path / "artifact").mkdir()
    with pytest.raises(OddOutput):
        take(out, ARM64, tmp_path / "artifact")


def test_a_changed_file_counts_as_compiled_when_an_object_depends_on_it(out: Path) -> None:
    (out / "kernel").mkdir()
    (out / "kernel/.build_utility.o.cmd").write_text(
        "deps := \\\n  /src/kernel/sched/cpufreq_schedutil.c \\\n    /src/include/a.h \\\n\n"
    )
    changed = [
        "kernel/sched/cpufreq_schedutil.c",
        "include/a.h",
        "drivers/foo.c",
        "kernel/sched/cpufreq_schedutil.c.orig",
        "Documentation/x.rst",
    ]
    assert compiled(out, changed, "/src") == {
        "kernel/sched/cpufreq_schedutil.c": True,
        "include/a.h": True,
        "drivers/foo.c": False,
    }


def test_symbols_that_the_patch_moves_are_named() -> None:
    changes = config_changes({"A": "y", "B": "n", "C": "1"}, {"A": "y", "B": "y", "D": "m"})
    assert changes == ("CONFIG_B: n -> y", "CONFIG_C: 1 -> absent", "CONFIG_D: absent -> m")


def test_a_resumed_build_keeps_the_words_of_the_killed_one(out: Path) -> None:
    for text in ("warning of the first\n", "warning of the second\n"):
        log = next_log(out)
        log.parent.mkdir(exist_ok=True)
        log.write_text(text)
    assert all_logs(out) == "warning of the first\nwarning of the second\n"
    assert not next_log(out).is_relative_to(out), "no build can write there"
