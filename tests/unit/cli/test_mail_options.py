# SPDX-License-Identifier: GPL-2.0-or-later
"""What `check` and `try` take patches from, and what they say they took."""

from __future__ import annotations

import io
from pathlib import Path

import click
import git
import pytest
from rich.console import Console

from kpatch_ci.cli.mails import series_asked_for, show_patches
from kpatch_ci.model.errors import UserError
from tests.fakes.mails import diff_of, mail, mbox


def test_nothing_asked_for_is_none_and_contradictions_are_said() -> None:
    assert series_asked_for([], None, None, None, ()) is None
    with pytest.raises(click.UsageError, match="--repo is about --range"):
        series_asked_for([], None, Path(), None, ())
    with pytest.raises(click.UsageError, match="--revision is about MAILS"):
        series_asked_for([], None, None, 2, ())
    with pytest.raises(click.UsageError, match="without MAILS and --revision"):
        series_asked_for([Path("x")], "a..b", None, None, ())
    with pytest.raises(click.UsageError, match="without MAILS and --revision"):
        series_asked_for([], "a..b", None, 2, ())


def test_what_was_taken_and_left_out_is_shown_with_reasons(tmp_path: Path) -> None:
    box = tmp_path / "lamps.mbox"
    cover = mail("[PATCH v2 0/2] lamps", b"words\n")
    old = mail("[PATCH 2/2] lamp: b", diff=diff_of("old"))
    box.write_bytes(mbox(cover, old, mail("[PATCH v2 2/2] lamp: b", diff=diff_of("b"))))
    found = series_asked_for([box], None, None, None, ())
    assert found is not None
    series, base = found
    assert (series.name, base) == ("lamps", None)
    out = io.StringIO()
    show_patches(Console(file=out, width=1000), series)
    assert [line.rstrip() for line in out.getvalue().splitlines()] == [
        "lamps: [PATCH v2 2/2] lamp: b",
        "  by Ada Example <ada@lamps.example>, 1 file(s): kernel/lamp.c",
        f"  from {box} (mail 3)",
        "cover letter: lamps",
        "note: 1/2 is missing: tested without",
        "note: several revisions in it: v2 is the newest and is taken, v1 left out",
        f"left out: `[PATCH 2/2] lamp: b` in {box} (mail 2): v1, another revision",
        f"left out: `[PATCH v2 0/2] lamps` in {box} (mail 1): the cover letter, never applied",
    ]
    assert "1/2 is missing: tested without" in series.notes.splitlines(), "reports have it"
    older = series_asked_for([box], None, None, 1, ())
    assert older is not None
    assert older[0].patches[0].diff == diff_of("old")
    with pytest.raises(UserError, match="no patch of revision 7"):
        series_asked_for([box], None, None, 7, ())


def test_a_range_brings_its_own_tree(tmp_path: Path) -> None:
    repo = git.Repo.init(tmp_path / "r", initial_branch="main")
    for number in (1, 2):
        (tmp_path / "r" / "a").write_text(f"{number}\n")
        repo.git.add("a")
        repo.git.execute(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", f"lamp {number}"])
    base = repo.commit("HEAD~1").hexsha
    for place, trees in (
        (tmp_path / "r", ()),
        (None, (f"{tmp_path / 'r'}@main",)),
        (None, ("debian:6.1", str(tmp_path / "r"))),
    ):
        found = series_asked_for([], "HEAD~1..main", place, None, trees)
        assert found is not None
        series, tree = found
        assert [patch.subject for patch in series.patches] == ["lamp 2"]
        assert tree == f"{tmp_path / 'r'}@{base}"
        assert series.name == "HEAD-1..main"
