# SPDX-License-Identifier: GPL-2.0-or-later
"""Variants of a series: other baseline patches, or its change switched off."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kpatch_ci.model.claim import Claim
from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.series import BASELINE, Arm, Contrast, Switches
from kpatch_ci.series.folder import folder_variants, load_series
from kpatch_ci.series.variants import variant, variant_names

YAML = """\
title: One
files: [mail.txt]
adds: {sched_features: [F]}
switches: {sched_features: [F], sysctls: {kernel/ticks: 0}}
claims: [{text: "more of it", says: better, workload: dd, metric: throughput}]
variants:
  other-base:
    baseline_patches: [base.eml]
    notes: Without it nothing shows.
notes: Of the series proper.
"""
OFF = Switches(("F",), (("kernel/ticks", "0"),))


@pytest.fixture
def root(tmp_path: Path, mails: Path) -> Path:
    folder = tmp_path / "one"
    folder.mkdir()
    shutil.copy(mails / "format-patch.patch", folder / "mail.txt")
    shutil.copy(mails / "quoted-printable.eml", folder / "base.eml")
    (folder / "series.yaml").write_text(YAML)
    (tmp_path / "both").mkdir()
    (tmp_path / "both/series.yaml").write_text("title: Both\nstack: [one]\n")
    return tmp_path


def test_the_series_proper_compares_the_plain_tree_with_the_patched_one(root: Path) -> None:
    series = load_series(root / "one", root)
    assert series.arms == (Arm(BASELINE), Arm("one"))
    assert series.claims == (Claim("more of it", workload="dd", metric="throughput", says="better"),)
    assert variant_names(series) == ("other-base", "carried", "switched")


def test_carried_and_switched_use_the_same_kernel_and_tell_its_two_states_apart(root: Path) -> None:
    series = load_series(root / "one", root)
    carried, switched = variant(series, "carried"), variant(series, "switched")
    assert carried.arms == (Arm(BASELINE), Arm("one", OFF))
    assert switched.arms == (Arm("one", OFF), Arm("one"))
    assert [arm.label for arm in switched.arms] == ["one(off)", "one"]
    assert (carried.name, switched.name) == ("one+carried", "one+switched")
    assert (carried.patched_kernel, switched.patched_kernel) == ("one", "one")
    assert switched.contrast is Contrast.SWITCHED
    assert switched.claims == ()


def test_baseline_patches_go_into_both_arms_and_the_notes_are_the_variants_own(root: Path) -> None:
    other = variant(load_series(root / "one", root), "other-base")
    assert other.base is not None
    assert other.arms == (Arm("one+other-base-baseline"), Arm("one+other-base"))
    assert [p.author for p in other.base.patches] == ["Adä Example"]
    assert [p.author for p in other.patches] == ["Ada Example"]
    assert (other.notes, other.title) == ("Without it nothing shows.", "One (other-base)")
    assert other.claims == load_series(root / "one", root).claims


def test_a_stack_is_switched_off_with_its_members(root: Path) -> None:
    stack = load_series(root / "both", root)
    assert stack.switches == OFF
    assert variant(stack, "switched").arms == (Arm("both", OFF), Arm("both"))
    assert folder_variants(root / "both", root) == ("carried", "switched")
    assert folder_variants(root / "one", root) == ("other-base", "carried", "switched")


def test_an_unknown_variant_is_named_with_those_there_are(root: Path) -> None:
    series = load_series(root / "one", root)
    with pytest.raises(UserError, match=r"no variant 'of'.*other-base, carried, switched"):
        variant(series, "of")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("other-base:", "carried:", "'carried' cannot be its name"),
        ("other-base:", "a+b:", "'a+b' cannot be its name"),
        ("[base.eml]", "[bsae.eml]", "no file bsae.eml"),
        ("[base.eml]", "[]", "baseline_patches"),
        ("    notes: Without", '    ports: {"x": [base.eml]}\n    notes: Without', "x is no version"),
    ],
)
def test_what_is_wrong_with_a_variant_is_said_with_its_line(root: Path, old: str, new: str, complaint: str) -> None:
    path = root / "one/series.yaml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserErrors) as caught:
        load_series(root / "one", root)
    assert complaint in str(caught.value)
    assert "series.yaml:" in str(caught.value)


def test_a_stack_has_no_variants_of_its_own(root: Path) -> None:
    path = root / "both/series.yaml"
    path.write_text(path.read_text() + "variants: {x: {baseline_patches: [a]}}\n")
    with pytest.raises(UserErrors, match="variants: of a stack"):
        load_series(root / "both", root)
