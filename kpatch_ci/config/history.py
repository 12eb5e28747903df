# SPDX-License-Identifier: GPL-2.0-or-later
"""``history:`` of pipeline.yaml: where runs are recorded, and what a change must reach to be an alert."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kpatch_ci.config.schema import HistoryFile
from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.history import Limit
from kpatch_ci.store.history.place import find_place
from kpatch_ci.store.yamlmodel import Lines, read, validate

KEY = "history"
EXPECTED = "'3%' (of the figure before), 0.05 (in the metric's unit), or '10% and 20' (both)"
_LIMIT = re.compile(r"(?:(?P<percent>[\d.]+) ?%)?(?: and )?(?P<amount>[\d.]+(?:e-?\d+)?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HistorySettings:
    """``place``: None where the file names none. ``limits``: by metric, ``workload.metric`` or ``default``."""

    place: str | None = None
    limits: Mapping[str, Limit] = field(default_factory=dict)


def history_settings(model: HistoryFile, where: Callable[[str], str]) -> HistorySettings:
    """Checked. ``where``: key below ``history`` -> file and line. Raises UserErrors."""
    errors: list[UserError] = []
    if model.place is not None:
        try:
            find_place(model.place)
        except UserError as error:
            errors.append(UserError(f"history: {error.what}", where=where("place"), expected=error.expected))
    limits = {}
    for name, text in model.thresholds.items():
        try:
            limits[name] = parse_limit(name, text)
        except UserError as error:
            errors.append(UserError(f"history.thresholds: {error.what}", where=where(name), expected=error.expected))
    if errors:
        raise UserErrors(errors)
    return HistorySettings(model.place, limits)


def read_history_settings(path: Path) -> HistorySettings:
    """Those of a pipeline file, of which nothing else is looked at; the defaults where there is none. Raises UserErrors."""
    if not path.exists():
        return HistorySettings()
    data, lines = read(path)
    given = data.get(KEY) if isinstance(data, dict) else None
    if given is None:
        return HistorySettings()
    inner = Below(lines)
    return history_settings(validate(given, HistoryFile, inner), inner.key)


class Below(Lines):
    """Line numbers of what stands below ``history``."""

    def __init__(self, lines: Lines) -> None:
        super().__init__(lines.name, None)
        self._all = lines

    def where(self, loc: tuple[str | int, ...]) -> str:
        """``file:line`` of ``loc``, or of the key itself."""
        return self._all.where((KEY, *loc))

    def key(self, name: str) -> str:
        """That of a key, or of one of the thresholds."""
        return self.where((name,)) if name == "place" else self.where(("thresholds", name))


def parse_limit(name: str, text: str | float) -> Limit:
    """One threshold, as it is written. Raises UserError."""
    fault = UserError(f"{name}: '{text}' is no threshold", expected=EXPECTED)
    match = _LIMIT.fullmatch(str(text).strip())
    if match is None or not any(match.groups()):
        raise fault
    try:
        percent, amount = (None if match[key] is None else float(match[key]) for key in ("percent", "amount"))
    except ValueError as error:
        raise fault from error
    if any(value is not None and value <= 0 for value in (percent, amount)):
        raise UserError(f"{name}: a threshold is more than 0", expected=EXPECTED)
    return Limit(name, percent, amount)
