# SPDX-License-Identifier: GPL-2.0-or-later
"""A process that records runs FIRST..FIRST+COUNT-1 into PLACE; says each name once it is recorded. Tests start and kill it."""

from __future__ import annotations

import sys

from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.place import find_place
from kpatch_ci.store.history.record import record
from tests.fakes.recorded import document


def main(place: str, first: int, count: int) -> None:
    """Record them, one transaction each."""
    database = Database(find_place(place))
    for number in range(first, first + count):
        done = record(database, document(number))
        sys.stdout.write(f"{done.name}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
