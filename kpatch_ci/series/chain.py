# SPDX-License-Identifier: GPL-2.0-or-later
"""What blob ids say about order: a file as one patch leaves it is the file that a later one takes up."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kpatch_ci.series.draft import Account, Draft

_INDEX = re.compile(rb"^index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})", re.MULTILINE)


def links(diffs: Sequence[bytes]) -> int:
    """How often a diff takes up a file as one before it leaves it."""
    left: set[bytes] = set()
    count = 0
    for diff in diffs:
        pairs = _INDEX.findall(diff)
        count += sum(old in left and old.strip(b"0") != b"" for old, _ in pairs)
        left |= {new for _, new in pairs}
    return count


def by_blobs(chosen: list[Draft], account: Account) -> list[Draft]:
    """Patches without numbers the other way round where every blob id that tells says so (a mailbox sorted newest first)."""
    if len(chosen) < 2 or any(d.subject.number is not None or d.letter.source.ordered for d in chosen):
        return chosen
    diffs = [draft.patch.diff for draft in chosen if draft.patch]
    if links(diffs) or not links(diffs[::-1]):
        return chosen
    account.notes.append("patches without numbers, newest first as their blob ids show: applied the other way round")
    return chosen[::-1]
