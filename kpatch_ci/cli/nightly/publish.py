# SPDX-License-Identifier: GPL-2.0-or-later
"""After a night: the site from the history, the mail as a file, and (only where asked for) to sendmail."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

from kpatch_ci import process
from kpatch_ci.cli.output import log, say
from kpatch_ci.config.history import read_history_settings
from kpatch_ci.config.nightly import MailSettings, NightlySettings
from kpatch_ci.model.errors import KpatchError
from kpatch_ci.model.nightly import Night
from kpatch_ci.pipeline.nightnews import news_of
from kpatch_ci.pipeline.nightsite import gather
from kpatch_ci.report.document import document_of
from kpatch_ci.report.html.page import to_html
from kpatch_ci.report.site.data import Kind, Site
from kpatch_ci.report.site.mail import mail_text, message
from kpatch_ci.report.site.write import write_site
from kpatch_ci.store.atomic import write_bytes
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.query import read_run
from kpatch_ci.store.nights import NightLog

SENDMAIL_SECONDS = 120.0
NO_MAIL = MailSettings(("root@localhost",), "kpatch-ci@localhost", "never", ())


@dataclass(frozen=True, slots=True)
class Published:
    """``text``: the mail's, which is also printed. ``troubles``: what could not be written or sent."""

    site: str
    pages: int
    news: bool
    regressed: bool
    text: str
    troubles: list[str] = field(default_factory=list)


def publish(
    settings: NightlySettings, night: Night | None, kept: NightLog, database: Database, *, mail: bool = True
) -> Published:
    """Site and mail. Raises KpatchError where the history cannot be read; what cannot be written is a trouble."""
    limits = {**read_history_settings(settings.path).limits, **settings.limits}
    nights = [one for one in kept.read() if night is None or one.name != night.name]
    if night is not None:
        nights.append(dataclasses.replace(night, finished=True) if mail else night)
    names = [item.name for item in settings.items]
    site = gather(database, sorted(nights, key=lambda one: one.name), limits, names, settings.url)
    troubles: list[str] = []
    pages = 0
    try:
        pages = write_site(site, settings.site, lambda run: _report(database, run))
        if mail:
            say(f"site: {settings.site}/index.html")
    except KpatchError as error:
        troubles.append(f"the site could not be written, its index is the last night's: {error}")
    if mail and night is not None:
        troubles += _mail(site, settings.mail or NO_MAIL, settings.results / night.name)
    regressed = any(one.kind in (Kind.REGRESSED, Kind.FAILED) for one in site.news)
    return Published(str(settings.site), pages, bool(site.news), regressed, mail_text(site), troubles)


def mail_alone(settings: NightlySettings, night: Night) -> Published:
    """Where the history cannot be used: the site stays as it was, the mail says what is known without it."""
    site = Site(
        made=night.started,
        tonight=night,
        news=news_of(night, night.name, (), ()),
        runs=(),
        trends={},
        events=(),
        url=settings.url,
    )
    troubles = _mail(site, settings.mail or NO_MAIL, settings.results / night.name)
    return Published(str(settings.site), 0, bool(site.news), False, mail_text(site), troubles)


def _report(database: Database, run: str) -> str:
    """report.html of a run, without its consoles; empty where the history cannot give it."""
    try:
        return to_html(document_of(read_run(database, run), run))
    except KpatchError as error:
        log.warning("no report of %s on the site: %s", run, error)
        return ""


def _mail(site: Site, settings: MailSettings, directory: Path) -> list[str]:
    """Write it, and send it where that was asked for. What could not be done."""
    try:
        data = bytes(message(site, settings.sender, settings.to))
        write_bytes(directory / "mail.eml", data)
    except KpatchError as error:
        return [f"the mail could not be written: {error}"]
    say(f"mail: {directory}/mail.eml")
    if settings.send == "never" or (settings.send == "news" and not site.news):
        return []
    try:
        done = process.run(settings.sendmail, timeout=SENDMAIL_SECONDS, stdin=data)
    except KpatchError as error:
        return [f"the mail was not sent: {error}; it is in {directory}/mail.eml"]
    if not done.ok:
        return [f"the mail was not sent: {done.explain()}: {done.output.strip()[-200:]}; it is in {directory}/mail.eml"]
    say(f"mail sent to {', '.join(settings.to)}")
    return []
