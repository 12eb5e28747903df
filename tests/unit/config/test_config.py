# SPDX-License-Identifier: GPL-2.0-or-later
"""pipeline.yaml: validated whole, narrowed by the command line."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.config.load import Selection, load_config
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.workload import Seed
from kpatch_ci.stats.precision import Precision

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    for folder in ("patches", "kconfigs", "qemu"):
        (tmp_path / folder).symlink_to(PROJECT / folder)
    shutil.copy(PROJECT / "pipeline.yaml", tmp_path / "pipeline.yaml")
    return tmp_path / "pipeline.yaml"


def edited(pipeline: Path, *changes: tuple[str, str]) -> Path:
    text = pipeline.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    pipeline.write_text(text)
    return pipeline


def test_the_default_pipeline_is_what_the_readme_promises(pipeline: Path) -> None:
    config = load_config(pipeline)
    assert [s.full_name for s in config.series][:3] == ["schedutil-iowait-boost", "wakeup-gran", "stack-workqueue"]
    assert [m.arch for m in config.machines] == ["arm64", "x86_64"]
    assert config.seeds == tuple(Seed(boot, 1) for boot in range(1, 13))
    labels = {p.name: [c.label for c in p.cases] for p in config.workloads}
    assert labels["hackbench"] == [f"groups={g}" for g in (1, 2, 4, 8, 16)]
    assert labels["dd-dsync"] == [f"rw=write,bs=4k,fs={fs},oflag=direct+dsync,latency_us=100" for fs in ("xfs", "ext4")]
    assert labels["dbench"] == [f"fs={fs},clients={c}" for fs in ("xfs", "ext4") for c in (1, 4, 8)]


def test_the_quick_profile_has_three_boots_and_two_cases_a_workload(pipeline: Path) -> None:
    config = load_config(pipeline, Selection(profile="quick"))
    assert config.seeds == (Seed(1, 1), Seed(2, 1), Seed(3, 1))
    assert {len(p.cases) for p in config.workloads} == {2}


def test_a_profile_may_have_machines_of_its_own(pipeline: Path) -> None:
    config = load_config(pipeline, Selection(profile="dvfs"))
    assert [m.name for m in config.machines] == ["arm64-6+2", "x86_64-8-percpu-dvfs"]
    assert all(m.scales_frequency for m in config.machines)
    fixed = load_config(pipeline, Selection(profile="fixed")).machines
    assert [m.name for m in fixed] == ["arm64-6+2-fixed", "x86_64-8"]
    assert not any(m.scales_frequency for m in fixed)
    edited(pipeline, ("arm64-6+2-fixed, x86", "arm64-6+2-fixde, x86"))
    with pytest.raises(UserError, match=r"no 'arm64-6\+2-fixde'.*did you mean 'arm64-6\+2-fixed'"):
        load_config(pipeline)


def test_the_precise_profile_has_ten_boots_and_half_the_threshold(pipeline: Path) -> None:
    config = load_config(pipeline, Selection(profile="precise"))
    assert config.seeds == tuple(Seed(boot, 1) for boot in range(1, 11))
    assert {p.threshold_percent for p in config.workloads} == {0.5}
    labels = {p.name: [c.label for c in p.cases] for p in config.workloads}
    assert labels["hackbench"] == ["groups=4,datasize=65536"]
    assert len(labels["dbench"]) == 6
    assert {p.threshold_percent for p in load_config(pipeline).workloads} == {1.0}


def test_every_error_is_told_at_once_with_its_line(pipeline: Path) -> None:
    edited(
        pipeline,
        ("- wakeup-gran", "- wakeup-grain"),
        ("- x86_64-8", "- x86"),
        ("- {groups: 16", "- {groops: 16"),
        ("null_blk, xfs", "null_blk, xsf"),
    )
    lines = pipeline.read_text().splitlines()
    with pytest.raises(UserError) as caught:
        load_config(pipeline)
    told = str(caught.value).splitlines()
    for word, hint in (
        ("wakeup-grain", "did you mean 'wakeup-gran'"),
        ("'x86'", "x86_64-8"),
        ("groops", "did you mean 'groups'"),
        ("xsf", "xfs"),
    ):
        (line,) = (t for t in told if word in t)
        assert hint in line
        number = int(line.split(":")[1])
        assert word.strip("'") in lines[number - 1], line


def test_exports_and_origin_are_the_file_s(pipeline: Path) -> None:
    assert (load_config(pipeline).exports, load_config(pipeline).origin) == ((), "kpatchci")
    edited(pipeline, ("tree: debian:6.1", "tree: debian:6.1\nexports: [kcidb, csv]\norigin: my_ci"))
    assert (load_config(pipeline).exports, load_config(pipeline).origin) == (("kcidb", "csv"), "my_ci")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("alpha: 0.05", "alhpa: 0.05", "unknown key 'statistics.alhpa' (did you mean 'alpha'?)"),
        ("alpha: 0.05", "alpha: 5", "statistics.alpha: Input should be less than 1"),
        ("boots: 12", "boots: '3'", "seeds.boots: Input should be a valid integer"),
        ("boots: 12", "boots: 0", "seeds.boots: Input should be greater than 0"),
        ("tree: debian:6.1", "tree: [a]", "tree: Input should be a valid string"),
        ("tree: debian:6.1", "tree: debian:6.1\nexports: [kcdib]", "no 'kcdib' (a report format: did you mean 'kcidb'"),
        ("tree: debian:6.1", "tree: debian:6.1\nexports: [csv, csv]", "exports: 'csv' stands twice"),
        ("tree: debian:6.1", "tree: debian:6.1\norigin: my-ci", "origin: KCIDB takes no origin 'my-ci' (lower-case"),
        ("  hackbench:\n    cases", "  hackbnech:\n    cases", "no workload 'hackbnech'"),
    ],
)
def test_a_bad_value_is_named_with_what_would_be_right(pipeline: Path, old: str, new: str, message: str) -> None:
    edited(pipeline, (old, new))
    with pytest.raises(UserError) as caught:
        load_config(pipeline)
    assert message in str(caught.value)
    assert "pipeline.yaml:" in str(caught.value)


def test_what_is_selected_keeps_the_files_order(pipeline: Path) -> None:
    config = load_config(
        pipeline, Selection(series=("stack-workqueue", "wakeup-gran"), arches=("x86_64",), workloads=("dd",))
    )
    assert [s.full_name for s in config.series] == ["wakeup-gran", "stack-workqueue"]
    assert [m.arch for m in config.machines] == ["x86_64"]
    assert [p.name for p in config.workloads] == ["dd"]


@pytest.mark.parametrize(
    ("selection", "where"),
    [
        (Selection(series=("x",)), "--series"),
        (Selection(arches=("arm",)), "--arch"),
        (Selection(workloads=("dbnech",)), "--workload"),
    ],
)
def test_a_selection_that_names_nothing_says_what_there_is(pipeline: Path, selection: Selection, where: str) -> None:
    with pytest.raises(UserError, match=f"{where}.*there are"):
        load_config(pipeline, selection)


def test_a_number_of_seeds_is_that_many_boots_of_one_run(pipeline: Path) -> None:
    assert load_config(pipeline, Selection(seeds=4)).seeds == (Seed(1, 1), Seed(2, 1), Seed(3, 1), Seed(4, 1))
    edited(pipeline, ("seeds: {boots: 12, runs: 1}", "seeds: {boots: 2, runs: 3}"))
    assert load_config(pipeline).seeds == tuple(Seed(boot, run) for boot in (1, 2) for run in (1, 2, 3))
    assert load_config(pipeline, Selection(seeds=20)).seeds == tuple(Seed(boot, 1) for boot in range(1, 21))
    with pytest.raises(UserError, match="--seeds"):
        load_config(pipeline, Selection(seeds=0))


def test_a_variant_of_a_workload_has_its_own_name_and_cases(pipeline: Path) -> None:
    edited(
        pipeline,
        (
            "  hackbench:\n    cases",
            "  dd-slow:\n    threshold_percent: 3\n    cases: [{rw: read, bs: 4k, latency_us: [100, 20000]}]\n  hackbench:\n    cases",
        ),
    )
    plan = next(p for p in load_config(pipeline).workloads if p.name == "dd-slow")
    assert plan.kind == "dd"
    assert plan.threshold_percent == 3.0
    assert [c.label for c in plan.cases] == ["rw=read,bs=4k,latency_us=100", "rw=read,bs=4k,latency_us=20000"]


def test_the_architectures_fragment_comes_second(pipeline: Path) -> None:
    names = [p.stem for p in load_config(pipeline).fragments("arm64")]
    assert names[:2] == ["base", "arm64"]
    assert all((PROJECT / "kconfigs" / f"{name}.config").exists() for name in names)


def test_a_file_that_is_no_pipeline_says_so(tmp_path: Path) -> None:
    for text, message in (("", "is empty"), ("a: [", "no YAML"), ("tree: x\ntree: y\n", "stands twice")):
        (tmp_path / "p.yaml").write_text(text)
        with pytest.raises(UserError, match=message):
            load_config(tmp_path / "p.yaml")
    with pytest.raises(UserError, match="no such file"):
        load_config(tmp_path / "none.yaml")


VARIANT = "  - {name: wakeup-gran, variant: carried, workloads: [hackbench]}\n"


def with_variant(pipeline: Path, entry: str = VARIANT) -> Path:
    return edited(pipeline, ("  - stack-workqueue\n", f"  - stack-workqueue\n{entry}"))


def names(pipeline: Path, **selection: Any) -> list[str]:
    return [entry.full_name for entry in load_config(pipeline, Selection(**selection)).series]


def test_a_series_name_chooses_all_that_the_file_lists_of_it(pipeline: Path) -> None:
    with_variant(pipeline)
    assert names(pipeline, series=("wakeup-gran",)) == ["wakeup-gran", "wakeup-gran+carried"]
    assert names(pipeline, series=("wakeup-gran+carried",)) == ["wakeup-gran+carried"]
    entry = load_config(pipeline, Selection(series=("wakeup-gran+carried",))).series[0]
    assert (entry.name, entry.variant, entry.workloads) == ("wakeup-gran", "carried", ("hackbench",))


def test_a_variant_may_be_chosen_though_the_file_does_not_list_it(pipeline: Path) -> None:
    assert names(pipeline, series=("wakeup-gran+switched",)) == ["wakeup-gran+switched"]
    chosen = names(pipeline, series=("wakeup-gran",), variants=True)
    assert chosen == ["wakeup-gran", "wakeup-gran+carried", "wakeup-gran+switched"]


def test_a_variant_that_no_chosen_workload_measures_is_left_out(pipeline: Path) -> None:
    with_variant(pipeline)
    assert "wakeup-gran+carried" not in names(pipeline, workloads=("dd",))
    with pytest.raises(UserError, match=r"--workload.*wakeup-gran\+carried with hackbench"):
        names(pipeline, workloads=("dd",), series=("wakeup-gran+carried",))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "  - {name: wakeup-gran, variant: caried}\n",
            "wakeup-gran has no variant 'caried' (did you mean 'carried'?",
        ),
        ("  - {name: wakeup-grn}\n", "no 'wakeup-grn'"),
        ("  - {name: wakeup-gran, variant: carried, workloads: [hack]}\n", "wakeup-gran+carried: no workload 'hack'"),
        ("  - wakeup-gran+carried\n  - {name: wakeup-gran, variant: carried}\n", "'wakeup-gran+carried' stands twice"),
        ("  - wakeup-gran+caried\n", "no variant 'caried'"),
    ],
)
def test_a_bad_entry_of_series_is_named_with_its_line(pipeline: Path, entry: str, message: str) -> None:
    with_variant(pipeline, entry)
    with pytest.raises(UserError) as caught:
        load_config(pipeline)
    assert message in str(caught.value)
    assert "pipeline.yaml:" in str(caught.value)


def test_precision_is_asked_for_in_the_file_or_on_the_command_line_which_wins(pipeline: Path) -> None:
    assert load_config(pipeline).precision is None
    asked = load_config(pipeline, Selection(precision_percent=0.5))
    assert asked.precision == Precision(0.5, 48)
    assert (asked.thresholds.alpha, asked.thresholds.confidence) == (0.033, 0.967)
    edited(
        pipeline, ("  threshold_percent: 1.0", "  threshold_percent: 1.0\n  precision_percent: 0.8\n  max_seeds: 20")
    )
    assert load_config(pipeline).precision == Precision(0.8, 20)
    assert load_config(pipeline, Selection(precision_percent=0.5, max_seeds=30)).precision == Precision(0.5, 30)
    with pytest.raises(UserError, match=r"at most 8 boots cannot start with 12.*fewer --seeds"):
        load_config(pipeline, Selection(max_seeds=8))
    assert load_config(pipeline, Selection(max_seeds=8, seeds=4)).precision == Precision(0.8, 8)
