# SPDX-License-Identifier: GPL-2.0-or-later
"""A build after every patch and checkers' findings, in every report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

from rich.console import Console

from kpatch_ci.model.result import ArchResult
from kpatch_ci.report.checks import all_lines, check_line, each_line
from kpatch_ci.report.document import as_document
from kpatch_ci.report.failures import failures
from kpatch_ci.report.junit import to_junit
from kpatch_ci.report.lines import WIDTH
from kpatch_ci.report.markdown import to_markdown
from kpatch_ci.report.schema import ArchDoc
from kpatch_ci.report.terminal import print_failures, show_checks
from kpatch_ci.report.text import to_text
from tests.fakes import results


def arch(made: ArchResult) -> ArchDoc:
    return as_document(results.run_result(("s", made))).series[0].arches[0]


BROKEN = results.not_bisectable()
WHOLE = results.arch_result(each=results.patch_builds(broken=False), checks=results.checks())


def test_json_has_every_patch_and_the_first_that_breaks() -> None:
    each = arch(BROKEN).each
    assert each is not None
    assert (str(each.status), each.first_break, [p.number for p in each.patches]) == ("failed", 2, [1, 2, 3])
    assert each.patches[0].new_warnings[0].context == "f"
    assert arch(results.arch_result()).each is None


def test_the_line_says_which_patch_where_and_whether_the_end_is_whole() -> None:
    each = arch(BROKEN).each
    assert each is not None
    line = each_line(each)
    assert line.startswith("not bisectable: patch 2/3 `b: ")
    assert line.endswith("does not build on arm64; the series' end does")
    whole = arch(WHOLE).each
    assert whole is not None
    assert each_line(whole) == "every one of 3 patches builds; 1 new warning"


def test_checkers_lines_count_and_say_what_was_not_checked() -> None:
    w1, mails, sparse = arch(WHOLE).checks
    assert check_line(w1) == "1 new finding in 4 objects (1 more could not be shown to it)"
    assert check_line(mails) == "1 new finding in 3 patches"
    assert check_line(sparse) == "error: make checked nothing"


def test_text_shows_it_in_its_columns() -> None:
    text = to_text(results.run_result(("s", BROKEN)))
    assert "  each:    not bisectable: patch 2/3" in text
    assert "kernel/a.c:9: error: 'x' undeclared" in text
    assert "kernel/a.c:7: warning: unused variable 'c'" in text
    assert "  W=1:     1 new finding in 4 objects" in text
    assert "patch 2: error: no sign-off [NO_SIGN]" in text
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "each:" not in to_text(results.run_result(("s", results.arch_result())))


def test_the_break_is_a_failure_with_the_compilers_words() -> None:
    found = [f for f in failures(as_document(results.run_result(("s", BROKEN)))) if f.stage == "each"]
    assert len(found) == 1
    assert "'x' undeclared" in found[0].log_tail
    assert found[0].reason == BROKEN.reason.replace("\udcff", "?")
    assert [f.stage for f in failures(as_document(results.run_result(("s", WHOLE))))] == ["check.sparse"]


def test_junit_has_a_case_a_patch_and_one_a_checker() -> None:
    root = ET.fromstring(to_junit(results.run_result(("s", BROKEN))))  # noqa: S314 (our own)
    cases = {c.get("name", "").split(" ")[0]: c for c in root.iter("testcase")}
    assert cases["each.1"].find("failure") is None
    broken = cases["each.2"].find("failure")
    assert broken is not None
    assert "'x' undeclared" in (broken.text or "")
    assert cases["check.W=1"].find("failure") is None
    assert "no prototype" in (cases["check.W=1"].findtext("system-out") or "")
    sparse = next(
        c
        for c in ET.fromstring(to_junit(results.run_result(("s", WHOLE)))).iter("testcase")  # noqa: S314
        if c.get("name") == "check.sparse"
    )
    assert sparse.find("error") is not None


def test_markdown_and_terminal_show_it_unread() -> None:
    text = to_markdown(results.run_result(("s", BROKEN)))
    assert "### s on arm64: patches and checks" in text
    assert "kernel/a.c:9: error: 'x' undeclared" in text
    console = Console(record=True, width=200)
    show_checks(console, results.run_result(("s", BROKEN)))
    print_failures(console, results.run_result(("s", BROKEN)))
    shown = console.export_text()
    assert "[bold]x[/bold]" in shown
    assert "\x1b[31mfoo" not in shown
    assert "each failed: s on arm64" in shown


def test_the_terminal_names_a_log_where_it_is(tmp_path: Path) -> None:
    """One that a stage left in the run's own directory stays there."""
    log = tmp_path / "logs" / "each-arm64-s-2.log"
    each = results.patch_builds()
    patches = (each.patches[0], replace(each.patches[1], log=log), each.patches[2])
    console = Console(record=True, width=200)
    made = replace(BROKEN, each=replace(each, patches=patches))
    print_failures(console, results.run_result(("s", made)), tmp_path)
    assert f"log: {log}" in console.export_text()


def test_long_lists_are_cut_and_counted() -> None:
    many = results.patch_builds(broken=False)
    warning = many.patches[0].new_warnings[0]
    object.__setattr__(many.patches[0], "new_warnings", (warning,) * 25)
    lines = list(all_lines(arch(results.arch_result(each=many)).each, []))
    assert sum("unused variable" in line for line in lines) == 20
    assert "  and 5 more: see result.json" in lines
