# SPDX-License-Identifier: GPL-2.0-or-later
"""Plots of what guests recorded: where things are drawn, and what stands behind them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from markupsafe import Markup

from kpatch_ci.report.document import as_document
from kpatch_ci.report.html import recorded, stretch
from kpatch_ci.report.recorded import FrequencyLineDoc, PlacementTimesDoc, RunningTimesDoc, TimelineDoc
from kpatch_ci.report.schema import ArchDoc
from tests.fakes.results import arch_result, run_result

MS = 1_000_000
DOMAINS = [{"policy": 0, "related_cpus": "0 1"}, {"policy": 2, "related_cpus": "2"}, {"policy": 3, "related_cpus": "3"}]


def arch_of(**parts: object) -> ArchDoc:
    arch = as_document(run_result(("s", arch_result()))).series[0].arches[0]
    arch.boot.baseline.facts["cpufreq"] = DOMAINS
    return arch.model_copy(update=parts)


def parsed(picture: Markup) -> ET.Element:
    return ET.fromstring(str(picture))  # noqa: S314 (made here)


def paths(picture: Markup, name: str) -> list[str]:
    return [e.get("d", "") for e in parsed(picture).iter("path") if e.get("class") == name]


def texts(picture: Markup) -> list[str]:
    return [e.text or "" for e in parsed(picture).iter("text")]


def running(*shares: float, little: float = 0.0) -> RunningTimesDoc:
    clusters = {"little": little, "big": 1 - little} if little else {}
    return RunningTimesDoc(
        replicates=2, seconds=0.5, wait_seconds=0.01, cpus={str(i): s for i, s in enumerate(shares)}, clusters=clusters
    )


def placed(case: str = "bs=4k") -> PlacementTimesDoc:
    before, after = running(0.5, 0.2, 0.3, little=0.7), running(0.0, 0.2, 0.8, little=0.2)
    return PlacementTimesDoc(workload="dd", case=case, baseline=before, patched=after)


def timeline(policy: str, before: FrequencyLineDoc, after: FrequencyLineDoc, case: str = "bs=4k") -> TimelineDoc:
    return TimelineDoc(workload="dd", case=case, seed="1.1", policy=policy, baseline=before, patched=after)


def line(khz: int, *changes: tuple[int, int], span: int = 100 * MS, **other: int) -> FrequencyLineDoc:
    return FrequencyLineDoc(
        span_ns=span, khz=khz, changes=list(changes), total=other.pop("total", len(changes)), **other
    )


def test_bars_rise_from_the_bottom_in_proportion_baseline_beside_patched() -> None:
    picture = stretch.cpu_bars(["0", "1"], ([25.0, 50.0], [0.0, 100.0]), [], "said")
    assert paths(picture, "hollow") == ["M70 90v-21.2h160v21.2zM570 90v-42.5h160v42.5z"]
    assert paths(picture, "solid") == ["M760 90v-84.9h160v84.9z"], "nothing where nothing ran"
    assert texts(picture) == ["0", "25", "50", "75", "100", "0", "1"]
    assert not list(parsed(picture).iter("rect")), "one cluster has no ground"


def test_clusters_are_marked_by_name_and_in_the_order_of_their_cpus() -> None:
    arch = arch_of(placement_times=[placed()], clusters={"big": [2], "little": [1, 0]})
    [(panel, words)] = recorded.placement_panels(arch, "dd")
    assert texts(panel.picture)[-5:] == ["little", "big", "0", "1", "2"] or {"little", "big"} <= set(
        texts(panel.picture)
    )
    [ground] = list(parsed(panel.picture).iter("rect"))
    assert (ground.get("x"), ground.get("width")) == ("11.0%", "57.33%")
    little, big = "little 175.0 > 50.00 ms (70.0 % > 20.0 %)", "big 75.00 > 200.0 ms (30.0 % > 80.0 %)"
    assert words == f"{little}, {big}".replace(">", "\N{RIGHTWARDS ARROW}")
    assert parsed(panel.picture)[0].text == (
        "dd (bs=4k), running time: baseline CPU 0 125.0 ms, CPU 1 50.00 ms, CPU 2 75.00 ms;"
        " patched CPU 1 50.00 ms, CPU 2 200.0 ms"
    )


def test_clusters_that_are_not_these_cpus_are_not_drawn() -> None:
    arch = arch_of(placement_times=[placed()], clusters={"little": [0, 1], "big": [2, 3]})
    [(panel, _)] = recorded.placement_panels(arch, "dd")
    assert "little" not in texts(panel.picture)


def test_a_machine_that_never_ran_has_a_picture() -> None:
    picture = stretch.cpu_bars(["0"], ([0.0], [0.0]), [], "said")
    assert paths(picture, "hollow") == [""]


def test_shares_beyond_their_range_stay_in_the_picture() -> None:
    wild = RunningTimesDoc(replicates=1, seconds=1e308, cpus={"0": 1e308, "1": -5.0})
    odd = PlacementTimesDoc(workload="dd", case="c", baseline=wild)
    [(panel, _)] = recorded.placement_panels(arch_of(placement_times=[odd]), "dd")
    heights = [float(v) for v in re.findall(r"v-([\d.]+)", "".join(paths(panel.picture, "hollow")))]
    assert heights == [84.9]


def test_the_table_behind_the_bars_has_every_cpu_cluster_and_the_times() -> None:
    rows = list(recorded.placement_rows(arch_of(placement_times=[placed()]), "dd"))
    assert rows == [
        ("bs=4k", "CPU 0", "125.0", "0", "50.0 %", "0.0 %"),
        ("bs=4k", "CPU 1", "50.00", "50.00", "20.0 %", "20.0 %"),
        ("bs=4k", "CPU 2", "75.00", "200.0", "30.0 %", "80.0 %"),
        ("bs=4k", "little", "175.0", "50.00", "70.0 %", "20.0 %"),
        ("bs=4k", "big", "75.00", "200.0", "30.0 %", "80.0 %"),
        ("bs=4k", "all", "250.0", "250.0", "100.0 %", "100.0 %"),
        ("bs=4k", "waited for a CPU", "5.000", "5.000", "", ""),
    ]


def test_steps_keep_their_frequency_until_the_next_change_on_axes_that_both_arms_share() -> None:
    arms = [
        ("baseline", line(1_000_000, (25 * MS, 500_000))),
        ("patched", line(1_000_000, (25 * MS, 2_000_000), span=50 * MS)),
    ]
    picture = stretch.steps(arms, "said")
    assert paths(picture, "step") == ["M0 23H250V34.5H1000", "M0 23H250V0H500"]
    assert paths(picture, "area")[1] == "M0 46V23H250V0H500V46z"
    assert [t for t in texts(picture) if t not in {"baseline", "patched"}] == [
        *("2000", "500") * 2,
        *("0", "20", "40", "60", "80", "100"),
    ]


def test_what_the_ring_lost_is_not_drawn_and_is_counted() -> None:
    lost = line(700_000, (60 * MS, 900_000), lost=12, known_from_ns=50 * MS)
    assert paths(stretch.steps([("patched", lost)], "said"), "step") == ["M500 10.2H600V0H1000"]
    [panel] = recorded.timeline_panels(arch_of(timelines=[timeline("policy0", FrequencyLineDoc(), lost)]), "dd")
    assert "baseline: nothing recorded" in texts(panel.picture)
    assert "patched: 1 change in 100.0 ms, 12 lost" in texts(panel.picture)


def test_policies_that_never_changed_are_a_sentence() -> None:
    still, moving = line(700_000), line(700_000, (5 * MS, 900_000))
    arch = arch_of(
        timelines=[
            timeline("policy0", still, moving),
            timeline("policy2", still, still),
            timeline("policy3", still, still),
            timeline("policy2", still, line(800_000), case="other"),
        ]
    )
    assert [p.label for p in recorded.timeline_panels(arch, "dd")] == ["bs=4k, CPUs 0-1"]
    assert recorded.steady_lines(arch, "dd") == [
        "bs=4k: CPUs 2-3 at 700 MHz",
        "other: CPU 2 at 700 MHz (baseline) and 800 MHz (patched)",
    ]
    assert recorded.timeline_seed(arch, "dd") == "1.1"
    assert recorded.timeline_panels(arch, "hackbench") == []


def test_the_table_behind_the_steps_is_bounded_and_says_so() -> None:
    most = recorded.MOST_POINTS
    many = line(700_000, *((n * MS, 700_000 + n) for n in range(1, most + 5)), total=9999)
    one = timeline("policy0", line(1_800_000, (5_500_250, 500_000)), many)
    rows = list(recorded.timeline_rows(arch_of(timelines=[one]), "dd"))
    assert rows[0] == ("bs=4k, CPUs 0-1", "baseline", "1800 from 0, 500 from 5.5")
    assert [row[:2] for row in rows[1:]] == [("bs=4k, CPUs 0-1", "patched")]
    points = rows[1][2].split(", ")
    assert points[:2] == ["700 from 0", "700.001 from 1"]
    assert points[most:] == ["and 5 more in result.json"]
    [panel] = recorded.timeline_panels(arch_of(timelines=[one]), "dd")
    assert f"patched: 9999 changes ({most + 4} drawn) in 100.0 ms" in texts(panel.picture)


def test_hostile_labels_are_text() -> None:
    hostile = "</title><script>alert(1)</script>\u202e"
    shares = RunningTimesDoc(cpus={hostile: 1.0}, clusters={hostile: 1.0})
    arch = arch_of(
        placement_times=[PlacementTimesDoc(workload="dd", case=hostile, baseline=shares)],
        timelines=[timeline(hostile, line(1), line(1, (1, 2)), case=hostile)],
        clusters={hostile: [0], "b": [1]},
    )
    pictures = [panel.picture for panel, _ in recorded.placement_panels(arch, "dd")]
    for picture in [*pictures, *(panel.picture for panel in recorded.timeline_panels(arch, "dd"))]:
        assert not list(parsed(picture).iter("script"))
        assert "\u202e" not in picture
