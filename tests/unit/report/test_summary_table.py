# SPDX-License-Identifier: GPL-2.0-or-later
"""The table that kernel people know from mmtests: its exact lines, and its figures computed again from the samples."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.status import Mode, Verdict
from kpatch_ci.report.document import as_document
from kpatch_ci.report.summary_table import summary_table
from kpatch_ci.report.text import to_text
from tests.fakes.results import SEEDS, arch_result, arm_result, build, comparison, run_result

ROW = re.compile(
    r"^(Amean|Hmean|Min|Max|Stddev|CoeffVar|BAmean-95|BHmean-95) +(\S+) +(\S+) \( +(\S+?)%?\s*\) +(\S+) ([(*]) *(\S+?)[% ]"
)


def table(*comparisons: Comparison, alpha: float = 0.05, name: str = "wakeup-gran") -> list[str]:
    document = as_document(run_result((name, arch_result(comparisons=comparisons))))
    series = document.series[0]
    return summary_table(series, series.arches[0], series.arches[0].comparisons, alpha)


def test_times_have_arithmetic_means_and_asterisks_where_the_test_says_so() -> None:
    lines = table(
        comparison(case="groups=1", baseline=(0.2, 0.3, 0.4), patched=(0.1, 0.2, 0.3), p_adjusted=0.04),
        comparison(case="groups=16", baseline=(1.0, 1.0, 1.0), patched=(1.0, 1.1, 1.2), p_adjusted=0.05),
    )
    assert lines == [
        "                                6.1.140             6.1.140",
        "                               baseline         wakeup-gran",
        "Amean     groups=1   0.30000 (   0.00%)  0.20000 *  33.33%*",
        "Amean     groups=16  1.00000 (   0.00%)  1.10000 ( -10.00%)",
        "Min       groups=1   0.20000 (   0.00%)  0.10000 (  50.00%)",
        "Min       groups=16  1.00000 (   0.00%)  1.00000 (   0.00%)",
        "Max       groups=1   0.40000 (   0.00%)  0.30000 (  25.00%)",
        "Max       groups=16  1.00000 (   0.00%)  1.20000 ( -20.00%)",
        "Stddev    groups=1   0.10000 (   0.00%)  0.10000 (   0.00%)",
        "Stddev    groups=16  0.00000 (   0.00%)  0.10000 (      - )",
        "CoeffVar  groups=1  33.33333 (   0.00%) 50.00000 ( -50.00%)",
        "CoeffVar  groups=16  0.00000 (   0.00%)  9.09091 (      - )",
        "BAmean-95 groups=1   0.25000 (   0.00%)  0.15000 (  40.00%)",
        "BAmean-95 groups=16  1.00000 (   0.00%)  1.05000 (  -5.00%)",
        "  *  %*  significant: p below 0.05 after Holm's adjustment",
    ]


def test_rates_have_harmonic_means_and_shared_settings_stand_above() -> None:
    long = "rw=write,bs=4k,fs={},oflag=direct+dsync,latency_us=100"
    rates: dict[str, Any] = {"metric": "throughput", "unit": "MB/s", "better": "higher"}
    lines = table(
        comparison(case=long.format("xfs"), baseline=(40.0, 60.0, 60.0), patched=(60.0, 60.0, 60.0), **rates),
        comparison(case=long.format("ext4"), baseline=(10.0, 10.0, 10.0), patched=(5.0, 5.0, 5.0), **rates),
    )
    assert lines[0] == "  every case: rw=write,bs=4k,oflag=direct+dsync,latency_us=100"
    assert lines[3:5] == [
        "Hmean     fs=xfs   51.4286 (   0.00%)  60.0000 *  16.67%*",
        "Hmean     fs=ext4  10.0000 (   0.00%)   5.0000 * -50.00%*",
    ]
    assert lines[-2] == "BHmean-95 fs=ext4  10.0000 (   0.00%)   5.0000 ( -50.00%)"


def test_a_long_name_of_a_kernel_is_folded_below_its_release() -> None:
    assert table(comparison(), name="a-series-with-a-very-long-name-indeed")[:5] == [
        "                               6.1.140             6.1.140",
        "                              baseline    a-series-with-a-",
        "                                           very-long-name-",
        "                                                    indeed",
        "Amean     groups=8   2.0000 (   0.00%)   1.8000 *  10.00%*",
    ]


def test_a_variants_arms_are_its_columns() -> None:
    document = as_document(run_result(("s", arch_result(comparisons=(comparison(),)))))
    series = document.series[0].model_copy(update={"arms": ("s(off)", "s(on)")})
    assert summary_table(series, series.arches[0], series.arches[0].comparisons, 0.05)[1].split() == ["s(off)", "s(on)"]


def test_an_arm_without_samples_has_dashes() -> None:
    lines = table(comparison(mode=Mode.TCG, patched=(None, None, None), p_adjusted=None))
    assert [line.partition("0.00%)")[2] for line in lines[2:-1]] == ["        - (      - )"] * 6


def arms(values: st.SearchStrategy[float], size: int) -> st.SearchStrategy[tuple[float, ...]]:
    return st.lists(values, min_size=size, max_size=size).map(tuple)


@st.composite
def comparison_sets(draw: st.DrawFn) -> list[Comparison]:
    """Cases of one workload; figures of any size that a workload could have."""
    better = draw(st.sampled_from(["higher", "lower"]))
    size = draw(st.integers(1, 14))
    values = st.floats(1e-4, 1e7)
    made = []
    for number in range(draw(st.integers(1, 4))):
        verdict = draw(st.sampled_from(list(Verdict)))
        p = draw(st.none() | st.floats(0, 1))
        made.append(
            comparison(
                case=f"n={number},fs=xfs",
                better=better,
                seeds=(SEEDS * 5)[:size],
                baseline=draw(arms(values, size)),
                patched=draw(arms(values, size)),
                p_adjusted=p,
                verdict=verdict,
            )
        )
    return made


AGAIN: dict[str, Callable[[Sequence[float], str], float]] = {
    "Amean": lambda v, _: float(numpy.mean(v)),
    "Hmean": lambda v, _: float(stats.hmean(v)),
    "Min": lambda v, _: min(v),
    "Max": lambda v, _: max(v),
    "Stddev": lambda v, _: float(numpy.std(v, ddof=1)),
    "CoeffVar": lambda v, _: 100 * float(numpy.std(v, ddof=1)) / float(numpy.mean(v)),
    "BAmean-95": lambda v, _: float(numpy.mean(numpy.sort(v)[: max(1, int(len(v) * 0.95 + 1e-9))])),
    "BHmean-95": lambda v, _: float(stats.hmean(numpy.sort(v)[::-1][: max(1, int(len(v) * 0.95 + 1e-9))])),
}


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(comparison_sets())
def test_every_figure_can_be_computed_again_from_the_samples(cases: list[Comparison]) -> None:
    lines = table(*cases)
    labels = {f"n={number}": c for number, c in enumerate(cases)} if len(cases) > 1 else {"n=0,fs=xfs": cases[0]}
    found = [match for line in lines if (match := ROW.match(line))]
    assert len(found) == 6 * len(cases)
    for name, label, before, own, after, mark, percent in (match.groups() for match in found):
        c = labels[label]
        old, new = ([v for v in arm if v is not None] for arm in (c.baseline, c.patched))
        significant = name in ("Amean", "Hmean") and c.p_adjusted is not None and c.p_adjusted < 0.05
        assert mark == ("*" if significant else "(")
        if len(old) == 1 and name in ("Stddev", "CoeffVar"):
            assert (before, own, after, percent) == ("-",) * 4
            continue
        assert own == "0.00"
        a, b = AGAIN[name](old, c.better), AGAIN[name](new, c.better)
        for shown, value in ((before, a), (after, b)):
            digits = len(shown.partition(".")[2])
            assert float(shown) == pytest.approx(value, rel=1e-3 if "e" in shown else 1e-9, abs=0.51 * 10**-digits)
        if percent != "-" and a > 1e-6 and len(percent) < 8:
            better = "lower" if name in ("Stddev", "CoeffVar") else c.better
            sign = 1 if better == "higher" else -1
            assert float(percent) == pytest.approx(
                sign * 100 * (b - a) / a, rel=0.35 if "e" in percent else 1e-5, abs=0.51
            )


TEXTS = st.text(st.characters(codec="utf-8"), max_size=90)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(comparison_sets(), TEXTS, TEXTS, TEXTS, st.none() | st.floats(0, 1e90))
def test_every_line_of_any_document_is_ascii_and_fits(
    cases: list[Comparison], name: str, case: str, release: str, mde: float | None
) -> None:
    odd = comparison(
        name or "w", case=case, change_percent=-1e90, ci_percent=(-1e90, 1e90), reason=name, mde_percent=mde
    )
    head = comparison(case="all", primary=True, mde_percent=mde, reason=case)
    counter = comparison(metric="wakeups", case=case, baseline=(-1e200,) * 3)
    arch = arch_result(
        comparisons=(head, *cases, odd, counter), patched=arm_result("patched", build=build("patched", release=release))
    )
    text = to_text(run_result((name, arch), command="./kpatch-ci run"))
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 72
