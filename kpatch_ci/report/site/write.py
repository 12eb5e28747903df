# SPDX-License-Identifier: GPL-2.0-or-later
"""The site's directory: pages written atomically, only those that changed, the index last. Of what is there, only ours is removed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.report.site.data import Site
from kpatch_ci.report.site.feed import feed
from kpatch_ci.report.site.pages import FEED, pages, report_page
from kpatch_ci.store.atomic import disk_errors, write_text
from kpatch_ci.store.cache import locked

MANIFEST = ".kpatch-ci-site.json"
"""Names of every file that we wrote: what is not in it is not ours."""
REPORTS = 30
"""Newest runs that have their whole report on the site."""

Report = Callable[[str], str]
"""A run's report.html; empty where it cannot be had."""


def write_site(site: Site, place: Path, report: Report) -> int:
    """Write it all; the number of pages. Raises InfrastructureError (a full disk: the index stays as it was), UserError."""
    with disk_errors(place):
        place.mkdir(parents=True, exist_ok=True)
    with locked(place / MANIFEST):
        old = _manifest(place)
        reports = [report_page(run.run.run) for run in site.runs[-REPORTS:]]
        texts = {
            page: text
            for run, page in zip(site.runs[-REPORTS:], reports, strict=True)
            if page not in old or not (place / page).is_file()
            if (text := report(run.run.run))
        }
        there = {page for page in reports if page in texts or (place / page).is_file()}
        texts[FEED] = feed(site)
        texts |= dict(
            pages(site, frozenset(r.run.run for r in site.runs[-REPORTS:] if report_page(r.run.run) in there))
        )
        names = {*texts, *there}
        _refuse_foreign(place, names - old)
        with disk_errors(place):
            # What will be ours is on the list before it is there: a kill leaves no file that nobody owns.
            write_text(place / MANIFEST, _json(names | old))
            for name, text in texts.items():
                _write(place / name, text)
            for name in sorted(old - names):
                _remove(place, name)
            write_text(place / MANIFEST, _json(names))
    return len(names)


def _refuse_foreign(place: Path, names: set[str]) -> None:
    for name in sorted(names):
        if (place / name).exists() or (place / name).is_symlink():
            raise UserError(
                "is there already and was not made by us: it stays, and no site is written",
                where=str(place / name),
                expected="`site:` an empty directory, or one that `kpatch-ci nightly` made",
            )


def _write(path: Path, text: str) -> None:
    """Only where it differs: a thousand nights' pages are as they were."""
    data = text.encode()
    try:
        if path.stat().st_size == len(data) and path.read_bytes() == data:
            return
    except OSError:
        pass
    write_text(path, text)


def _remove(place: Path, name: str) -> None:
    path = place / name
    path.unlink(missing_ok=True)
    if path.parent != place and not any(path.parent.iterdir()):
        path.parent.rmdir()


def _manifest(place: Path) -> set[str]:
    """Raises InfrastructureError where it is damaged: then we do not know what is ours."""
    path = place / MANIFEST
    try:
        names = json.loads(path.read_text())["files"]
        if not all(isinstance(name, str) and _inside(name) for name in names):
            raise ValueError("a name that leads out of the site")
        return set(names)
    except FileNotFoundError:
        return set()
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = "name another directory, or empty this one; `kpatch-ci nightly --site-only` makes the site again"
        raise InfrastructureError(
            f"{path}, which lists the site's own files, is damaged: {error}", hint=hint
        ) from error


def _inside(name: str) -> bool:
    parts = Path(name).parts
    return bool(parts) and not Path(name).is_absolute() and ".." not in parts


def _json(names: set[str]) -> str:
    return json.dumps({"made by": "kpatch-ci nightly", "files": sorted(names)}, indent=0) + "\n"
