# SPDX-License-Identifier: GPL-2.0-or-later
"""What a bisection leaves to read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kpatch_ci.model.bisect import (
    Bisection,
    Change,
    Class,
    Commit,
    Ending,
    Ends,
    Find,
    How,
    Proof,
    Spent,
    Step,
    Tally,
)
from kpatch_ci.report.bisect import WIDTH, as_plain, from_plain, to_json, to_text, write_bisection


def commit(number: int, subject: str = "") -> Commit:
    return Commit(
        f"{number:040x}", "t" * 40, (f"{number - 1:040x}",), "Åsa Ö", "a@b.c", "2026-01-02", subject or f"c{number}"
    )


CHANGE = Change(-22.5, (-25.0, -20.0), 6, 0.9993, "sign-flip", (1.0,) * 6, (1.225,) * 6)
ENDS = Ends(True, "bad is worse than good: -22.50 %", "g", "b", change=CHANGE, half_percent=-10.7, boots=6, most=48)
STEPS = (
    Step(commit(5), Class.BAD, How.MEASURED, "-22.50 % against good", "k5", change=CHANGE),
    Step(commit(3), Class.GOOD, How.SAME_KERNEL, "its kernel is that of 000000000001", "g", like=commit(1).hash),
    Step(commit(4), Class.SKIP, How.NOT_BUILT, "make failed with exit status 2"),
)
FOUND = Bisection(
    Ending.FOUND,
    "it is",
    "time of hackbench",
    Find.METRIC,
    "x86_64",
    "x86_64-8",
    "linux v1..v2",
    commit(1, "good one"),
    commit(9),
    8,
    ENDS,
    STEPS,
    first_bad=commit(5, "sched: a subject"),
    files=tuple(f"a/{n}.c" for n in range(20)),
    proofs=(Proof(commit(4), Class.GOOD, "measured", CHANGE, 98.2),),
    log="git bisect start\n",
    error=0.001,
    spent=Spent(12.3, 3, 8.0, 18, 18, 2),
    command="./kpatch-ci bisect",
)


def test_the_text_fits_a_mail() -> None:
    text = to_text(FOUND)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "\n %" not in text.replace("\n      ", "\n ")


def test_the_text_says_what_was_found_and_why() -> None:
    text = to_text(FOUND)
    assert 'Fixes: 000000000000 ("sched: a subject")' in text
    assert "Asa O <a@b.c>, 2026-01-02" in text
    assert "20 file(s): a/0.c" in text
    assert "and 8 more" in text
    assert "98 % of the difference" in " ".join(text.split())
    assert "  1 000000000000 bad   measured           -22.50     -25.00 -20.00   6" in text
    assert "  2 000000000000 good  as 000000000000" in text
    assert "step 3: make failed with exit status 2" in text
    assert "Each of the 1 measured step(s) has the wrong class with a probability of" in text
    assert "12 s: 3 kernels built (8 s), 18 boots, 18 replicates, after 2 step(s)" in text


def test_a_patch_of_a_series_has_its_number_and_no_fixes_line() -> None:
    text = to_text(replace(FOUND, patch=(2, 5)))
    assert "First bad commit (patch 2 of 5)" in text
    assert "Fixes:" not in text


def test_an_answer_that_does_not_hold_is_not_called_found() -> None:
    text = to_text(replace(FOUND, ending=Ending.CONTRADICTED, why="its parent is bad too"))
    assert "First bad commit" not in text
    assert "Fixes:" not in text
    assert "What git answers" in text
    assert "Not narrowed down to one commit: its parent is bad too" in text


def test_candidates_are_listed() -> None:
    text = to_text(
        replace(FOUND, ending=Ending.SKIPPED, first_bad=None, proofs=(), candidates=(commit(4), commit(5, "another")))
    )
    assert "  000000000000 another" in text


def test_a_parent_that_could_not_be_judged_is_told() -> None:
    text = " ".join(to_text(replace(FOUND, proofs=(Proof(commit(4), Class.SKIP, "does not build"),))).split())
    assert "could not be judged (does not build): git infers that it is good" in text


def test_tallies_stand_where_figures_would() -> None:
    step = Step(commit(5), Class.BAD, How.TRIED, "seen in 5 of 15: BUG", tally=Tally(5, 15, "BUG"))
    ends = Ends(True, "shown", tally=Tally(2, 6), boots=15)
    text = to_text(replace(FOUND, find=Find.CRASH, steps=(step,), ends=ends, error=None))
    assert "seen 5  15" in text
    assert "A step is good after 15 boot(s) that do not show it." in text


def test_json_comes_back_as_it_was(tmp_path: Path) -> None:
    assert from_plain(json.loads(to_json(FOUND))) == FOUND
    assert next(iter(as_plain(FOUND))) == "schema"
    with pytest.raises(ValueError, match="kpatch-ci/result/1"):
        from_plain({"schema": "kpatch-ci/result/1"})
    write_bisection(replace(FOUND, log=""), tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bisect.json", "bisect.txt"]
