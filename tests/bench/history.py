# SPDX-License-Identifier: GPL-2.0-or-later
"""What a history costs: python tests/bench/history.py RUNS RESULT.json [PLACE]. Records copies of a result, lists and reads them."""

from __future__ import annotations

import datetime
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.figures import figures
from kpatch_ci.store.history.place import find_place
from kpatch_ci.store.history.query import Filter, list_runs, read_run
from kpatch_ci.store.history.record import record

BEGIN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def timed(what: str, action: Callable[[], Any]) -> Any:
    """Do it and say how long it took: on the clock, and of this process's CPU."""
    began, cpu = time.monotonic(), time.process_time()
    result = action()
    print(f"{what}: {time.monotonic() - began:.2f} s ({time.process_time() - cpu:.2f} s of CPU)")
    return result


def main(count: int, result: Path, given: str | None) -> None:
    """Measure."""
    document = json.loads(result.read_text())
    with tempfile.TemporaryDirectory() as folder:
        place = find_place(given or f"{folder}/history.sqlite3")
        database = Database(place)

        def fill() -> None:
            for number in range(count):
                started = BEGIN + datetime.timedelta(days=number)
                changed = {"run_id": started.strftime("%Y%m%d-%H%M%S"), "started": started.isoformat()}
                record(database, {**document, **changed})

        timed(f"record {count} runs of {result.stat().st_size} bytes", fill)
        timed("list all", lambda: list_runs(database, Filter()))
        timed("list the newest 20", lambda: list_runs(database, Filter(limit=20)))
        one = figures(database, Filter(limit=1))[0]
        wanted = Filter(series=one.series, arch=one.arch, workload=one.workload, case=one.case, metric=one.metric)
        timed("trend of one comparison", lambda: figures(database, wanted))
        timed("read one", lambda: read_run(database, "latest"))
        if place.file:
            print(f"size: {place.file.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
