# SPDX-License-Identifier: GPL-2.0-or-later
"""Messages, verbosity and sizes."""

from __future__ import annotations

import json
import logging

import pytest

from kpatch_ci.cli.output import print_json, say, set_verbosity, size


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (-1, ["error: e"]),
        (0, ["i", "warning: w", "error: e"]),
        (1, ["d", "i", "warning: w", "error: e"]),
        (7, ["d", "i", "warning: w", "error: e"]),
    ],
)
def test_verbosity_decides_what_is_said(level: int, shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    set_verbosity(level)
    set_verbosity(level)
    child = logging.getLogger("kpatch_ci.store")
    child.debug("d")
    say("i")
    child.warning("w")
    child.error("e")
    out = capsys.readouterr()
    assert out.err.splitlines() == [f"kpatch-ci: {line}" for line in shown]
    assert out.out == ""


def test_json_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "grün"})
    assert json.loads(capsys.readouterr().out) == {"name": "grün"}


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1500, "1.5 kB"),
        (306_000_000, "306 MB"),
        (12 * 10**9, "12.0 GB"),
        (2 * 10**12, "2.0 TB"),
    ],
)
def test_sizes_are_for_people(count: int, text: str) -> None:
    assert size(count) == text
