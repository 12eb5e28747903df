# SPDX-License-Identifier: GPL-2.0-or-later
"""Sentences that claim a figure: "improves from 180MB/s to 200MB/s (~5 percent)", "12% faster", "reduced by 9%".

A sentence counts only where it says what got better or worse, and says it as a result: what a setting is changed to, what
might be, and what another commit once did are no claims. Rather one is missed than made up.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kpatch_ci.model.claim import Claim, ClaimKind
from kpatch_ci.series.claimnumbers import (
    BETTER,
    CYCLES,
    NUMBER,
    RATE,
    SHARE,
    TIME,
    UNIT,
    change,
    family,
    figure,
    follows,
    scaled,
)
from kpatch_ci.series.claimtables import LONGEST

_ABOUT = r"(?:~|about |around |roughly |approximately |some |nearly |almost |by |approx\. )*"
_FROM_TO = re.compile(
    rf"\bfrom {_ABOUT}(?P<before>{NUMBER}) ?(?P<unit1>{UNIT})?(?![\w/])(?: \w+){{0,2}}?,? (?:down |up )?to {_ABOUT}"
    rf"(?P<after>{NUMBER}) ?(?P<unit2>{UNIT})?(?![\w/])"
)
_ROUGHLY = r"(?P<about>~|about |around |roughly |approximately |nearly |almost )?"
_PERCENT = rf"{_ROUGHLY}(?P<percent>[+-]?{NUMBER}) ?(?:%|percent\b)"
_RANGE = rf"(?P<range>(?:{NUMBER}) ?%? ?(?:-|\u2013|to|and) ?)?{_PERCENT}"
_GOOD = r"improv\w*|faster|better|speed-?ups?|sped up|gain\w*|win\b"
_BAD = r"regress\w*|slower|worse|slow-?downs?|slowed|degrad\w*"
_UP = r"increas\w*|more|higher|ris(?:es?|ing|en)|rose|grow\w*|grew|boost\w*"
_DOWN = r"decreas\w*|reduc\w*|drop\w*|less|fewer|lower\w*|fall(?:s|en|ing)?|fell|cut(?:s|ting)?"
_CHANGE = rf"(?P<good>{_GOOD})|(?P<bad>{_BAD})|(?P<up>{_UP})|(?P<down>{_DOWN})"
_BESIDE = re.compile(
    rf" ?(?:\(|, |- |: )(?:i\.e\.,? |or |an? |that is,? |which is |by )*{_PERCENT}(?= ?[),.]| (?:{_GOOD}|{_BAD}|{_UP}|{_DOWN})\b|$)",
    re.IGNORECASE,
)
"""The percentage of two figures, right behind them: one further off may be of something else."""
_FORMS = (
    re.compile(rf"\b(?:{_CHANGE})\b(?! (?:than|if|when)\b)[^.;%]{{0,60}}?\bby (?:up to )?{_RANGE}", re.IGNORECASE),
    re.compile(rf"(?<![\w.%-]){_RANGE}(?: \(?\w+\)?){{0,2}}? (?:{_CHANGE})\b", re.IGNORECASE),
    re.compile(rf"\b(?:{_CHANGE})\b(?: [a-z-]+){{0,4}} of (?:up to )?{_RANGE}", re.IGNORECASE),
)
_WENT = re.compile(
    rf"\b(?:{_GOOD}|{_BAD}|{_UP}|{_DOWN}|went|goes|go|took|takes|jump\w*|shr[aiu]nk\w*|climb\w*)\b", re.IGNORECASE
)
_MORE_IS_BETTER = r"throughput|bandwidth|iops|transactions?|operations|scores?|performance|tps|qps|fps|hit rates?"
_LESS_IS_BETTER = (
    r"latenc(?:y|ies)|(?<!at )run[- ]?times?|execution times?|elapsed|overheads?|boot ?times?|build times?|wall(?:-?clock)? times?"
    r"|(?:context[ -]switch|cache[ -]miss|tlb[ -]miss)(?:es)?|migrations?|(?:page )?faults?|cycles|instructions"
    r"|cpu (?:usage|time|utili[sz]ation)"
    r"|system time|energy|power consumption|memory (?:usage|consumption)"
)
_MORE = re.compile(rf"\b(?:{_MORE_IS_BETTER})\b", re.IGNORECASE)
_LESS = re.compile(rf"\b(?:{_LESS_IS_BETTER})\b", re.IGNORECASE)
_NAMED = re.compile(rf"\b(?:{_MORE_IS_BETTER}|{_LESS_IS_BETTER})\b[^.;,]{{0,40}}$", re.IGNORECASE)
"""What figures without a unit have before them."""
_BENCH = re.compile(
    r"\b(?:benchmark\w*|bench|hackbench|dbench\w*|fio|netperf|iperf3?|tbench\w*|sysbench|pgbench|schbench|unixbench|specjbb\w*|dd"
    r"|will-it-scale|kernbench|aim\d|stress-ng|lmbench|measur\w*|workloads?|micro-?benchmark\w*)\b",
    re.IGNORECASE,
)
_MAYBE = re.compile(
    r"\b(?:will|would|could|should|might|may|can|cannot|if|expected|expect|suppose\w*|assum\w*|e\.g\.|for example|at most"
    r"|at least|until|unless|within|limit\w*|threshold\w*|timeouts?|intervals?|periods?|granularity|watermarks?"
    r"|ratio|delays?|tunables?|sysctl|default\w*|duty|battery|margin)\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:report(?:ed|s)|notic(?:ed|es)|commit [0-9a-f]{7,}|since|introduc\w+|bisect\w*|caus\w+|due to|previously|before this|without this"
    r"|regression (?:was|is|of) (?:seen|found|observed)|fix(?:es|ed|ing)?)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"(?:increase|reduce|decrease|bump|raise|lower|change|extend|shorten|limit|set|move|drop|switch|adjust|convert|scale|grow|shrink|cut|let|use|update)\b"
)
_COMMAND = re.compile(r"[ \t]*(?:[$#>] ?\S|\S+(?:[ \t]+\S+)*?(?:[ \t]+\w+=\S+){2,}[ \t]*$)")
_TRAILER = re.compile(
    r"[A-Z][A-Za-z-]+(?:-by|-to)?: ?\S.*(?:@|https?://)|(?:Fixes|Link|Closes|Cc|Subject|From|Date|Change-Id|Message-Id): ?\S"
)
_NOT_PROSE = re.compile(
    r"\t|[ ]{4,}\S.*(?:[;{}]|\bat \w+\+0x)|[ \t]*\S+[ \t]+\|[ \t]+\d+|diff |@@ |\+\+\+ |--- |index |[ \t]*\[ *\d+\.\d+\]|[ \t]*[>|]"
)
_DIGIT = re.compile(r"\d")
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d+[.)])[ \t]+")
_END = re.compile(r"(?<=[.;!?:])(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<!approx\.)[)\"']*\s+(?=\S)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence on one line of text, and where it begins."""

    text: str
    line: int
    """From 1."""
    before: str
    """The lines that stand above it in its paragraph, commands included."""


