# SPDX-License-Identifier: GPL-2.0-or-later
"""Which series, and which variants of them, a run tests."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.variants import full_name


@dataclass(frozen=True, slots=True)
class SeriesEntry:
    """A series to test, or a variant of it. ``workloads``: only those; empty for all of the run's."""

    name: str
    variant: str = ""
    workloads: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """``series`` or ``series+variant``."""
        return full_name(self.name, self.variant)


def narrow_series(
    entries: Collection[SeriesEntry],
    there: Collection[SeriesEntry],
    chosen: Collection[str],
    workloads: Collection[str],
    *,
    variants: bool,
) -> tuple[SeriesEntry, ...]:
    """The file's ``entries``, or those that were chosen, of all that are ``there``.

    A series' name chooses all that the file lists of it. ``variants`` adds every other variant of each. What is measured
    with none of the chosen ``workloads`` is left out. Raises UserError where that leaves nothing, or a name is unknown.
    """
    listed = {entry.full_name for entry in entries}
    every = [*entries, *(entry for entry in there if entry.full_name not in listed)]
    names = [entry.full_name for entry in every]
    for name in chosen:
        if name not in names:
            raise UserError(f"no series '{name}'", where="--series", expected=choices(name, names))
    found = [e for e in every if not chosen or e.full_name in chosen or (e.full_name in listed and e.name in chosen)]
    if not chosen:
        found = list(entries)
    if variants:
        more = {entry.name for entry in found}
        found += [e for e in there if e.variant and e.name in more and e.full_name not in {f.full_name for f in found}]
    measured = [e for e in found if not (workloads and e.workloads) or set(workloads) & set(e.workloads)]
    if not measured:
        only = "; ".join(f"{e.full_name} with {', '.join(e.workloads)}" for e in found)
        raise UserError("no series is measured with these workloads", where="--workload", expected=only)
    return tuple(measured)


def choices(name: str, known: Collection[str]) -> str:
    """The valid names, the nearest to ``name`` first."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return (f"did you mean '{near[0]}'? " if near else "") + f"there are: {', '.join(known)}"
