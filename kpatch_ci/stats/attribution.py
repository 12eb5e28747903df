# SPDX-License-Identifier: GPL-2.0-or-later
"""What changed beside a figure: the conditions of two nights, held against each other. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kpatch_ci.model.history import Cause, Condition

_EXPLAINED_BY = {
    Condition.IMAGE: (Condition.KERNEL, Condition.SERIES, Condition.PATCHED_TREE, Condition.CONFIG, Condition.COMPILER),
    Condition.PATCHED_TREE: (Condition.KERNEL, Condition.SERIES),
    Condition.QEMU_ARGV: (Condition.QEMU, Condition.MACHINE, Condition.MACHINE_FILE),
    Condition.MACHINE_FILE: (Condition.MACHINE,),
    Condition.TOOLS: (Condition.COMPILER, Condition.QEMU),
}
"""What follows from others: named only where none of those changed."""
_INTO_IMAGE = _EXPLAINED_BY[Condition.IMAGE]
SHORT = 12
"""Hexadecimal digits of a digest that a person is shown."""


def causes(before: Mapping[str, str], after: Mapping[str, str], *, of_host: bool) -> tuple[Cause, ...]:
    """Every condition that is known of both nights and differs, less those that follow from another.

    ``of_host``: whether the host itself is one; in deterministic mode nothing depends on it. What went into a kernel whose
    image is the same, byte for byte, is no cause, unless nothing else is.
    """
    differing = [
        name
        for name in Condition
        if (of_host or name is not Condition.HOST) and name in before and name in after and before[name] != after[name]
    ]
    if Condition.IMAGE not in differing and Condition.IMAGE in before and Condition.IMAGE in after:
        differing = [name for name in differing if name not in _INTO_IMAGE] or differing
    named = [name for name in differing if not set(_EXPLAINED_BY.get(name, ())) & set(differing)]
    return tuple(Cause(str(name), before[name], after[name]) for name in named)


def cause_words(cause: Cause) -> str:
    """``compiler 14.2.0-19 -> 14.3.0-1``; digests are shortened, what is long is left out."""
    before, after = (_short(text) for text in (cause.before, cause.after))
    return f"{cause.what} {before} -> {after}" if before != after and len(before + after) <= 80 else cause.what


def _short(text: str) -> str:
    is_digest = len(text) >= 32 and set(text) <= set("0123456789abcdef")
    return text[:SHORT] if is_digest else text
