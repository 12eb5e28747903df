# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci history record``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kpatch_ci.cli.history.documents import on_disk
from kpatch_ci.cli.history.shared import history_place, opened
from kpatch_ci.cli.output import log, print_json, say
from kpatch_ci.model.errors import UserError


@click.command(name="record")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@history_place
def command(results: tuple[Path, ...], as_json: bool, **options: Any) -> int:
    """Put results into the history: what `run` could not record, what another machine measured, what `export` wrote.

    RESULTS are result.json files, directories that hold one, or exports (.jsonl). What is there already is left as it is, so
    all of them may be given again. One that cannot be read is named and does not keep the others out: exit status 2 then.

    \b
    Examples:
      ./kpatch-ci history record results/20261130-020000
      ./kpatch-ci history record --history postgresql://ci@db/kpatch results/*/
      ./kpatch-ci history export > all.jsonl && ./kpatch-ci history record --history postgresql://ci@db/kpatch all.jsonl
    """
    from kpatch_ci.store.history.record import record  # noqa: PLC0415 (SQLAlchemy: not for --help)

    database = opened(options)
    done: list[dict[str, Any]] = []
    faults = 0
    for given in results:
        try:
            for where, document, original in on_disk(given):
                kept = record(database, document.model_dump(mode="json", by_alias=True), original)
                done.append({"result": where, "run": kept.name, "new": kept.new})
                say(f"{where}: {'recorded' if kept.new else 'known already'} as {kept.name}")
        except UserError as error:
            log.error("%s", error)
            faults += 1
    new = sum(one["new"] for one in done)
    say(f"{new} recorded, {len(done) - new} known already, {faults} could not be read")
    if as_json:
        print_json({"results": done, "failed": faults})
    return 2 if faults else 0
