# SPDX-License-Identifier: GPL-2.0-or-later
"""Plots: where things are drawn."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from markupsafe import Markup

from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.status import Mode, Verdict
from kpatch_ci.report.document import as_document
from kpatch_ci.report.html import figures, guest, plots
from kpatch_ci.report.html.scale import Scale, scale_of
from kpatch_ci.report.schema import ArchDoc, ComparisonDoc
from kpatch_ci.report.view import pair_changes
from tests.fakes.results import SEEDS, arch_result, comparison, run_result


def arch_of(*comparisons: Comparison) -> ArchDoc:
    return as_document(run_result(("s", arch_result(comparisons=comparisons)))).series[0].arches[0]


def doc(**changes: object) -> ComparisonDoc:
    return arch_of(comparison(**changes)).comparisons[0]  # type: ignore[arg-type]


def parsed(picture: Markup) -> ET.Element:
    return ET.fromstring(str(picture))  # noqa: S314 (made here)


def by_class(picture: Markup, name: str) -> list[ET.Element]:
    return [e for e in parsed(picture).iter() if name in e.get("class", "").split()]


@pytest.mark.parametrize(
    ("values", "least", "most", "low", "high"),
    [
        ([10.0], 0.0, 1e9, -0.8, 10.8),
        ([-5.0, 5.0], 0.0, 1e9, -5.8, 5.8),
        ([0.1], 1.0, 1e9, -1.16, 1.16),
        ([4000.0, -3.0], 0.0, 100.0, -11.24, 108.24),
        ([], 0.0, 1e9, -1.25, 1.25),
        ([float("nan")], 0.0, 1e9, -1.25, 1.25),
    ],
)
def test_an_axis_holds_its_values_zero_and_the_threshold(
    values: list[float], least: float, most: float, low: float, high: float
) -> None:
    scale = scale_of(values, least, most)
    assert [scale.low, scale.high] == pytest.approx([low, high])


@pytest.mark.parametrize(
    ("scale", "ticks"),
    [
        (Scale(-1.2, 17.0), [0, 5, 10, 15]),
        (Scale(-0.3, 0.3), [-0.2, 0, 0.2]),
        (Scale(-8.0, 16.5), [-5, 0, 5, 10, 15]),
        (Scale(-108.0, 108.0), [-100, -50, 0, 50, 100]),
    ],
)
def test_ticks_are_round_and_hold_zero(scale: Scale, ticks: list[float]) -> None:
    assert scale.ticks() == pytest.approx(ticks)


def test_places_are_percent_and_what_lies_outside_is_at_the_end() -> None:
    scale = Scale(-10, 30)
    assert [scale.at(v) for v in (-10, 0, 30, 99)] == [0, 25, 100, 100]
    assert [scale.outside(v) for v in (-11, 0, 99)] == [-1, 0, 1]


def test_what_all_cases_share_is_no_part_of_a_plots_labels() -> None:
    long = [f"rw=write,fs={fs},oflag=direct" for fs in ("xfs", "ext4")]
    arch = arch_of(comparison(case="all", primary=True), *(comparison(case=case) for case in long))
    assert figures.shared_settings(arch, "hackbench") == "rw=write,oflag=direct"
    rows = figures.intervals(arch, arch.comparisons, None).rows
    assert [r.label for r in rows] == ["all", "fs=xfs", "fs=ext4"]
    assert [p.label for p in figures.panels(arch, "hackbench")] == ["all", "fs=xfs", "fs=ext4"]
    assert figures.shared_settings(arch_of(comparison(case=long[0])), "hackbench") == ""


def test_a_label_at_the_end_of_an_axis_does_not_reach_beyond_it() -> None:
    axis = plots.percent_axis(Scale(-10.05, 10.05))
    texts = [(e.text, e.get("class")) for e in parsed(axis).iter() if e.text]
    middle = [("-5 %", "tick"), ("0", "tick"), ("+5 %", "tick")]
    assert texts == [("-10 %", "tick first"), *middle, ("+10 %", "tick last")]


def test_a_case_is_a_dot_on_its_interval_with_the_threshold_as_a_band() -> None:
    picture = plots.interval_strip(doc(), Scale(-10, 30), 2.0)
    [dot], whiskers, [band] = by_class(picture, "dot"), by_class(picture, "whisker"), by_class(picture, "band")
    assert dot.get("cx") == "50.0%"
    assert (whiskers[0].get("x1"), whiskers[0].get("x2")) == ("45.62%", "55.31%")
    assert (band.get("x"), band.get("width")) == ("20.0%", "10.0%")
    assert parsed(picture)[0].text == (
        "hackbench time (groups=8): +10.0 %, interval +8.25..+12.1 %, adjusted p 0.0421: improved"
        " (the whole interval is beyond the threshold)"
    )
    assert "improved" in parsed(picture).get("class", "")


def test_an_interval_that_goes_on_outside_has_an_arrow_and_no_end() -> None:
    picture = plots.interval_strip(doc(ci_percent=(-400.0, 5.0), change_percent=-200.0), Scale(-108, 108), None)
    assert len(by_class(picture, "end")) == 1
    assert len(by_class(picture, "whisker")) == 2, "the line, and the end that is on the axis"
    assert not by_class(picture, "dot"), "a dot at the edge would be a wrong figure"


def test_a_comparison_without_figures_is_an_empty_strip_that_says_so() -> None:
    lost = doc(change_percent=None, ci_percent=None, p_adjusted=None, verdict=Verdict.FAILED, reason="no pairs")
    picture = plots.interval_strip(lost, Scale(-1, 1), 1.0)
    assert not by_class(picture, "dot")
    assert parsed(picture)[0].text == "hackbench time (groups=8): no figure: failed (no pairs)"


def test_pairs_are_compared_as_the_tests_compare_them() -> None:
    lower = doc(baseline=(1.0, 2.0, 4.0), patched=(0.5, 2.0, 5.0))
    assert pair_changes(lower) == pytest.approx([50, 0, -25])
    higher = doc(baseline=(1.0, 2.0, 4.0), patched=(0.5, 2.0, 5.0), better="higher")
    assert pair_changes(higher) == pytest.approx([-50, 0, 25])
    zeros = doc(baseline=(0.0, 2.0, 4.0), patched=(3.0, 2.0, 4.0))
    assert pair_changes(zeros) == pytest.approx([-100, 0, 0]), "of the larger arm: averages 2 2.5 3 3 3.5 4"
    missing = doc(baseline=(1.0, float("nan"), 4.0), patched=(0.5, 2.0, 5.0))
    assert pair_changes(missing) == [pytest.approx(50), None, pytest.approx(-25)]
    assert pair_changes(doc(baseline=(0.0,) * 3, patched=(0.0,) * 3)) == [0, 0, 0]


def test_a_dot_a_pair_in_the_order_of_the_seeds_each_boot_on_its_ground() -> None:
    picture = plots.seed_panel([5.0, None, -5.0], ["1.1", "1.2", "2.1"], Scale(-10, 10), "said")
    dots = by_class(picture, "pair")
    assert [d.get("cx") for d in dots] == ["28.67%", "83.33%"]
    assert [d.get("cy") for d in dots] == ["24.0", "72.0"], "upwards is better"
    assert [d[0].text for d in dots] == ["seed 1.1: +5.00 %", "seed 2.1: -5.00 %"]
    assert [(g.get("x"), g.get("width")) for g in by_class(picture, "ground")] == [("15.0%", "54.67%")]
    assert [t.text for t in by_class(picture, "tick") if t.get("y") == "108"] == ["1", "2"]


@pytest.mark.parametrize(
    ("boots", "named"), [(8, "1 2 3 4 5 6 7 8"), (12, "1 3 5 7 9 11"), (24, "1 4 7 10 13 16 19 22")]
)
def test_no_more_boots_are_named_than_a_phone_has_room_for(boots: int, named: str) -> None:
    picture = plots.seed_panel([1.0] * boots, [f"{n}.1" for n in range(1, boots + 1)], Scale(-10, 10), "said")
    assert [t.text for t in by_class(picture, "tick") if t.get("y") == "108"] == named.split()


def test_shares_stand_side_by_side_and_fill_the_bar() -> None:
    picture = plots.stacked_bar({"500000": 0.25, "1800000": 0.75}, ["500000", "900000", "1800000"], "said")
    shares = by_class(picture, "share")
    assert [(s.get("x"), s.get("width")) for s in shares] == [("0.0%", "25.0%"), ("25.0%", "75.0%")]
    assert [s.get("fill-opacity") for s in shares] == ["0.14", "1.0"]


def test_hostile_labels_are_text() -> None:
    hostile = "</title><script>alert(1)</script>\u202e"
    for picture in (
        plots.interval_strip(doc(case=hostile, reason=hostile), Scale(-1, 1), 1.0),
        plots.seed_panel([1.0], [hostile], Scale(-1, 1), hostile),
        plots.stacked_bar({hostile: 1.0}, [hostile], hostile),
        plots.change_strip(1, 2, Scale(0, 3), hostile),
    ):
        assert not list(parsed(picture).iter("script"))
        assert "\u202e" not in picture
    assert re.fullmatch("[a-z-]+", plots.verdict_class("no change"))
    assert re.fullmatch("[a-z0-9-]+", plots.verdict_class('x" onload="alert(1)'))


def test_samples_that_make_no_pairs_are_shown_by_arm() -> None:
    unpaired = replace(
        comparison(case="all", primary=True, mode=Mode.KVM), baseline=(1.0, 2.0, 3.0), patched=(1.0, 2.0), seeds=SEEDS
    )
    arch = arch_of(unpaired)
    [panel] = figures.panels(arch, "hackbench")
    assert len(by_class(panel.picture, "ring")) == 3
    assert len(by_class(panel.picture, "dot")) == 2
    assert [d.get("cx") for d in by_class(panel.picture, "dot")] == ["35.63%", "64.37%"], "on an axis that begins at 0"
    assert list(figures.pair_rows(arch, "hackbench"))[2] == ("all", "-", "3.000", "-", "-")


def test_a_policy_is_named_by_its_cpus() -> None:
    assert guest.cpu_ranges("0 1 2 3 4 5") == "0-5"
    assert guest.cpu_ranges("7") == "7"
    assert guest.cpu_ranges("0 2 3 7") == "0,2-3,7"
    assert guest.cpu_ranges("all <of> them") == "all <of> them"


def test_cpus_are_told_by_cluster_and_by_frequency_domain() -> None:
    arch = arch_of(comparison())
    assert guest.cpu_lines(arch) == []
    cpus = [{"cpu": n, "cluster": n // 6, "capacity": 446 if n < 6 else 1024} for n in range(8)]
    domain = {"policy": 0, "related_cpus": "0 1 2 3 4 5", "frequencies": ["500000", "1800000"], "governor": "schedutil"}
    arch.boot.baseline.facts.update(cpu=[*cpus, "junk", {}], cpufreq=[domain, {"policy": 6}])
    assert guest.cpu_lines(arch) == [
        "CPUs 0-5: cluster 0, capacity 446",
        "CPUs 6-7: cluster 1, capacity 1024",
        "CPUs 0-5: 500, 1800 MHz, schedutil",
    ]
    assert guest.policy_cpus(arch) == {"policy0": "0-5"}


def test_counters_are_grouped_by_name_migrations_first() -> None:
    def counter(metric: str, case: str) -> Comparison:
        return comparison(metric=metric, unit="count", case=case)

    head = comparison(case="all", primary=True)
    arch = arch_of(head, counter("wakeups", "a"), counter("migrations", "a"), counter("wakeups", "b"))
    found = figures.counter_groups(arch, "hackbench")
    assert [(name, [c.case for c in group]) for name, group in found] == [
        ("migrations", ["a"]),
        ("wakeups", ["a", "b"]),
    ]
