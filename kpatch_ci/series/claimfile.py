# SPDX-License-Identifier: GPL-2.0-or-later
"""``claims:`` of series.yaml: which figures of ours stand beside the claims that the mails' text makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from kpatch_ci.model.claim import Claim
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import Patch
from kpatch_ci.series.claims import Beside, guessed, placed, read_mails
from kpatch_ci.store.yamlmodel import Lines, Strict


class ClaimModel(Strict):
    """One of ``claims:``: claims of the mails' text (``match``), or words without a number (``text``), and what of ours stands beside."""

    match: str = ""
    text: str = ""
    says: Literal["better", "worse", "no change", "changes"] | None = None
    workload: str = Field(min_length=1)
    metric: str = Field(min_length=1)
    case: str = ""
    arch: str = ""
    table: int | None = Field(default=None, ge=1)
    columns: tuple[int, int] | None = None


def read_claims(models: Sequence[ClaimModel], patches: Sequence[Patch]) -> tuple[Claim, ...]:
    """The claims of the mails' text, placed as ``claims:`` says (guessed where it is empty), then those that it adds in words."""
    read = read_mails(patches)
    if not models:
        return guessed(read)
    found, _ = placed(read, [_beside(model) for model in models if model.match])
    return (*found, *(_words(model) for model in models if not model.match))


def claim_errors(
    models: Sequence[ClaimModel], patches: Sequence[Patch], loc: tuple[str, ...], lines: Lines
) -> list[UserError]:
    """What is wrong with ``claims:``: entries of neither or both kinds, and those that fit nothing in the mails' text."""
    errors = [
        UserError(f"claims: {what}", where=lines.where((*loc, at)), expected=expected)
        for at, model in enumerate(models)
        if (what := _contradiction(model)[0])
        for expected in [_contradiction(model)[1]]
    ]
    if errors:
        return errors
    read = read_mails(patches)
    _, unused = placed(read, [_beside(model) for model in models if model.match])
    begin = ", ".join(dict.fromkeys(one.claim.statistic or f"'{one.claim.text[:30]}...'" for one in read)) or "none"
    return [
        UserError(
            f"claims: no claim in the mails' text is '{model.match}'",
            where=lines.where((*loc, at)),
            expected=f"first words of one, or a /regular expression/; those there begin: {begin}",
        )
        for at, model in enumerate(models)
        if model.match and _beside(model) in unused
    ]


def _contradiction(model: ClaimModel) -> tuple[str, str]:
    if bool(model.match) == bool(model.text):
        return "both match and text" if model.match else "neither match nor text", "exactly one of the two"
    if model.text and not model.says:
        return "text without says", "what it says: better, worse, no change or changes"
    if model.match and model.says:
        return "match with says", "only match: what it says is read from the text"
    if model.columns and (min(model.columns) < 1 or model.columns[0] == model.columns[1]):
        return f"columns {list(model.columns)}", "two columns, counted from 1: baseline, patched"
    try:
        _beside(model).check()
    except ValueError as error:
        return f"'{model.match}': {error}", "first words, or a regular expression in slashes"
    return "", ""


def _beside(model: ClaimModel) -> Beside:
    return Beside(
        match=model.match,
        workload=model.workload,
        metric=model.metric,
        case=model.case,
        arch=model.arch,
        table=model.table,
        columns=model.columns,
    )


def _words(model: ClaimModel) -> Claim:
    return Claim(
        model.text,
        workload=model.workload,
        metric=model.metric,
        case=model.case,
        arch=model.arch,
        says=model.says or "",
    )
