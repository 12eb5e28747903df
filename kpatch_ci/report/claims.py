# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims of a patch's text beside what was measured, as the reports show them; all of it is somebody else's text."""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from kpatch_ci.model.claim import Agreement, Claim, ClaimKind, JudgedClaim
from kpatch_ci.report.claimparts import ClaimDoc, JudgedClaimDoc, MeasuredDoc
from kpatch_ci.report.clean import folded, one_line, plain_ascii
from kpatch_ci.report.schema import ArchDoc, ComparisonDoc, Document, SeriesDoc
from kpatch_ci.report.view import interval, percent

WIDTH = 72
LABEL = 11
UNJUDGED = "this file is of a version that did not judge claims"
SIGNIFICANT = "* marked as significant in the mail"
WORTH = (
    "A claim was measured on the author's machine and tree, ours on this guest: `disagrees` says that it is not reproduced here,"
    " not that it was wrong there."
)
"""What every table of claims says of itself."""
_HEAD = f"{'':{LABEL}} {'before':>8} {'after':>8} {'claimed %':>9} {'ours %':>6} {'CI %':>12} {'verdict':<12}"


def claim_json(claim: Claim) -> dict[str, Any]:
    """A claim for result.json."""
    plain = asdict(claim)
    plain.pop("columns")
    pair = {"baseline": claim.baseline, "patched": claim.patched}
    return plain | {key: None if one is None else asdict(one) for key, one in pair.items()}


def judged_json(judged: JudgedClaim) -> dict[str, Any]:
    """A claim on one architecture for result.json."""
    c = judged.measured
    ours = c and {
        "workload": c.workload,
        "metric": c.metric,
        "case": c.case,
        "change_percent": c.change_percent,
        "ci_percent": c.ci_percent,
        "p_adjusted": c.p_adjusted,
        "verdict": c.verdict,
    }
    return claim_json(judged.claim) | {"agreement": judged.agreement, "reason": judged.reason, "measured": ours}


def claims(series: SeriesDoc, arch: ArchDoc) -> list[JudgedClaimDoc]:
    """What the series' text claims on an architecture. Of a file that has only claims, those with the comparison beside them."""
    if arch.claims:
        return arch.claims
    return [_unjudged(claim, arch) for claim in series.claims if claim.arch in ("", arch.arch)]


def _unjudged(claim: ClaimDoc, arch: ArchDoc) -> JudgedClaimDoc:
    wanted = (claim.workload, claim.metric, claim.case)
    found = next((c for c in arch.comparisons if (c.workload, c.metric, "" if c.primary else c.case) == wanted), None)
    agreement = Agreement.UNDECIDED if found else Agreement.NOT_MEASURED
    reason = UNJUDGED if found else "not among the cases of this run"
    ours = _measured(found) if found else None
    return JudgedClaimDoc(**claim.model_dump(), measured=ours, agreement=agreement, reason=reason)


def _measured(c: ComparisonDoc) -> MeasuredDoc:
    names = ("workload", "metric", "case", "change_percent", "ci_percent", "p_adjusted", "verdict")
    return MeasuredDoc(**{name: getattr(c, name) for name in names})


def summary(found: Iterable[JudgedClaimDoc]) -> str:
    """``3 agree, 1 disagrees, 11 not measured``; empty where nothing is claimed."""
    counts = Counter(claim.agreement for claim in found)
    plural = {Agreement.AGREES: "agree", Agreement.DISAGREES: "disagree"}
    return ", ".join(
        f"{counts[kind]} {plural.get(kind, str(kind)) if counts[kind] != 1 else kind}"
        for kind in Agreement
        if counts[kind]
    )


def summary_lines(document: Document) -> list[str]:
    """A line for each series on each architecture that claims something: for the terminal."""
    rows = [
        (series.name, arch.arch, summary(claims(series, arch))) for series in document.series for arch in series.arches
    ]
    return [f"{one_line(name)} {one_line(arch)}: claims: {words}" for name, arch, words in rows if words]


@dataclass(frozen=True, slots=True)
class Group:
    """Claims of one kind one after another: rows of a statistic, or a sentence."""

    heading: str
    guessed: str
    claims: tuple[JudgedClaimDoc, ...]
    reasons: tuple[str, ...]
    """Why each is judged as it is; those that have none of ours are told together."""


def groups(found: Iterable[JudgedClaimDoc]) -> list[Group]:
    """The claims in order, rows of one statistic together."""
    made = []
    for (statistic, workload, metric, guessed, _), some in itertools.groupby(found, _kind):
        members = tuple(some)
        ours = f"beside {workload} {metric}" if workload else "nothing of ours beside it"
        words = statistic or {ClaimKind.ROW: "rows", ClaimKind.DURATION: "durations"}.get(members[0].kind, "")
        heading = f"{words}: {ours}" if words else ours
        made.append(Group(heading, guessed, members, tuple(_reasons(members))))
    return made