def prose(
    lines: Sequence[str], taken: Sequence[tuple[int, int]] = (), source: str = ""
) -> tuple[tuple[Claim, Sentence], ...]:
    """The claims of a text's sentences, each with its sentence. ``taken``: stretches of lines that are tables."""
    found = []
    for sentence in sentences(lines, taken):
        one = (_figures(sentence.text) or _percentage(sentence.text)) if _DIGIT.search(sentence.text) else None
        if one is not None:
            found.append((replace(one, kind=ClaimKind.SENTENCE, source=source, line=sentence.line), sentence))
    return tuple(found)


def sentences(lines: Sequence[str], taken: Sequence[tuple[int, int]] = ()) -> Iterator[Sentence]:
    """What can be read as prose: no tables, quotations, trailers, code, commands or logs."""
    skip = {index for start, end in taken for index in range(start, end)}
    paragraph: list[tuple[int, str]] = []
    above: list[str] = []
    for index, line in enumerate(lines):
        command = len(line) <= LONGEST and _COMMAND.match(line) is not None
        if (
            index in skip
            or not line.strip()
            or command
            or len(line) > LONGEST
            or _NOT_PROSE.match(line)
            or _TRAILER.match(line)
        ):
            yield from _split(paragraph, above)
            paragraph = []
            above = [*above, line.strip()][-4:] if command else [] if not line.strip() else above
            continue
        if _ITEM.match(line):
            yield from _split(paragraph, above)
            paragraph = []
        paragraph.append((index + 1, line.strip()))
    yield from _split(paragraph, above)


