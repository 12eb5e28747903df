# SPDX-License-Identifier: GPL-2.0-or-later
"""feed.xml: Atom (RFC 4287), an entry for every night in which something happened."""

from __future__ import annotations

import uuid
from xml.etree import ElementTree as ET

from kpatch_ci.report.clean import printable
from kpatch_ci.report.site.data import News, Site
from kpatch_ci.report.site.pages import news_page

ATOM = "http://www.w3.org/2005/Atom"
NEVER = "1970-01-01T00:00:00+00:00"
_SPACE = uuid.UUID("5f0c6cf5-6d2e-5c55-9d1f-6f0b3c1c7a01")
"""Of our entries' ids: the same night has the same id wherever its feed is made."""


def feed(site: Site) -> str:
    """The whole feed, newest first. Links are whole addresses where ``nightly: url:`` is given."""
    ET.register_namespace("", ATOM)
    root = ET.Element(f"{{{ATOM}}}feed")
    nights = [(name, news) for name, news in sorted(site.older_news.items(), reverse=True) if news]
    _text(root, "title", "kpatch-ci nightly")
    _text(root, "id", _id("feed", ",".join(site.items)))
    _text(root, "updated", _moment(nights[0][0]) if nights else NEVER)
    _text(ET.SubElement(root, f"{{{ATOM}}}author"), "name", "kpatch-ci")
    _link(root, "alternate", _address(site, "index.html"))
    if site.url:
        _link(root, "self", _address(site, "feed.xml"))
    for name, news in nights:
        _entry(root, site, name, news)
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _entry(root: ET.Element, site: Site, night: str, news: tuple[News, ...]) -> None:
    entry = ET.SubElement(root, f"{{{ATOM}}}entry")
    more = f" (and {len(news) - 1} more)" if len(news) > 1 else ""
    _text(entry, "title", f"{news[0].kind}: {_words(news[0])}{more}")
    _text(entry, "id", _id("night", night))
    _text(entry, "updated", _moment(night))
    _link(entry, "alternate", _address(site, news_page(news[0])))
    lines = [f"{one.kind}: {_words(one)}" + (f"\n    {one.detail}" if one.detail else "") for one in news]
    _text(entry, "content", "\n".join(lines)).set("type", "text")


def _words(news: News) -> str:
    return f"{news.item}: {news.words}" if news.item else news.words


def _text(parent: ET.Element, name: str, text: str) -> ET.Element:
    element = ET.SubElement(parent, f"{{{ATOM}}}{name}")
    element.text = printable(text)
    return element


def _link(parent: ET.Element, rel: str, address: str) -> None:
    ET.SubElement(parent, f"{{{ATOM}}}link", rel=rel, href=address)


def _address(site: Site, page: str) -> str:
    return f"{site.url}/{page}" if site.url else page


def _id(*names: str) -> str:
    return f"urn:uuid:{uuid.uuid5(_SPACE, '/'.join(names))}"


def _moment(night: str) -> str:
    """``20261130-020000`` as RFC 3339 wants it."""
    digits = "".join(c for c in night if c.isdigit()).ljust(14, "0")
    d = digits
    return f"{d[:4]}-{d[4:6]}-{d[6:8]}T{d[8:10]}:{d[10:12]}:{d[12:14]}+00:00"
