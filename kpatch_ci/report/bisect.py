# SPDX-License-Identifier: GPL-2.0-or-later
"""What a bisection leaves: bisect.json (``kpatch-ci/bisect/1``), bisect.txt to paste into a mail, bisect.log for `git bisect replay`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from kpatch_ci.model.bisect import Bisection, Change, Ending, How, Proof, Step
from kpatch_ci.report.clean import folded, one_line, plain_ascii, safe_json
from kpatch_ci.store.atomic import write_text

SCHEMA = "kpatch-ci/bisect/1"
WIDTH = 72
JSON, TEXT, LOG = "bisect.json", "bisect.txt", "bisect.log"
MAX_FILES = 12
_GLUE = "\u00b6%"
_FORM = TypeAdapter(Bisection)
_HEAD = f"{'#':>3} {'commit':12} {'class':5} {'how':16} {'chg %':>8} {'interval %':>17} {'n':>3}"


def as_plain(found: Bisection) -> dict[str, Any]:
    """The document, as JSON's own types."""
    return {"schema": SCHEMA, **_FORM.dump_python(found, mode="json")}


def from_plain(document: dict[str, Any]) -> Bisection:
    """The inverse. Raises ValueError for another schema, or what does not fit it."""
    if document.get("schema") != SCHEMA:
        raise ValueError(f"schema is {document.get('schema')!r}, not {SCHEMA}")
    return _FORM.validate_python({k: v for k, v in document.items() if k != "schema"})


def to_json(found: Bisection) -> str:
    """bisect.json's text."""
    return safe_json(json.dumps(as_plain(found), indent=1, ensure_ascii=False, allow_nan=False)) + "\n"


def write_bisection(found: Bisection, output: Path) -> None:
    """Write the three files, each atomically; the log only where git was asked anything."""
    write_text(output / TEXT, to_text(found))
    if found.log:
        write_text(output / LOG, found.log)
    write_text(output / JSON, to_json(found))


def to_text(found: Bisection) -> str:
    """bisect.txt: ASCII, at most 72 columns, ending in a newline."""
    lines = [
        f"kpatch-ci bisect: {found.question}",
        "=" * WIDTH,
        *_pair("tree", f"{found.tree}, {found.commits} commit(s) from good to bad"),
        *_pair("good", f"{found.good.short} {found.good.subject}"),
        *_pair("bad", f"{found.bad.short} {found.bad.subject}"),
        *(_pair("ends", found.ends.why) if found.ends else ()),
        "",
        *_outcome(found),
        *_steps(found),
        *_certainty(found),
        *(line for note in found.notes for line in _fold(f"note: {note}", "", "      ")),
        *_cost(found),
    ]
    return "\n".join(plain_ascii(line).rstrip() for line in lines) + "\n"


def _fold(text: str, indent: str = "", hanging: str | None = None) -> list[str]:
    """A paragraph in which no percent sign is torn from its number."""
    return [line.replace(_GLUE, " %") for line in folded(text.replace(" %", _GLUE), WIDTH, indent, hanging)]


def _pair(name: str, text: str) -> list[str]:
    return _fold(text, f"{name:<6}", " " * 6)


def _outcome(found: Bisection) -> Iterator[str]:
    if found.first_bad is None or found.ending is not Ending.FOUND:
        yield from _fold(f"Not narrowed down to one commit: {found.why}", "", "  ")
        for commit in found.candidates:
            yield from _fold(f"{commit.short} {commit.subject}", "  ", " " * 15)
        yield ""
    if found.first_bad is None:
        return
    first = found.first_bad
    which = f" (patch {found.patch[0]} of {found.patch[1]})" if found.patch else ""
    held = found.ending is Ending.FOUND
    yield from [f"{'First bad commit' if held else 'What git answers'}{which}", f"  {first.hash}"]
    yield from _fold(f"{first.author} <{first.email}>, {first.date}", "  ", "  ")
    yield from _fold(first.subject, "      ", "      ")
    shown = found.files[:MAX_FILES]
    more = f" and {len(found.files) - MAX_FILES} more" if len(found.files) > MAX_FILES else ""
    yield from _fold(f"{len(found.files)} file(s): {', '.join(shown)}{more}", "  ", "    ")
    yield from ["", *(() if found.patch or not held else (f"  {one_line(first.fixes)}", ""))]
    for proof in found.proofs:
        yield from _fold(proof_line(proof), "  ", "    ")
    yield ""


