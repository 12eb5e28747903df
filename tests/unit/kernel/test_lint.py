# SPDX-License-Identifier: GPL-2.0-or-later
"""W=1 and sparse on what a series touches: only what is new."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kpatch_ci.debian.sparse import Sparse
from kpatch_ci.kernel.lint import W1, Checker, find_lint, lint, sparse_checker, sparse_diagnostics
from kpatch_ci.model.status import Status
from tests.unit.kernel.conftest import Lab

START = {
    "kernel/a.c": "fn a\nwarn1 old words\nsparse incorrect type;expected one;got another\nlock(x);\n",
    "kernel/b.c": "fn b\nwarn1 of an untouched file\n",
}


def test_w1_tells_what_the_series_adds_and_nothing_else(lab: Lab) -> None:
    pair = lab.pair(START, {"kernel/a.c": f"# moved\n{START['kernel/a.c']}fn more\nwarn1 new words\n"})
    found = lint(lab.builder, pair, W1)
    assert [(f.path, f.line, f.kind, f.text, f.source) for f in found.findings] == [
        ("kernel/a.c", 7, "-Wfake", "new words", "more")
    ]
    assert (found.status, found.checked, found.unchecked) == (Status.PASSED, 1, ())


def test_what_the_build_says_without_w1_is_told_there(lab: Lab) -> None:
    pair = lab.pair(START, {"kernel/a.c": f"{START['kernel/a.c']}warn plain\nwarn1 with it\n"})
    assert [d.text for d in pair.after.warnings] == ["plain"]
    assert [f.text for f in lint(lab.builder, pair, W1).findings] == ["with it"]


def test_the_second_time_it_is_looked_up(lab: Lab) -> None:
    pair = lab.pair(START, {"kernel/a.c": f"{START['kernel/a.c']}warn1 new words\n"})
    assert find_lint(lab.builder, pair, W1) is None
    first = lint(lab.builder, pair, W1)
    again = find_lint(lab.builder, pair, W1)
    assert again == replace(first, cached=True)


def test_a_new_file_has_no_old_words(lab: Lab) -> None:
    pair = lab.pair(START, {"lib/new.c": "fn n\nwarn1 fresh\n"})
    assert [f.text for f in lint(lab.builder, pair, W1).findings] == ["fresh"]


def test_sparse_is_told_apart_by_its_line_of_source(lab: Lab, tmp_path: Path) -> None:
    again = "sparse incorrect type;expected one;got another"
    pair = lab.pair(START, {"kernel/a.c": f"#\n{START['kernel/a.c']}{again}   # elsewhere\n{again}\n"})
    found = lint(lab.builder, pair, sparse_checker(Sparse(tmp_path, "1")))
    assert [(f.line, f.text) for f in found.findings] == [(6, "incorrect type; expected one; got another # elsewhere")]
    assert found.checked == 1


def test_an_object_that_make_will_not_check_is_named(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = lab.pair(START, {n: f"{t}# 1\n" for n, t in START.items()})
    checked = W1.checked

    def but_one(self: Checker, log: str) -> tuple[str, ...]:
        return tuple(o for o in checked(log) if o != "kernel/b")

    monkeypatch.setattr(Checker, "checked", but_one)
    found = lint(lab.builder, pair, W1)
    assert (found.checked, found.unchecked, found.status) == (1, ("kernel/b",), Status.PASSED)


def test_a_checker_that_checks_nothing_is_an_error_and_not_a_clean_bill(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = lab.pair(START, {"kernel/a.c": f"{START['kernel/a.c']}# 1\n"})

    def nothing(self: Checker, log: str) -> tuple[str, ...]:
        return ()

    monkeypatch.setattr(Checker, "checked", nothing)
    found = lint(lab.builder, pair, W1)
    assert found.status is Status.ERROR
    assert "checked nothing" in found.reason
    assert find_lint(lab.builder, pair, W1) is None


def test_a_series_that_makes_nothing_to_be_compiled_has_nothing_to_check(lab: Lab) -> None:
    found = lint(lab.builder, lab.pair(START, {"Documentation/x.rst": "x\n"}), W1)
    assert (found.status, found.checked, found.findings) == (Status.PASSED, 0, ())


def test_sparses_messages_have_their_other_lines_and_the_line_of_source(tmp_path: Path) -> None:
    (tmp_path / "fs").mkdir()
    (tmp_path / "fs/a.c").write_text("one\n\tx  = y;\nthree\n")
    log = (
        "  CHECK   /src/fs/a.c\n"
        "/src/fs/a.c:2:12: warning: incorrect type in assignment (different base types)\n"
        "/src/fs/a.c:2:12:    expected int\n"
        "/src/fs/a.c:2:12:    got restricted __be32 [usertype] y\n"
        "/src/fs/a.c: note: in included file:\n"
        "/src/fs/a.c:1:1: warning: unused variable 'gcc' [-Wunused-variable]\n"
        "/src/fs/a.c:3:1: error: bad thing\n"
    )
    first, second = sparse_diagnostics(log, tmp_path)
    assert first.text == (
        "incorrect type in assignment (different base types); expected int; got restricted __be32 [usertype] y"
    )
    assert (first.path, first.line, first.context) == ("fs/a.c", 2, "x = y;")
    assert (second.severity, second.context) == ("error", "three")


def test_no_line_of_a_file_outside_the_tree_is_shown(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key\n")
    source = tmp_path / "src"
    source.mkdir()
    (source / "a.c").symlink_to(secret)
    log = "/src/a.c:1:1: warning: w\n/src/../secret:1:1: warning: w\n/secret:1:1: warning: w\n"
    assert [d.context for d in sparse_diagnostics(log, source)] == ["", "", ""]
