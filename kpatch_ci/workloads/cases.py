# SPDX-License-Identifier: GPL-2.0-or-later
"""From what pipeline.yaml says of a workload to cases: validated, defaults filled in, products expanded."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.workload import Case, Scalar
from kpatch_ci.workloads.sizes import size_bytes
from kpatch_ci.workloads.table import WORKLOADS
from kpatch_ci.workloads.types import Kind, Label, Option, Workload

Where = Callable[[str], str | None]
"""Key of the raw mapping (empty: the mapping itself) -> ``file:line`` for messages."""


def nowhere(_key: str) -> str | None:
    """The place of a mapping that came from no file."""
    return None


def find_workload(kind: str, *, where: str | None = None) -> Workload:
    """The workload of that name; UserError names the ones there are."""
    if kind not in WORKLOADS:
        raise UserError(f"unknown workload {kind!r}", where=where, expected="one of " + ", ".join(WORKLOADS))
    return WORKLOADS[kind]


def make_case(kind: str, raw: Mapping[str, object], where: Where = nowhere) -> Case:
    """One case of workload ``kind`` from single values.

    Settings and params come in the order of the workload's options, whatever the order of ``raw``: a label does not
    depend on it. Raises UserError (several at once: UserErrors) that name the key and the valid choices.
    """
    workload = find_workload(kind, where=where(""))
    options = {o.name: o for o in workload.options}
    errors = [_unknown(kind, key, tuple(options), where) for key in raw if key not in options]
    given: dict[str, Scalar] = {}
    for key in (key for key in raw if key in options):
        try:
            given[key] = _value(options[key], raw[key])
        except ValueError:
            what = f"{kind}: {key} cannot be {raw[key]!r}"
            errors.append(UserError(what, where=where(key), expected=options[key].valid))
    _raise(errors)
    defaults = {o.name: o.default for o in workload.options if o.default is not None}
    values: dict[str, Scalar] = defaults | given
    try:
        values = dict(workload.complete(values)) | values
    except ValueError as e:
        raise UserError(f"{kind}: {e}", where=where("")) from None
    return _case(workload, values, given)


def in_real_time(workload: Workload, case: Case) -> Case:
    """The case as it runs where the guest's clock is the host's. Its label stays."""
    return replace(case, params=tuple((key, workload.real_time.get(key, value)) for key, value in case.params))


def expand(kind: str, raw: Mapping[str, object], where: Where = nowhere) -> tuple[Case, ...]:
    """The product of a mapping whose values may be lists; the first key varies slowest.

    Raises UserError like make_case, and for an empty list or for two cases with one label.
    """
    errors = [
        UserError(f"{kind}: {key} has no values", where=where(key), expected="leave it out, or name one")
        for key, value in raw.items()
        if isinstance(value, list | tuple) and not value
    ]
    _raise(errors)
    axes = [list(value) if isinstance(value, list | tuple) else [value] for value in raw.values()]
    cases: dict[str, Case] = {}
    for values in itertools.product(*axes):
        try:
            case = make_case(kind, dict(zip(raw, values, strict=True)), where)
        except UserError as e:
            errors += (e.errors if isinstance(e, UserErrors) else (e,))  # fmt: skip
            continue
        if case.label in cases:
            what = f"{kind}: two cases are called {case.label!r}"
            errors.append(UserError(what, where=where(""), expected="cases that differ in a setting"))
        cases[case.label] = case
    _raise(errors)
    return tuple(cases.values())


def _raise(errors: list[UserError]) -> None:
    unique = list({str(e): e for e in errors}.values())
    if len(unique) == 1:
        raise unique[0]
    if unique:
        raise UserErrors(unique)


def _unknown(kind: str, key: str, known: tuple[str, ...], where: Where) -> UserError:
    near = difflib.get_close_matches(str(key), known, n=1)
    expected = (f"did you mean {near[0]!r}? " if near else "") + "valid: " + ", ".join(known)
    return UserError(f"{kind}: unknown key {key!r}", where=where(key), expected=expected)


def _value(option: Option, raw: object) -> Scalar:
    """``raw`` as the option's value; ValueError where it cannot be one. YAML's true and false are no numbers."""
    if isinstance(raw, bool) or not isinstance(raw, str | int):
        raise ValueError
    if option.kind is Kind.INTEGER:
        if not isinstance(raw, int) or not option.minimum <= raw <= option.maximum:
            raise ValueError
        return raw
    value = str(raw)
    checks: dict[Kind, Callable[[str], bool]] = {
        Kind.CHOICE: lambda v: v in option.choices,
        Kind.FLAGS: lambda v: all(flag in option.choices for flag in v.replace(",", "+").split("+")),
        Kind.SIZE: lambda v: size_bytes(v) > 0,
        Kind.PATH: lambda v: re.fullmatch(r"/[\x21-\x7e]+", v) is not None,
    }
    if not checks[option.kind](value):
        raise ValueError
    return value.replace(",", "+") if option.kind is Kind.FLAGS else value


def _case(workload: Workload, values: Mapping[str, Scalar], given: Mapping[str, Scalar]) -> Case:
    settings: list[tuple[str, Scalar]] = []
    params: list[tuple[str, Scalar]] = []
    for option in (o for o in workload.options if o.name in values):
        value = values[option.name]
        shows = {
            Label.ALWAYS: True,
            Label.GIVEN: option.name in given,
            Label.CHANGED: value != option.default,
            Label.NEVER: False,
        }
        (settings if shows[option.label] else params).append((option.name, value))
    return Case(settings=tuple(settings), params=tuple(params))
