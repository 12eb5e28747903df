# SPDX-License-Identifier: GPL-2.0-or-later
"""The proof that a series is in the image, in words: what it adds, and which objects it changes."""

from __future__ import annotations

from kpatch_ci.report.clean import one_line
from kpatch_ci.report.schema import ArchDoc, ProofDoc

MAX_NAMES = 6
"""Names and objects that are listed one by one."""
MAX_TEXT = 40
LINE_NUMBERS = "__bug_table"
"""Where an object keeps the line numbers of WARN() and BUG()."""


def proven(proof: ProofDoc) -> str:
    """What was found of one thing that the series adds, in words."""
    if proof.holds:
        return "compiled" if proof.kind == "source" else "in patched only"
    if proof.derived:
        return proof.why or "not in the patched image"
    return "NOT PROVEN"


def added(arch: ArchDoc) -> str:
    """What the patch was seen to add, and what of it is in the image; empty where it adds nothing that can be looked up."""
    derived = [p for p in arch.proofs if p.derived]
    if not derived:
        return ""
    held, rest = [p for p in derived if p.holds], [p for p in derived if not p.holds]
    text = f"{len(held)} of {len(derived)} in the patched image only"
    if held:
        text += f": {_names(held)}"
    reasons = list(dict.fromkeys(p.why for p in rest))
    return "; ".join([text, *(f"{_names([p for p in rest if p.why == why])}: {why}" for why in reasons)])


def _names(proofs: list[ProofDoc]) -> str:
    shown = [f"{p.kind} {_quoted(p)}" for p in proofs[:MAX_NAMES]]
    return ", ".join(shown) + (f" and {len(proofs) - MAX_NAMES} more" if len(proofs) > MAX_NAMES else "")


def _quoted(proof: ProofDoc) -> str:
    text = one_line(proof.name)
    return f'"{text[:MAX_TEXT]}{"..." if len(text) > MAX_TEXT else ""}"' if proof.kind == "string" else text


def differing(arch: ArchDoc) -> str:
    """The objects in which the arms differ, with their sections; empty where that is not known."""
    found = arch.differing
    if found is None:
        return ""
    if not found:
        return "none differs from the baseline's"
    shown = [f"{name} ({', '.join(sections)})" for name, sections in list(found.items())[:MAX_NAMES]]
    more = f" and {len(found) - MAX_NAMES} more" if len(found) > MAX_NAMES else ""
    only_lines = all(set(sections) <= {LINE_NUMBERS} for sections in found.values())
    lines = ": only the line numbers of WARN() and BUG(), no code" if only_lines else ""
    return f"{len(found)} differ{'s' if len(found) == 1 else ''}{lines}: {', '.join(shown)}{more}"
