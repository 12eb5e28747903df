# SPDX-License-Identifier: GPL-2.0-or-later
"""How figures and texts are spelled."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.status import Mode
from kpatch_ci.report.clean import folded, plain_ascii, printable, quoted, safe_json, tail
from kpatch_ci.report.document import as_document
from kpatch_ci.report.schema import ArchDoc
from kpatch_ci.report.view import (
    cases,
    counters,
    figure,
    interval,
    mean,
    migration_rates,
    percent,
    primaries,
    probability,
    sample_count,
)
from tests.fakes.results import arch_result, comparison, run_result


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (3.3, "+3.30"),
        (-0.004, "-0.00"),
        (9.996, "+10.0"),
        (-99.96, "-100"),
        (-9999.4, "-9999"),
        (123456.0, "+1e5"),
        (1e12, "+1e12"),
    ],
)
def test_a_percentage_is_signed_and_short(value: float | None, text: str) -> None:
    assert percent(value) == text
    assert len(text) <= 5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0"),
        (0.16123, "0.1612"),
        (1234.56, "1235"),
        (0.0012345, "0.001234"),
        (99999999.0, "99999999"),
        (1e-5, "1.00e-05"),
    ],
)
def test_a_figure_has_four_digits(value: float | None, text: str) -> None:
    assert figure(value) == text


def test_an_interval_and_a_probability() -> None:
    assert interval((-1.0, 12.34)) == "-1.00..+12.3"
    assert interval(None) == "-"
    assert [probability(p) for p in (0.0421, 0.00001, None)] == ["0.0421", "<.0001", "-"]


def test_a_mean_leaves_out_what_is_missing() -> None:
    assert mean([1.0, None, 3.0]) == 2.0
    assert mean([None]) is None


def arch_doc(*names: tuple[str, str, bool]) -> ArchDoc:
    figures = tuple(comparison(case=c, metric=m, primary=p) for m, c, p in names)
    return as_document(run_result(("S", arch_result(comparisons=figures)))).series[0].arches[0]


def test_cases_are_of_the_primary_metric_and_the_rest_are_counters() -> None:
    arch = arch_doc(
        ("time", "all", True),
        ("time", "groups=1", False),
        ("idle_ms", "groups=1", False),
        ("wakeups", "groups=1", False),
    )
    assert [c.metric for c in primaries(arch)] == ["time"]
    assert [c.case for c in cases(arch)] == ["groups=1"]
    assert [c.metric for c in counters(arch)] == ["idle_ms", "wakeups"]
    assert counters(arch, "dd") == []


def test_without_a_primary_the_known_counters_are_told_apart() -> None:
    arch = arch_doc(("time", "groups=1", False), ("migrations", "groups=1", False))
    assert [c.metric for c in cases(arch)] == ["time"]
    assert [c.metric for c in counters(arch)] == ["migrations"]


def counted(moved: Comparison) -> ArchDoc:
    switches = comparison(metric="context_switches", baseline=(1000.0, 2000.0, 4000.0), patched=(1000.0, 500.0, 2000.0))
    figures = (comparison(case="all", primary=True), switches, moved)
    return as_document(run_result(("S", arch_result(comparisons=figures)))).series[0].arches[0]


def test_migrations_per_1000_switches_are_the_mean_over_the_pairs() -> None:
    arch = counted(comparison(metric="migrations", baseline=(100.0, 100.0, 600.0), patched=(0.0, 1.0, 2.0)))
    [(case, before, after)] = migration_rates(arch, "hackbench")
    assert (case, round(before, 9), round(after, 9)) == ("groups=8", 100, 1)
    assert migration_rates(arch, "dd") == []


def test_without_both_counters_of_the_same_seeds_there_is_no_rate() -> None:
    assert (
        migration_rates(counted(comparison(metric="migrations", seeds=(), baseline=(), patched=())), "hackbench") == []
    )
    assert migration_rates(arch_doc(("time", "all", True), ("migrations", "groups=1", False)), "hackbench") == []


def test_printable_shows_what_hides_or_reorders_text_by_its_number() -> None:
    assert printable("a\u202eb\u2066c\u200bd\u00ad") == "a<U+202E>b<U+2066>c<U+200B>d<U+00AD>"


def test_json_keeps_every_character_and_shows_none_that_would_steer_a_terminal() -> None:
    text = json.dumps({"a\u202e": "\x9b31m\u200b\u00e9\x1b"}, ensure_ascii=False)
    assert json.loads(safe_json(text)) == json.loads(text)
    assert not {"\u202e", "\x9b", "\u200b", "\x1b"} & set(safe_json(text))
    assert "\u00e9" in safe_json(text)


def test_printable_drops_escape_sequences_control_characters_and_surrogates() -> None:
    assert (
        printable("\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\x00\x08\x85\udc80\ufffe\tend\r\nnext\rlast")
        == "red x\tend\nnext\nlast"
    )


def test_a_tail_is_the_last_lines_that_say_something() -> None:
    assert tail("a\n\nb  \n \nc\n", 2) == ["b", "c"]


def test_ascii_keeps_what_can_be_read() -> None:
    assert plain_ascii("J\u00f6rg \u2013 \u201cx\u201d \u2026 \u4e2d") == 'Jorg - "x" ... ?'


def test_folding_and_quoting_keep_the_width() -> None:
    assert folded("aaa bbb ccc", 8, "- ", "  ") == ["- aaa", "  bbb", "  ccc"]
    assert quoted("abcdefgh\nij", 6, "| ") == ["| abcd", "| efgh", "| ij"]


def test_what_was_compared_is_counted_in_pairs_and_boots_where_these_differ() -> None:
    def said(**changes: Any) -> str:
        made = replace(comparison("w", case="all", primary=True), **changes)
        (found,) = primaries(as_document(run_result(("S", arch_result(comparisons=(made,))))).series[0].arches[0])
        return sample_count(found)

    assert said() == said(units=3) == "3 pairs"
    assert said(units=2) == "3 pairs of 2 boots"
    assert said(units=1) == "3 pairs of 1 boot"
    assert said(mode=Mode.KVM) == "3 and 3 runs"