def _kind(claim: JudgedClaimDoc) -> tuple[str, str, str, str, str]:
    sentence = claim.text if claim.kind in (ClaimKind.SENTENCE, ClaimKind.WORDS) else ""
    return claim.statistic, claim.workload, claim.metric, claim.guessed, sentence


def _reasons(members: Iterable[JudgedClaimDoc]) -> Iterator[str]:
    """``groups=4: ours is ...`` for what was measured; ``not among the cases of hackbench: groups=7, groups=12`` for the rest."""
    missing: dict[str, list[str]] = {}
    for claim in members:
        if claim.measured:
            yield f"{row_label(claim)}: {claim.reason}" if claim.name else claim.reason
        else:
            head, colon, tail = claim.reason.partition(": ")
            missing.setdefault(head if colon else claim.reason, []).append(tail)
        if claim.note:
            yield f"{claim.name}: {claim.note}" if claim.name else claim.note
    for head, tails in missing.items():
        named = ", ".join(filter(None, dict.fromkeys(tails)))
        yield f"{head}: {named}" if named else head


def row_label(claim: ClaimDoc) -> str:
    """Short name of a claim in a table: our case where there is one, else the mail's row."""
    return one_line(claim.label or claim.statistic or claim.case or "all")


def figure_text(claim: ClaimDoc, which: str) -> str:
    """A figure as the mail has it, with its unit; ``-`` where there is none."""
    one = claim.baseline if which == "before" else claim.patched
    return "-" if one is None else one_line(f"{one.text}{one.unit}")


def claimed_text(claim: ClaimDoc) -> str:
    """The claimed change in percent, starred as the mail has it; or what it says instead."""
    if claim.change_percent is None:
        return claim.says or "-"
    return f"{claimed_percent(claim.change_percent)}{'*' if claim.significant else ''}"


def claimed_percent(value: float) -> str:
    """With two decimals, as mmtests prints it, so that it is found again in the mail."""
    return f"{value:+.2f}" if abs(value) < 999.995 else percent(value)


def measured_text(claim: JudgedClaimDoc) -> str:
    """Our change in percent; ``-`` where there is none."""
    return percent(claim.measured.change_percent) if claim.measured else "-"


def interval_text(claim: JudgedClaimDoc) -> str:
    """Our interval in percent; ``-`` where there is none."""
    return interval(claim.measured.ci_percent) if claim.measured else "-"


def quote_of(claim: ClaimDoc) -> str:
    """The text of what is no row."""
    return claim.text if claim.kind in (ClaimKind.SENTENCE, ClaimKind.WORDS) else ""


def where_text(claim: ClaimDoc) -> str:
    """The workload, metric and case of ours; empty where none stands beside it."""
    return one_line(f"{claim.workload} {claim.metric} {claim.case or 'all'}") if claim.workload else ""


def agreement_class(agreement: Agreement) -> str:
    """Its class on the page."""
    return {
        Agreement.AGREES: "passed",
        Agreement.DISAGREES: "failed",
        Agreement.UNDECIDED: "inconclusive",
        Agreement.NOT_MEASURED: "skipped",
    }[Agreement(agreement)]


def text_lines(found: list[JudgedClaimDoc]) -> list[str]:
    """The part of report.txt: plain ASCII, at most 72 columns; nothing where nothing is claimed."""
    if not found:
        return []
    lines = ["", *_fold(f"Claims of the patch: {summary(found)}", "", "  "), _HEAD]
    for group in groups(found):
        lines += _fold(group.heading, "", "  ")
        lines += _fold(f"(guessed from {group.guessed})", "  ", "  ") if group.guessed else []
        for claim in group.claims:
            lines += _fold(f'"{quote_of(claim)}"', "  ", "   ") if quote_of(claim) else []
            lines += _row(claim)
        for reason in group.reasons:
            lines += _fold(reason, "    ", "      ")
    star = [SIGNIFICANT] if any(claim.significant for claim in found) else []
    return [*lines, *_fold("; ".join([*star, "positive is better"]), "  ", "  "), *_fold(WORTH, "  ", "  ")]


def _row(claim: JudgedClaimDoc) -> list[str]:
    label = plain_ascii(row_label(claim))
    cells = [figure_text(claim, "before"), figure_text(claim, "after"), claimed_text(claim)]
    before, after, claimed = (plain_ascii(cell) for cell in cells)
    head = []
    if len(label) > LABEL - 2:
        head, label = _fold(label, "  ", "    "), ""
    if max(len(before), len(after)) > 8:
        head += _fold(f"{before} to {after}", "    ", "      ")
        before, after = "", ""
    rest = f"{claimed:>9} {measured_text(claim):>6} {interval_text(claim):>12} {claim.agreement}"
    return [*head, f"  {label:<{LABEL - 2}} {before:>8} {after:>8} {rest}"]


def _fold(text: str, indent: str, hanging: str) -> list[str]:
    return folded(plain_ascii(text), WIDTH, indent, hanging) or [textwrap.shorten(indent, WIDTH)]
