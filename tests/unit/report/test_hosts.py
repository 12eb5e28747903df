# SPDX-License-Identifier: GPL-2.0-or-later
"""Every report says which machines did the work, and which were lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kpatch_ci.model.hosts import HostUse
from kpatch_ci.model.result import RunResult
from kpatch_ci.report.document import as_document, to_document
from kpatch_ci.report.hosts import host_line, lost_hosts
from kpatch_ci.report.html.page import to_html
from kpatch_ci.report.junit import to_junit
from kpatch_ci.report.markdown import to_markdown
from kpatch_ci.report.text import to_text
from tests.fakes.results import run_result

HOSTS = (
    HostUse("here", 3),
    HostUse("board<1>", 40, 12_300_000, 5_500),
    HostUse("attic", 1, 999, 10, "it gave no sign of life for 15 s"),
)


def test_the_line_counts_stages_and_bytes() -> None:
    line = host_line(as_document(replace(run_result(), hosts=HOSTS)))
    assert (
        line
        == "here 3 stages; board<1> 40 stages (12.3 MB sent, 6 kB received); attic 1 stage (1 kB sent, 0 kB received), LOST"
    )


def test_result_json_has_them_and_a_run_of_this_machine_alone_has_none() -> None:
    document = to_document(replace(run_result(), hosts=HOSTS))
    assert document["hosts"][2] == {
        "name": "attic",
        "stages": 1,
        "sent": 999,
        "received": 10,
        "lost": "it gave no sign of life for 15 s",
    }
    assert to_document(run_result())["hosts"] == []
    assert lost_hosts(as_document(run_result())) == []


@pytest.mark.parametrize("write", [to_text, to_markdown, to_html, to_junit])
def test_each_report_names_the_one_that_was_lost(write: Callable[[RunResult], str]) -> None:
    text = " ".join(write(replace(run_result(), hosts=HOSTS)).split())
    assert "attic 1 stage" in text
    assert "board<1>" not in text or write is to_text or write is to_markdown
    if write is not to_junit:
        assert "attic was lost: it gave no sign of life for 15 s." in text
    assert "attic" not in write(run_result())
