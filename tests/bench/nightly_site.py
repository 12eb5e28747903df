# SPDX-License-Identifier: GPL-2.0-or-later
"""How long the site of N recorded nights takes: python -m tests.bench.nightly_site N"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from kpatch_ci.pipeline.nightsite import gather
from kpatch_ci.report.site.write import write_site
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.place import find_place
from kpatch_ci.store.history.record import record
from tests.fakes.site import ITEMS, night_document


def main(nights: int) -> None:
    """Record them, then gather and write twice."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database(find_place(str(Path(folder) / "h.sqlite3")))
        database.prepare()
        began = time.process_time()
        for number in range(nights):
            for item in ITEMS[:2]:
                slower = 1.1 if item == "stable" and number >= nights // 2 else 1.0
                record(database, night_document(number, item, inputs=str(number), slower=slower))
        print(f"recorded {2 * nights} runs: {time.process_time() - began:.1f} s of CPU")
        for _ in range(2):
            began = time.process_time()
            site = gather(database, (), {}, ITEMS)
            gathered = time.process_time()
            count = write_site(site, Path(folder) / "site", lambda _: "")
            done = time.process_time()
            index = (Path(folder) / "site/index.html").stat().st_size
            print(f"gathered {gathered - began:.1f} s, {count} files {done - gathered:.1f} s of CPU")
            print(f"{len(site.events)} events; index {index} bytes")


if __name__ == "__main__":
    main(int(sys.argv[1]))