def _split(paragraph: Sequence[tuple[int, str]], above: Sequence[str]) -> Iterator[Sentence]:
    starts = [0, *itertools.accumulate(len(line) + 1 for _, line in paragraph)]
    text = "".join(f"{line} " for _, line in paragraph)
    at = 0
    for match in [*_END.finditer(text), None]:
        end = match.end() if match else len(text)
        one = text[at:end].strip()
        if one and len(one) <= LONGEST:
            begin = at + len(text[at:end]) - len(text[at:end].lstrip())
            number = paragraph[bisect.bisect_right(starts, begin) - 1][0]
            yield Sentence(" ".join(one.split()), number, "\n".join(above))
        at = end


def _figures(text: str) -> Claim | None:
    """A sentence of two figures."""
    match = _FROM_TO.search(text)
    if match is None or not _WENT.search(text) or _MAYBE.search(text):
        return None
    unit = match["unit2"] or match["unit1"] or ""
    first = match["unit1"] or unit
    kind = family(unit)
    if family(first) != kind or not _is_result(text, kind) or not (kind or _NAMED.search(text[: match.start()])):
        return None
    before, after = figure(match["before"], first), figure(match["after"], unit)
    better = BETTER.get(kind, "") or _direction(text)
    if kind == TIME and _MORE.search(text) and not _LESS.search(text):
        return None
    claim = Claim(text, figures=(before, after), better=better)
    claim = replace(claim, change_percent=change(scaled(before), scaled(after), better))
    beside = _BESIDE.match(text, match.end()) if kind != SHARE else None
    return _checked(claim, beside) if beside else claim


def _is_result(text: str, kind: str) -> bool:
    """Whether it tells what was measured, rather than what a setting becomes."""
    what = bool(_MORE.search(text) or _LESS.search(text))
    if kind in (RATE, CYCLES):
        return not re.search(
            r"\b(?:link|lanes?|gen ?\d|ports?|phy|bus|clock|max\w*|supports?|mode)\b", text, re.IGNORECASE
        )
    return what and not _ORDER.match(text.lower())


def _checked(claim: Claim, beside: re.Match[str]) -> Claim:
    """With the percentage that stands beside the figures, and whether they give it."""
    stated = ("~" if beside["about"] else "") + beside["percent"]
    before, after = claim.figures
    note = ""
    if not follows(stated, before, after, claim.better or "higher", signed=False):
        own = (
            claim.change_percent
            if claim.change_percent is not None
            else change(scaled(before), scaled(after), "higher")
        )
        note = f"the text says {stated} %, its figures give {abs(own):.1f} %" if own is not None else ""
    return replace(claim, stated_percent=stated, note=note)


def _percentage(text: str) -> Claim | None:
    """A sentence with a percentage alone."""
    if _MAYBE.search(text) or _OTHERS.search(text):
        return None
    for form in _FORMS:
        match = form.search(text)
        if match is None:
            continue
        generic = bool(match["up"] or match["down"])
        about = bool(_MORE.search(text) or _LESS.search(text))
        if not (about or (not generic and _BENCH.search(text))) or _ORDER.match(text.lower()):
            return None
        stated = ("~" if match["about"] else "") + match["percent"]
        value = abs(float(match["percent"].replace(",", "")))
        bounded = "up to" in text[max(0, match.start() - 8) : match.end()].lower() or match["range"] is not None
        sign = _sign(text, match)
        words = {1: "better", -1: "worse", 0: "changes"}[sign]
        exact = bool(sign) and not bounded
        return Claim(
            text, change_percent=sign * value if exact else None, stated_percent=stated, says="" if exact else words
        )
    return None


def _sign(text: str, match: re.Match[str]) -> int:
    """+1 better, -1 worse, 0 where the text does not tell."""
    if match["good"] or match["bad"]:
        return 1 if match["good"] else -1
    way = _direction(text)
    if not way:
        return 0
    return 1 if bool(match["up"]) == (way == "higher") else -1


def _direction(text: str) -> str:
    """Which direction is better of what a sentence is about; empty where it names things of both kinds, or none."""
    more, less = _MORE.search(text), _LESS.search(text)
    return "higher" if more and not less else "lower" if less and not more else ""
