# SPDX-License-Identifier: GPL-2.0-or-later
"""Which workload of ours a claim may be about, from the words around it, where nobody wrote it down. Always marked as a guess.

Only what the words settle is taken: hackbench with its mode and transport, dbench with its file system, dd with its command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from kpatch_ci.model.claim import Claim, ClaimKind
from kpatch_ci.series.claimnumbers import RATE, family

_HACKBENCH = re.compile(
    r"\bhackbench(?:-(?P<mode>process|thread)(?:es|s)?-(?P<transport>pipe|socket)s?)?\b", re.IGNORECASE
)
_DBENCH = re.compile(r"\bdbench(?:\d|\b)", re.IGNORECASE)
_FILE_SYSTEMS = re.compile(r"\b(?P<ours>xfs|ext4)\b|\b(?:ext[23]|btrfs|f2fs|tmpfs|zfs|nfs)\b", re.IGNORECASE)
_DD = re.compile(r"^[ \t]*[$#]?[ \t]*(?:/usr/bin/|time )?dd (?P<words>(?:\w+=\S+[ \t]*){2,})$", re.MULTILINE)
_DD_OURS = frozenset({"if", "of", "bs", "count", "iflag", "oflag"})


def guess(claim: Claim, near: str, text: str) -> Claim:
    """The claim, with workload, metric and case where the words settle them, else with why not; unchanged where nothing is named.

    ``near``: the words above its table, or the lines above its sentence and itself. ``text``: the whole mail.
    """
    if claim.unmeasured or claim.workload:
        return claim
    if claim.kind is ClaimKind.SENTENCE:
        return _dd(claim, near)
    if claim.kind is not ClaimKind.ROW or not claim.label.isdigit():
        return claim
    if match := _HACKBENCH.search(near):
        return _hackbench(claim, match)
    return _dbench(claim, near, text) if _DBENCH.search(near) else claim


def _hackbench(claim: Claim, match: re.Match[str]) -> Claim:
    if not match["mode"]:
        return replace(claim, unmeasured="hackbench: the text names neither mode nor transport there")
    if claim.statistic != "Amean":
        return replace(claim, unmeasured=f"hackbench: {claim.statistic or 'the row'} is no mean time")
    changed = (("mode", match["mode"].lower(), "process"), ("transport", match["transport"].lower(), "pipe"))
    more = "".join(f",{key}={value}" for key, value, usual in changed if value != usual)
    return replace(
        claim,
        workload="hackbench",
        metric="time",
        case=f"groups={claim.label}{more}",
        guessed=f"`{match[0]}` above the table",
    )


def _dbench(claim: Claim, near: str, text: str) -> Claim:
    if claim.statistic != "Hmean":
        return replace(claim, unmeasured="dbench: rows that are no Hmean are times; ours is a throughput")
    named = {match[0].lower() for match in _FILE_SYSTEMS.finditer(near)} or {
        match[0].lower() for match in _FILE_SYSTEMS.finditer(text)
    }
    if len(named) != 1 or not named <= {"xfs", "ext4"}:
        return replace(claim, unmeasured="dbench: the text does not settle which file system of ours it is about")
    fs = named.pop()
    words = f"`dbench` above the table, `{fs}` in the text"
    return replace(claim, workload="dbench", metric="throughput", case=f"fs={fs},clients={claim.label}", guessed=words)


def _dd(claim: Claim, near: str) -> Claim:
    found = list(_DD.finditer(near))
    if len(found) != 1 or not claim.figures or family(claim.figures[-1].unit) != RATE:
        return claim
    given = dict(word.partition("=")[::2] for word in found[0]["words"].split())
    command = " ".join(["dd", *found[0]["words"].split()])
    case = _dd_case(given)
    if not case:
        return replace(claim, unmeasured=f"dd: ours is direct reads or writes of a device, not `{command}`")
    return replace(claim, workload="dd", metric="throughput", case=case, guessed=f"`{command}`")


def _dd_case(given: Mapping[str, str]) -> str:
    """The label of the same dd here; empty where its settings are none of ours."""
    if not set(given) <= _DD_OURS or not {"if", "of", "bs"} <= set(given):
        return ""
    reads = given["of"] == "/dev/null"
    writes = given["if"] == "/dev/zero" and given["of"].startswith("/dev/") and not reads
    flag = given.get("iflag" if reads else "oflag", "")
    if reads == writes or flag != "direct" or ("oflag" if reads else "iflag") in given:
        return ""
    return f"rw={'read' if reads else 'write'},bs={given['bs']}"
