# SPDX-License-Identifier: GPL-2.0-or-later
"""What `try` picks from the paths that a patch touches: the table of our own pipeline.yaml, and its rules."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kpatch_ci.config.load import Config, Selection, load_config
from kpatch_ci.config.selection import Asked, Choice, Rule, choose
from kpatch_ci.model.errors import UserError

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def config() -> Config:
    return load_config(PROJECT / "pipeline.yaml", Selection(profile="quick"))


NOTHING_ASKED = Asked()


def pick(config: Config, *paths: str, asked: Asked = NOTHING_ASKED) -> Choice:
    return choose(config.rules, paths, config.machines, config.workloads, asked)


def shown(choice: Choice) -> tuple[list[str], dict[str, list[str]]]:
    return [m.name for m in choice.machines], {p.name: [c.label for c in p.cases] for p in choice.workloads}


BOTH, SCALING = ["arm64-6+2", "x86_64-8"], ["arm64-6+2", "x86_64-8-percpu-dvfs"]
EVERYTHING = {"dd", "dd-dsync", "hackbench", "dbench"}


@pytest.mark.parametrize(
    ("path", "machines", "workloads"),
    [
        ("kernel/sched/cpufreq_schedutil.c", SCALING, {"dd"}),
        ("drivers/cpufreq/cpufreq.c", SCALING, {"dd"}),
        ("kernel/sched/pelt.c", SCALING, EVERYTHING),
        ("kernel/sched/fair.c", BOTH, {"hackbench", "dbench", "dd-dsync"}),
        ("include/linux/sched/topology.h", BOTH, {"hackbench", "dbench", "dd-dsync"}),
        ("kernel/workqueue.c", BOTH, {"dbench", "dd-dsync"}),
        ("block/blk-mq.c", BOTH, {"dd", "dd-dsync"}),
        ("drivers/block/null_blk/main.c", BOTH, {"dd", "dd-dsync"}),
        ("arch/arm64/kernel/smp.c", ["arm64-6+2"], EVERYTHING),
        ("arch/x86/kernel/smp.c", ["x86_64-8"], EVERYTHING),
        ("tools/objtool/check.c", ["x86_64-8"], EVERYTHING),
        ("arch/Kconfig", BOTH, EVERYTHING),
        ("lib/string.c", BOTH, EVERYTHING),
        ("Makefile", BOTH, EVERYTHING),
        ("drivers/gpu/drm/drm_drv.c", BOTH, EVERYTHING),
    ],
)
def test_our_table_picks(config: Config, path: str, machines: list[str], workloads: set[str]) -> None:
    choice = pick(config, path)
    assert choice.built
    names, cases = shown(choice)
    assert names == machines
    assert set(cases) == workloads
    assert any(path in line for line in choice.lines), "it says why"


def test_a_file_systems_patch_runs_the_cases_on_that_file_system_only(config: Config) -> None:
    assert shown(pick(config, "fs/xfs/xfs_log.c"))[1] == {
        "dd-dsync": ["rw=write,bs=4k,fs=xfs,oflag=direct+dsync,latency_us=100"],
        "dbench": ["fs=xfs,clients=4"],
    }
    both = shown(pick(config, "fs/xfs/xfs_log.c", "fs/jbd2/commit.c"))[1]
    assert both["dbench"] == ["fs=xfs,clients=4", "fs=ext4,clients=4"]


@pytest.mark.parametrize(
    "path", ["Documentation/x.rst", "tools/perf/builtin.c", "arch/riscv/kernel/smp.c", "MAINTAINERS", "fs/xfs/README"]
)
def test_what_is_in_no_kernel_of_ours_is_not_built(config: Config, path: str) -> None:
    choice = pick(config, path)
    assert not choice.built
    assert choice.lines[0].startswith(f"not built: {path}: ")
    mixed = pick(config, path, "arch/x86/kernel/smp.c")
    assert shown(mixed)[0] == ["x86_64-8"], "it does not add anything either"
    assert len(mixed.lines) == 3


def test_a_path_that_no_rule_knows_is_told_aloud(config: Config) -> None:
    lines = pick(config, "sound/core/pcm.c").lines
    assert lines[0] == (
        "chosen: arm64 (arm64-6+2), x86_64 (x86_64-8);"
        " dd (2 cases), dd-dsync (2 cases), hackbench (2 cases), dbench (2 cases)"
    )
    assert lines[1] == "because of sound/core/pcm.c: no rule of select: fits it, so everything is measured"


def test_the_command_line_wins() -> None:
    config = load_config(
        PROJECT / "pipeline.yaml", Selection(profile="fixed", arches=("arm64",), workloads=("dbench",))
    )
    asked = Asked(arches=True, machines=True, workloads=True)
    choice = pick(config, "kernel/sched/cpufreq_schedutil.c", asked=asked)
    names, cases = shown(choice)
    assert names == ["arm64-6+2-fixed"]
    assert list(cases) == ["dbench"]
    assert choice.lines[0].endswith("(architectures and machines and workloads: the command line's)")


def test_an_architecture_that_the_run_does_not_have_is_not_built(config: Config) -> None:
    only = [m for m in config.machines if m.arch == "arm64"]
    assert not choose(config.rules, ["arch/x86/a.c"], only, config.workloads).built


@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        ("fs/", "fs/a/b.c", "ufs/a.c"),
        ("fs/*", "fs/a.c", "fs/a/b.c"),
        ("**.rst", "a/b/c.rst", "a/b.rst.c"),
        ("arch/*/", "arch/um/a.c", "arch/Kconfig"),
        ("a?c.h", "abc.h", "a/c.h"),
        ("a+b.c", "a+b.c", "aab.c"),
    ],
)
def test_patterns_are_those_of_maintainers(pattern: str, fits: str, does_not: str) -> None:
    rule = Rule((pattern,), "")
    assert rule.fits(fits)
    assert not rule.fits(does_not)


def test_the_first_rule_that_fits_counts_and_kconfig_is_put_together(config: Config) -> None:
    rules = [Rule(("fs/btrfs/",), "one", kconfig=("btrfs",)), Rule(("fs/",), "two", kconfig=("other",))]
    assert choose(rules, ["fs/btrfs/a.c"], config.machines, config.workloads).kconfig == ("btrfs",)
    assert choose(rules, ["fs/btrfs/a.c", "fs/b.c"], config.machines, config.workloads).kconfig == ("btrfs", "other")


def test_every_fault_of_the_table_is_told_with_its_line(tmp_path: Path) -> None:
    for folder in ("patches", "kconfigs", "qemu"):
        (tmp_path / folder).symlink_to(PROJECT / folder)
    file = tmp_path / "pipeline.yaml"
    shutil.copy(PROJECT / "pipeline.yaml", file)
    text = file.read_text()
    assert text.count("arches: [arm64]\n    why: arm64's own") == 1
    text = text.replace("arches: [arm64]\n    why: arm64's own", "arches: [arm46]\n    why: arm64's own")
    text = text.replace("workloads: [dd-dsync fs=xfs, dbench fs=xfs]", "workloads: [dd-dsync fs=xsf, dbensh]")
    text = text.replace("machines: [arm64-6+2, x86_64-8-percpu-dvfs]\n    workloads: [dd]", "machines: [arm64-6]", 1)
    file.write_text(text + "  - {paths: [a/], built: false, workloads: [dd], why: x}\n")
    with pytest.raises(UserError) as caught:
        load_config(file)
    told = str(caught.value).splitlines()
    assert len(told) == 5, told
    for word in (
        "no 'arm46'",
        "no case fits 'dd-dsync fs=xsf'",
        "no workload 'dbensh'",
        "no 'arm64-6'",
        "`built: false`",
    ):
        assert any(word in line for line in told), word
    number = next(n for n, line in enumerate(file.read_text().splitlines(), 1) if "arm46" in line)
    assert any(f":{number}: select: no 'arm46'" in line for line in told)
