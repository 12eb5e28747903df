# SPDX-License-Identifier: GPL-2.0-or-later
"""Variants: the same patches compared in another way. Each is a series of its own, called ``<series>+<variant>``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import Contrast, Series

SEPARATOR = "+"
BY_SWITCH: Mapping[str, tuple[Contrast, str, str]] = {
    "carried": (
        Contrast.CARRIED,
        "carried, switched off",
        "Baseline against the patched kernel with the change switched off: what remains is the cost of carrying the code.",
    ),
    "switched": (
        Contrast.SWITCHED,
        "switched off against on",
        "One kernel, the change switched off in the arm called baseline: its effect without that of another binary.",
    ),
}
"""Variants that every series with ``switches:`` has."""


def full_name(series: str, variant: str) -> str:
    """What a series, or a variant of it, is called in reports and on the command line."""
    return f"{series}{SEPARATOR}{variant}" if variant else series


def variant_names(series: Series) -> tuple[str, ...]:
    """The variants that a series has: those that it declares, and those of its switches."""
    return (*series.variants, *(BY_SWITCH if series.switches else ()))


def variant(series: Series, name: str) -> Series:
    """A variant of a series. Raises UserError that names the ones there are."""
    if name in series.variants:
        return series.variants[name]
    if name in variant_names(series):
        contrast, words, notes = BY_SWITCH[name]
        return replace(
            series,
            name=full_name(series.name, name),
            title=f"{series.title} ({words})",
            notes=notes,
            claims=(),
            variant=name,
            contrast=contrast,
            kernel=series.patched_kernel,
        )
    known = ", ".join(variant_names(series)) or "none; `variants:` or `switches:` in its series.yaml make some"
    raise UserError(f"series {series.name} has no variant '{name}'", expected=f"one of: {known}")