def proof_line(proof: Proof) -> str:
    """One sentence: the commit against its parent."""
    parent = f"its parent {proof.parent.short} is {proof.cls} ({proof.why})"
    if proof.cls == "skip":
        return f"its parent {proof.parent.short} could not be judged ({proof.why}): git infers that it is good"
    if proof.change is None:
        return parent
    share = f": {proof.share_percent:.0f} % of the difference between good and bad" if proof.share_percent else ""
    change = f"{proof.change.change_percent:+.2f} % [{interval(proof.change)}]"
    return f"{parent}; from there to this commit {change}{share}"


def interval(change: Change) -> str:
    """Its two ends, in percent."""
    return f"{change.ci_percent[0]:+.2f} {change.ci_percent[1]:+.2f}" if change.ci_percent else "none"


def _steps(found: Bisection) -> Iterator[str]:
    if not found.steps:
        return
    yield from ["Steps (change and interval: against good; positive is better)", _HEAD]
    for number, step in enumerate(found.steps, 1):
        yield step_line(number, step)
    yield ""
    odd = (How.UNDECIDED, How.NOT_BUILT, How.NOT_BOOTED, How.NOT_RUN, How.TRIED)
    for number, step in enumerate(found.steps, 1):
        if step.how in odd:
            yield from _fold(f"step {number}: {step.why}", "  ", "    ")
    if any(step.how in odd for step in found.steps):
        yield ""


def step_line(number: int, step: Step) -> str:
    """A row of the table of steps."""
    how = f"as {step.like[:12]}" if step.how is How.SAME_KERNEL else str(step.how)
    if step.change:
        figures = f"{step.change.change_percent:>+8.2f} {interval(step.change):>17} {step.change.boots:>3}"
    else:
        figures = (
            f"{'':8} {f'seen {step.tally.seen}' if step.tally else '':>17} {step.tally.of if step.tally else '':>3}"
        )
    return f"{number:>3} {step.commit.short:12} {step.cls!s:5} {how:16} {figures}"


def certainty(found: Bisection) -> str:
    """How sure the classes are, in a sentence or two."""
    measured = sum(s.how is How.MEASURED for s in found.steps)
    same = sum(s.how is How.SAME_KERNEL for s in found.steps)
    parts = []
    if found.error is not None and found.ends is not None and found.ends.half_percent is not None:
        parts.append(
            f"Each of the {measured} measured step(s) has the wrong class with a probability of at most {100 * found.error:.1f} %, "
            f"all of them together {100 * min(1.0, measured * found.error):.1f} %: its interval lies entirely on one side of "
            f"{found.ends.half_percent:+.2f} %."
        )
    elif found.ends is not None and found.ends.tally is not None and found.ends.tally.of > 1:
        parts.append(f"A step is good after {found.ends.boots} boot(s) that do not show it.")
    if same:
        parts.append(f"{same} step(s) have the kernel of another, byte for byte, and so its class.")
    return " ".join(parts)


def _certainty(found: Bisection) -> Iterator[str]:
    text = certainty(found)
    if text:
        yield from [*_fold(text), ""]


def _cost(found: Bisection) -> Iterator[str]:
    spent = found.spent
    before = f", after {spent.resumed} step(s) of an earlier one" if spent.resumed else ""
    yield from _fold(
        f"{spent.seconds:.0f} s: {spent.builds} kernels built ({spent.build_seconds:.0f} s), {spent.boots} boots, "
        f"{spent.replicates} replicates{before}; on {found.machine}"
    )
    if found.command:
        yield from _fold(found.command, "", "    ")
