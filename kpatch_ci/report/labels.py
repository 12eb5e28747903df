# SPDX-License-Identifier: GPL-2.0-or-later
"""Labels of cases (``key=value[,key=value]``) beside each other: what they share, and what tells them apart."""

from __future__ import annotations

from collections.abc import Sequence

from kpatch_ci.report.clean import one_line, plain_ascii


def split_labels(labels: Sequence[str]) -> tuple[str, list[str]]:
    """The settings that all of ``labels`` share, and of each label the others. A lone label is all shared."""
    settings = [label.split(",") for label in labels]
    shared = [s for s in settings[0] if all(s in other for other in settings[1:])] if settings else []
    return ",".join(shared), [",".join(s for s in each if s not in shared) for each in settings]


def fitted(labels: Sequence[str], width: int, alone: str) -> tuple[str, list[str], list[str]]:
    """``labels`` for a column of ``width``: what they share, a short name of each, and what those names mean where they do not say it.

    A lone label that fits is left as it is; ``alone`` names a case that has nothing of its own.
    """
    plain = [plain_ascii(one_line(label)) for label in labels]
    shared, own = ("", plain) if len(plain) == 1 and len(plain[0]) <= width else split_labels(plain)
    if any(len(label) > width for label in own):
        numbers = [f"#{number}" for number in range(1, len(own) + 1)]
        return shared, numbers, [f"{n}: {label}" for n, label in zip(numbers, own, strict=True)]
    return shared, [label or alone[:width] for label in own], []
