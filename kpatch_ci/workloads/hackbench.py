# SPDX-License-Identifier: GPL-2.0-or-later
"""hackbench (rt-tests): groups of senders and receivers that wake each other. Its figure: time in s, 1 ms resolution.

An invocation keeps to its end the placement that it drew at its start, so a longer one is no more precise. Several
(``iterations``) are: each forks anew and draws anew.
"""

from __future__ import annotations

import re

from kpatch_ci.model.workload import Case, Metric, Scalar
from kpatch_ci.workloads.types import TIMEOUT, Kind, Label, Option, ParseError, Step, Values, Workload, number, text

TIME = Metric("time", "s", "lower")
BINARY = "/usr/bin/hackbench"
MOST_ITERATIONS = 40
"""So many command lines fit into a job."""

_TIME = re.compile(r"^Time: (\d+\.\d{3})$", re.MULTILINE)
_GROUPS = re.compile(r"^Running in (\w+) mode with (\d+) groups ", re.MULTILINE)
_TROUBLE = re.compile(r"^(?!Running in |Each sender |Time: |Signal \d+ caught)\S.*$", re.MULTILINE)

OPTIONS = (
    Option("groups", Kind.INTEGER, "groups of 20 senders and 20 receivers", 8, maximum=1000, label=Label.ALWAYS),
    Option("mode", Kind.CHOICE, "what the tasks are", "process", ("process", "thread"), label=Label.CHANGED),
    Option("transport", Kind.CHOICE, "what they talk over", "pipe", ("pipe", "socket"), label=Label.CHANGED),
    Option("work", Kind.INTEGER, "groups x loops where loops is not given: the same work at any number of groups", 200),
    Option("loops", Kind.INTEGER, "messages a sender sends to each receiver; work // groups unless given"),
    Option(
        "iterations",
        Kind.INTEGER,
        "invocations of hackbench in a replicate; its figures are their means",
        1,
        maximum=MOST_ITERATIONS,
    ),
    Option("datasize", Kind.INTEGER, "bytes a message", 100, maximum=1 << 20, label=Label.CHANGED),
    TIMEOUT,
)


def _complete(values: Values) -> dict[str, Scalar]:
    return {"loops": max(1, int(values["work"]) // int(values["groups"]))}


def _steps(case: Case) -> tuple[Step, ...]:
    argv = (
        BINARY,
        "--threads" if text(case, "mode") == "thread" else "--process",
        *(("--pipe",) if text(case, "transport") == "pipe" else ()),
        f"--groups={number(case, 'groups')}",
        f"--loops={number(case, 'loops')}",
        f"--datasize={number(case, 'datasize')}",
    )
    return (Step("run", argv),) * number(case, "iterations")


def parse(output: str, case: Case) -> dict[str, float]:
    """Seconds from the line ``Time: 0.207``. Any line that a run without trouble does not print is an error."""
    trouble = _TROUBLE.search(output)
    if trouble:
        raise ParseError(f"hackbench says: {trouble[0]}")
    running = _GROUPS.search(output)
    if running and (running[1], int(running[2])) != (_mode(case), number(case, "groups")):
        raise ParseError(f"hackbench ran {running[2]} groups in {running[1]} mode, not {case.label}")
    found = _TIME.findall(output)
    if len(found) != 1:
        raise ParseError(f"hackbench printed {len(found) or 'no'} line{'s' * (len(found) > 1)} `Time: `")
    seconds = float(found[0])
    if seconds <= 0:
        raise ParseError("hackbench took less than the 1 ms that it can tell; raise work or loops")
    return {TIME.name: seconds}


def _mode(case: Case) -> str:
    return "threaded" if text(case, "mode") == "thread" else "process"


HACKBENCH = Workload("hackbench", (TIME,), OPTIONS, _steps, parse, _complete)
