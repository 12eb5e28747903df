# SPDX-License-Identifier: GPL-2.0-or-later
"""Where in a tree's history a series belongs."""

from __future__ import annotations

from dataclasses import dataclass

from kpatch_ci.model.series import Fit


@dataclass(frozen=True, slots=True)
class Candidate:
    """A commit that a series may be based on."""

    commit: str
    date: str
    """YYYY-MM-DD, when it was committed."""
    subject: str
    matched: int
    """Files that are there exactly as the series wants them (or not there, where it makes them)."""
    wanted: int
    """Files that the series says something about."""
    differing: tuple[str, ...] = ()
    """Those that do not match."""
    fit: Fit | None = None
    """How the series stands to it; None where it was not tried."""
    source: str = "blobs"
    """``trailer`` (the series names it), ``tree`` (what was asked for), ``blobs`` or ``tried``."""


@dataclass(frozen=True, slots=True)
class InHistory:
    """A commit that makes a patch of the series superfluous."""

    patch: str
    commit: str
    date: str
    subject: str
    why: str
    whole: bool = False
    """Whether it is about the whole series, not about one patch."""


@dataclass(frozen=True, slots=True)
class BaseReport:
    """What the search for a base found."""

    candidates: tuple[Candidate, ...]
    """Best first; of equally good ones the newest."""
    in_history: tuple[InHistory, ...] = ()
    complete: bool = True
    """Whether all that could matter was looked at; otherwise time ran out."""
    commits: int = 0
    """Commits looked at: those that touch the series' files."""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
