# SPDX-License-Identifier: GPL-2.0-or-later
"""The night's mail: a few lines when nothing happened, what is bad first when something did; text, and the same in HTML."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from textwrap import shorten

from kpatch_ci.model.digest import digest
from kpatch_ci.model.nightly import ItemState
from kpatch_ci.report.clean import folded, one_line, plain_ascii
from kpatch_ci.report.site.data import BAD, Event, News, Site
from kpatch_ci.report.site.pages import news_page, open_events, reach, summary

WIDTH = 76
MOST = 40
"""Pieces of news that a mail tells; the site has all."""


def subject(site: Site) -> str:
    """The verdict, and what it is about."""
    if not site.news:
        return f"kpatch-ci nightly: {summary(site).split(':')[0].lower()}"
    first = site.news[0]
    more = f" (+{len(site.news) - 1})" if len(site.news) > 1 else ""
    return f"kpatch-ci nightly: {shorten(one_line(f'{first.kind}: {_words(first)}'), 100, placeholder='...')}{more}"


def mail_text(site: Site) -> str:
    """The text part; also what the command prints."""
    lines = [summary(site), ""]
    for one in site.news[:MOST]:
        lines += folded(f"{str(one.kind).upper() if one.kind in BAD else one.kind}: {_words(one)}", WIDTH, "", "    ")
        for part in one.detail.splitlines()[:6]:
            lines += folded(part, WIDTH, "    ")
    if len(site.news) > MOST:
        lines.append(f"and {len(site.news) - MOST} more: see the site")
    if site.news:
        lines.append("")
    for told in reach(site):
        lines += folded(f"Against the night before: {told}.", WIDTH, "", "    ")
    still = _still_open(site)
    if still:
        lines.append(
            f"{len(still)} regressions of earlier nights are open."
            if len(still) > 1
            else "One regression of an earlier night is open."
        )
    same = [o.name for o in site.tonight.outcomes if o.state is ItemState.UNCHANGED] if site.tonight else []
    if same and site.news:
        lines += folded(f"Unchanged, not run: {', '.join(same)}.", WIDTH)
    if site.url:
        lines.append(f"{site.url}/index.html")
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines) + "\n"


def mail_html(site: Site) -> str:
    """The HTML part: no style that a mail program would have to load, no picture."""
    body = "".join(_html_lines(site))
    head = f'<meta charset="utf-8"><title>{_esc(subject(site))}</title>'
    return f'<!DOCTYPE html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _html_lines(site: Site) -> Iterator[str]:
    yield f"<p><b>{_esc(summary(site))}</b></p>"
    if site.news:
        yield "<ul>"
        for one in site.news[:MOST]:
            colour = "#c21f2f" if one.kind in BAD else "#1b1f24"
            words = _esc(_words(one))
            linked = f'<a href="{_esc(f"{site.url}/{news_page(one)}")}">{words}</a>' if site.url else words
            detail = f"<br><small>{_esc(one.detail)}</small>" if one.detail else ""
            yield f'<li><b style="color:{colour}">{_esc(one.kind)}</b>: {linked}{detail}</li>'
        yield "</ul>"
    for told in reach(site):
        yield f"<p>Against the night before: {_esc(told)}.</p>"
    still = _still_open(site)
    if still:
        yield f"<p>Open regressions of earlier nights: {len(still)}.</p>"
    if site.url:
        address = _esc(f"{site.url}/index.html")
        yield f'<p><a href="{address}">{address}</a></p>'


def message(site: Site, sender: str, to: Sequence[str]) -> EmailMessage:
    """The whole mail. The Message-ID is the night's own: the same night is not two mails."""
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = sender, ", ".join(to), plain_ascii(subject(site))
    night = site.tonight.name if site.tonight else "none"
    domain = sender.rpartition("@")[2] or "localhost"
    started = site.tonight.started if site.tonight else site.made
    made["Date"] = format_datetime(datetime.fromisoformat(started))
    made["Message-ID"] = f"<night-{night}.{digest(site.items)[:12]}@{domain}>"
    made["Auto-Submitted"] = "auto-generated"
    made.set_content(mail_text(site))
    made.add_alternative(mail_html(site), subtype="html")
    return made


def _still_open(site: Site) -> list[Event]:
    """Open regressions of earlier nights; tonight's are its news."""
    tonight = {run.run.run for run in site.runs if site.tonight and run.run.night == site.tonight.name}
    return [event for event in open_events(site) if (event.told or event.run) not in tonight]


def _words(news: News) -> str:
    return f"{news.item}: {news.words}" if news.item else news.words


def _esc(text: str) -> str:
    return html.escape(one_line(str(text)))
