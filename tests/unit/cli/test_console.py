# SPDX-License-Identifier: GPL-2.0-or-later
"""What reaches the terminal of what a patch says."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from kpatch_ci.cli.console import SafeConsole
from kpatch_ci.cli.main import main
from kpatch_ci.cli.output import say, set_verbosity

NASTY = "a\x1b]0;title\x07\x1b[2Jb\x9b31m\u202ec\u2066d\x00"


def test_neither_texts_nor_cells_of_tables_reach_the_terminal_with_what_would_steer_it() -> None:
    stream = io.StringIO()
    console = SafeConsole(file=stream, force_terminal=True, width=80)
    table = Table("head")
    table.add_row(Text(NASTY))
    for thing in (Text(NASTY, style="bold"), table, NASTY):
        console.print(thing, markup=False, highlight=False)
    shown = stream.getvalue()
    assert shown.count("ab31m<U+202E>c<U+2") == 3, "a table's column is as wide as the text was"
    for bad in ("\x1b]0", "\x1b[2J", "\x9b", "\u202e", "\u2066", "\x00", "\x07"):
        assert bad not in shown, repr(bad)
    assert "\x1b[1m" in shown, "rich's own styles stay"


def test_messages_and_errors_are_made_safe_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    set_verbosity(0)
    say(NASTY)
    patch = tmp_path / "a.diff"
    patch.write_text("--- a/mm/\u202ex\n+++ b/mm/\u202ex\n@@ -1 +1 @@\n-a\n+b\n")
    assert main(["try", str(patch)]) == 2
    said = capsys.readouterr().err
    assert "<U+202E>c" in said
    assert "refused: the name 'mm/<U+202E>x'" in said
    assert not {"\u202e", "\x1b", "\x9b"} & set(said)
