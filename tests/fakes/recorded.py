# SPDX-License-Identifier: GPL-2.0-or-later
"""Documents to record: of real results' shape, any number of runs, each telling itself from the others."""

from __future__ import annotations

import copy
import datetime
from functools import lru_cache
from typing import Any

from kpatch_ci.report.document import to_document
from tests.fakes.results import arch_result, regressed, run_result

BEGIN = datetime.datetime(2026, 1, 1, 2, 0, tzinfo=datetime.UTC)


@lru_cache(maxsize=1)
def _template() -> dict[str, Any]:
    arches = (("good", arch_result()), ("worse", regressed()))
    return to_document(run_result(*arches))


def document(number: int = 0, run_id: str | None = None, **changes: Any) -> dict[str, Any]:
    """The run of night ``number``; ``changes`` replace keys of the document."""
    started = BEGIN + datetime.timedelta(days=number)
    made = copy.deepcopy(_template())
    made |= {
        "run_id": run_id or started.strftime("%Y%m%d-%H%M%S"),
        "started": started.isoformat(),
        "seconds": number + 0.5,
    }
    return made | changes


def comparisons(made: dict[str, Any]) -> list[dict[str, Any]]:
    """All comparisons of a document."""
    return [c for s in made["series"] for a in s["arches"] for c in a["comparisons"]]
