# SPDX-License-Identifier: GPL-2.0-or-later
"""The verb's work: which items, which history, the night, the site, the mail; what is printed, and the exit status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import click

from kpatch_ci.cli.history.recording import meant
from kpatch_ci.cli.nightly.publish import Published, mail_alone, publish
from kpatch_ci.cli.nightly.work import PipelineWork
from kpatch_ci.cli.options import pipeline_file, stderr_console
from kpatch_ci.cli.output import log, print_json, say
from kpatch_ci.config.entries import choices
from kpatch_ci.config.history import read_history_settings
from kpatch_ci.config.load import load_config
from kpatch_ci.config.nightly import Item, NightlySettings, read_nightly
from kpatch_ci.model.errors import KpatchError, UserError
from kpatch_ci.model.nightly import ItemOutcome, ItemState, Night
from kpatch_ci.pipeline.nightly import Asked, Work, exit_status, hold_night, look_ahead
from kpatch_ci.report.clean import one_line
from kpatch_ci.report.formats import check_formats
from kpatch_ci.store.cache import cache_root
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.place import Place
from kpatch_ci.store.nights import NightLog


def perform(options: dict[str, Any]) -> int:
    """Everything that ``kpatch-ci nightly`` does; returns the exit status. Raises UserError for what is wrong beforehand."""
    path = pipeline_file(options)
    settings = read_nightly(path)
    check_formats(load_config(path).exports)
    if options["site"] is not None:
        settings = replace(settings, site=options["site"].absolute())
    items = chosen(settings.items, options["names"])
    place = meant(options["history"], read_history_settings(path))
    kept = NightLog(cache_root(), path)
    if options["site_only"]:
        return _only_the_site(settings, place, kept, as_json=options["as_json"])
    with kept.alone():
        database, fault = usable(place)
        work = PipelineWork(settings, place, database, jobs=options["jobs"], console=stderr_console())
        if options["dry_run"]:
            return _dry_run(items, work, as_json=options["as_json"], force=options["force"])
        if fault:
            log.error("%s", fault)
            say("every item is run; its results are on disk and can be recorded later (`history record`)")
        night = hold_night(Asked(items, options["force"]), work, kept, told)
        night, published = finish(settings, night, kept, database, fault)
    return _conclude(night, published, as_json=options["as_json"])


def chosen(items: Sequence[Item], names: Sequence[str]) -> tuple[Item, ...]:
    """Those of ``names``, or all. Raises UserError."""
    known = [item.name for item in items]
    for name in names:
        if name not in known:
            raise UserError(f"no item '{name}'", where="--item", expected=choices(name, known))
    return tuple(item for item in items if not names or item.name in names)


def usable(place: Place) -> tuple[Database | None, str]:
    """The history, or None and why it cannot be used. It is left as it is then."""
    try:
        database = Database(place)
        database.prepare()
    except KpatchError as error:
        return None, str(error)
    return database, ""


def finish(
    settings: NightlySettings, night: Night, kept: NightLog, database: Database | None, fault: str
) -> tuple[Night, Published | None]:
    """Site and mail; what they could not do is a trouble of the night, whose results stay."""
    troubles, published = [fault] if fault else [], None
    try:
        if database is None:
            published = mail_alone(settings, replace(night, troubles=(fault,)))
        else:
            published = publish(settings, night, kept, database)
        troubles += published.troubles
    except KpatchError as error:
        troubles.append(f"the site is as it was: {error}")
    night = replace(night, finished=True, troubles=tuple(troubles))
    kept.write(night)
    return night, published


def told(outcome: ItemOutcome) -> None:
    """One line an item, as soon as it is done."""
    line = one_line(f"{outcome.name}: {outcome.state}{f', {outcome.status}' if outcome.status else ''}: {outcome.said}")
    (log.error if outcome.state is ItemState.NOT_DONE else log.info)("%s", line)


def _conclude(night: Night, published: Published | None, *, as_json: bool) -> int:
    news = published is not None and published.regressed
    code = exit_status(night, news=news)
    for trouble in night.troubles:
        log.error("%s", trouble)
    if as_json:
        print_json({**asdict(night), "exit_status": code, "site": published.site if published else None})
    elif published is not None and (code or published.news or log.level <= _INFO):
        click.echo(published.text, nl=False)
    return code


_INFO = 20
"""logging.INFO: not -q."""


def _only_the_site(settings: NightlySettings, place: Place, kept: NightLog, *, as_json: bool) -> int:
    database = Database(place)
    nights = kept.read()
    published = publish(settings, nights[-1] if nights else None, kept, database, mail=False)
    for trouble in published.troubles:
        log.error("%s", trouble)
    if as_json:
        print_json({"site": published.site, "pages": published.pages, "troubles": published.troubles})
    else:
        say(f"site: {published.pages} pages in {published.site}")
    return 3 if published.troubles else 0


def _dry_run(items: Sequence[Item], work: Work, *, as_json: bool, force: bool) -> int:
    found = [look_ahead(item, work, force=force) for item in items]
    if as_json:
        print_json({"items": [asdict(one) for one in found]})
    else:
        for one in found:
            word = {ItemState.RAN: "would run", ItemState.UNCHANGED: "would not run"}.get(
                one.state, "could not be done"
            )
            click.echo(one_line(f"{one.name}: {word}: {one.said}"))
    return 3 if any(one.state is ItemState.NOT_DONE for one in found) else 0
