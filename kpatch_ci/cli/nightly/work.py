# SPDX-License-Identifier: GPL-2.0-or-later
"""What a night does with an item: the ordinary pipeline on the tree's tip, reports, the history."""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from kpatch_ci.cli.history.recording import keep
from kpatch_ci.cli.options import progress
from kpatch_ci.cli.output import log, say
from kpatch_ci.config.nightly import Item, NightlySettings
from kpatch_ci.model.errors import KpatchError
from kpatch_ci.model.nightly import Night, NightRun
from kpatch_ci.model.series import Series
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.inputs import inputs_digest
from kpatch_ci.pipeline.nightly import Measured, Prepared
from kpatch_ci.pipeline.run import load_all, new_run_id, run
from kpatch_ci.pipeline.session import Session, on_cluster, open_session
from kpatch_ci.pipeline.tips import Tips
from kpatch_ci.report.document import document_of
from kpatch_ci.report.schema import Document
from kpatch_ci.report.view import BAD, every_arch
from kpatch_ci.report.write import write_reports
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.nights import night_runs
from kpatch_ci.store.history.place import Place
from kpatch_ci.store.history.query import read_run


class PipelineWork:
    """Items through pipeline/run.py. ``database``: None where the history cannot be used tonight; then all is run."""

    def __init__(
        self, settings: NightlySettings, place: Place, database: Database | None, *, jobs: int, console: Console
    ) -> None:
        self._settings, self._place, self._database = settings, place, database
        self._jobs, self._console = jobs, console
        self._tips = Tips(say)

    def prepare(self, item: Item, night: Night) -> Prepared:
        """Bring the tree to its tip and read the series. Raises KpatchError."""
        config = item.config(self._settings.path)
        series = load_all(config)
        self._tips.refresh(config)
        directory = self._settings.results / night.name / item.name
        session = open_session(config, jobs=self._jobs, logs=directory / "logs", say=say, hosts=False)
        inputs = inputs_digest(session, series)
        tip = f"{session.tree.label}: linux {session.tree.release}, {session.tree.commit[:12]}"
        repeats = not any(machine.real_time for machine in config.machines)
        return Prepared(
            inputs, repeats, tip, lambda: self._measure(item, session, series, directory, (night.name, inputs))
        )

    def _measure(
        self, item: Item, session: Session, series: Sequence[Series], directory: Path, named: tuple[str, str]
    ) -> Measured:
        run_id = new_run_id(datetime.datetime.now(datetime.UTC))
        again = f"./kpatch-ci nightly --item {item.name} --force"
        with on_cluster(session.with_hosts(say), say) as far, progress(self._console) as observer:
            result = run(far, series, observer, run_id=run_id, command=again, began=time.monotonic())
        night, inputs = named
        mark = {"item": item.name, "night": night, "inputs": inputs}
        result = replace(result, fingerprint={**result.fingerprint, "nightly": mark})
        name = keep(write_reports(result, directory, session.config.exports), directory, self._place)
        return Measured(name or run_id, str(result.status), str(directory), recorded=bool(name))

    def newer(self, item: Item) -> str:
        """What ``prepare`` would have to fetch first, for people. Raises KpatchError."""
        return self._tips.newer(item.config(self._settings.path))

    def last_good(self, item: Item) -> NightRun | None:
        """The item's last night that its figures can be believed of; None where there is none, or no history."""
        if self._database is None:
            return None
        runs = reversed(night_runs(self._database, item.name))
        return next((one for one in runs if one.status != Status.ERROR and is_whole(self._database, one.run)), None)


def is_whole(database: Database, run: str) -> bool:
    """Whether the same inputs would give the same again: a guest that failed may have had too little time."""
    try:
        document = document_of(read_run(database, run), run)
    except KpatchError as error:
        log.warning("%s is not counted as a good night: %s", run, error)
        return False
    return not guest_failed(document)


def guest_failed(document: Document) -> bool:
    """Whether a boot or a replicate failed: that may have been the machine's load, and another try may do better."""
    arms = [arm for _, arch in every_arch(document) for arm in (arch.boot.baseline, arch.boot.patched)]
    runs = [runs for _, arch in every_arch(document) for runs in (arch.replicates.baseline, arch.replicates.patched)]
    return any(Status(arm.status) in BAD for arm in arms) or any(one.failures for one in runs)
