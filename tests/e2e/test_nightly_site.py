# SPDX-License-Identifier: GPL-2.0-or-later
"""The nightly site in a real browser: links, sorting, filtering, keyboard, print, phone and desktop, light and dark, a thousand nights."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kpatch_ci.report.site.pages import series_page
from kpatch_ci.report.site.write import write_site
from tests.e2e.browser import Page, browser, browser_root
from tests.e2e.test_report_page import MISPLACED, PALE
from tests.fakes.site import ITEMS, SERIES, made_event, made_site, night_name

pytestmark = pytest.mark.e2e
NIGHTS = 200
INDEX = "/pages/site/index.html"
PAGES = (
    "index.html",
    series_page("stable", SERIES[0]),
    f"runs/{night_name(NIGHTS - 4)}-stable.html",
    "nights/2026-01.html",
)
PICTURES = os.environ.get("KPATCH_CI_PICTURES")
"""Directory for screenshots to look at."""
BROKEN_WORDS = """[...document.querySelectorAll('.cards thead button, .cards tbody th, .cards td[data-label=kernel], .cards .badge')]
.filter((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return !/\\s/.test(cell.textContent.trim()) && new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1;
}).map((cell) => cell.textContent)"""
VISIBLE = "[...document.querySelectorAll('table.sortable tbody tr')].filter((r) => r.offsetHeight > 0)"


def report(run: str) -> str:
    return f"<!DOCTYPE html><title>{run}</title>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The browser; sites of 200 and of 1,000 nights, a hostile and a quiet one."""
    place = tmp_path_factory.mktemp("pages")
    site = made_site(NIGHTS)
    more = dataclasses.replace(made_event(60), better=True, change=5.0, standing="improved")
    write_site(dataclasses.replace(site, events=(more, *site.events)), place / "site", report)
    write_site(made_site(1000), place / "thousand", report)
    write_site(made_site(20, hostile=" <img src=x onerror=alert(1)> \u202e" + "w" * 200), place / "hostile", report)
    write_site(dataclasses.replace(made_site(20, quiet=True), events=()), place / "quiet", report)
    with browser(browser_root(), place) as opened:
        yield opened


def keep(page: Page, name: str) -> None:
    if PICTURES:
        Path(PICTURES, f"{name}.png").write_bytes(page.picture())


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_clipped_or_pale_and_nothing_is_fetched(page: Page, name: str, width: int, dark: bool) -> None:
    page.open(f"/pages/site/{name}", width=width, dark=dark)
    for state in ("folded", "unfolded"):
        assert page.value("document.documentElement.scrollWidth") == width
        assert page.value(MISPLACED) == []
        assert page.value(PALE) == []
        keep(page, f"{Path(name).stem}-{width}-{'dark' if dark else 'light'}-{state}")
        page.value("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.complaints == []
    assert page.requests == [f"file:///pages/site/{name}"]


@pytest.mark.parametrize("width", [1000, 1200, 1400])
def test_no_word_of_the_index_is_broken_where_there_is_room(page: Page, width: int) -> None:
    page.open(INDEX, width=width)
    assert page.value(BROKEN_WORDS) == []
    assert page.value("document.documentElement.scrollWidth") == width


def test_the_number_of_a_change_point_is_beside_its_line(page: Page) -> None:
    page.open(f"/pages/site/{PAGES[1]}", width=1400)
    gaps = page.value(
        """[...document.querySelectorAll('svg.trend a')].filter((a) => a.querySelector('.number')).map((a) =>
        a.querySelector('line').getBoundingClientRect().left - a.querySelector('.number').getBoundingClientRect().right)"""
    )
    assert len(gaps) > 1
    assert all(2 <= gap <= 6 for gap in gaps), gaps


def test_every_link_of_the_index_opens(page: Page) -> None:
    page.open(INDEX, width=1400)
    links = page.value("[...new Set([...document.querySelectorAll('main a')].map((a) => a.href.split('#')[0]))]")
    assert len(links) > 30
    for link in links[:12]:
        page.open(link.removeprefix("file://"), width=1400)
        assert page.value("document.querySelector('h1').textContent.length") > 5
        assert page.value("document.querySelector('nav a').href") == "file:///pages/site/index.html"


def test_filtering(page: Page) -> None:
    page.open(INDEX, width=1400)
    rows = len(ITEMS) * len(SERIES) * 2
    assert page.value(f"{VISIBLE}.length") == rows
    page.value("document.getElementById('filter').focus()")
    page.call("Input.insertText", text="NEXT arm64")
    assert page.value(f"{VISIBLE}.length") == len(SERIES)
    assert page.value("document.getElementById('found').textContent") == f"{len(SERIES)} of {rows} rows"
    page.call("Input.insertText", text=" nothing")
    assert page.value(f"{VISIBLE}.length") == 0


def test_sorting_by_key_and_by_mouse(page: Page) -> None:
    page.open(INDEX, width=1400)
    names = "[...document.querySelectorAll('table.sortable tbody tr')].map((r) => r.cells[0].textContent)"
    page.value("document.querySelector('table.sortable thead button').focus()")
    for kind, text in (("keyDown", "\r"), ("keyUp", "")):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text=text)
    assert page.value(names) == sorted(page.value(names))
    assert page.value("document.querySelector('table.sortable th').ariaSort") == "ascending"
    page.value("document.querySelector('table.sortable thead button').click()")
    assert page.value(names) == sorted(page.value(names), reverse=True)
    assert page.value("document.querySelectorAll('th[aria-sort]').length") == 1


def test_the_keyboard_reaches_everything_and_is_trapped_nowhere(page: Page) -> None:
    for name in PAGES[:2]:
        page.open(f"/pages/site/{name}", width=1400)
        page.value("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        focusable = "a[href], button, input, summary, [tabindex='0']"
        wanted = page.value(
            f"[...document.querySelectorAll(`{focusable}`)].filter((e) => e.getClientRects().length).length"
        )
        seen = page.value("window.seen = new Set(); addEventListener('focusin', (e) => seen.add(e.target)); 0")
        for _ in range(wanted + 2):
            for kind in ("rawKeyDown", "keyUp"):
                page.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        seen = page.value("seen.size")
        assert seen >= wanted, name
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.value(outline) in ("solid", "auto", "none")


def test_a_mark_in_a_plot_leads_to_its_change_point(page: Page) -> None:
    page.open(f"/pages/site/{PAGES[1]}", width=1400)
    assert page.value("document.querySelectorAll('svg.trend a').length") >= 4
    page.value(
        "document.querySelector('svg.trend a').dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))"
    )
    assert page.value("location.hash") in ("#e1", "#e2")
    assert (
        page.value("document.querySelector(':target').textContent").strip().startswith("wakeup-gran (patched), arm64")
    )


def test_without_scripts_all_is_there(page: Page) -> None:
    page.open(INDEX, width=1400)
    text = page.value("document.querySelector('main').textContent.replace(/\\s+/g, ' ')")
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(INDEX, width=1400)
        assert page.value("document.querySelector('main').textContent.replace(/\\s+/g, ' ')") == text
        assert page.value("document.querySelector('.tools').hidden") is True
        assert page.value(f"{VISIBLE}.length") == 12
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)


def test_on_paper(page: Page) -> None:
    for name in PAGES[:3]:
        page.open(f"/pages/site/{name}", width=718, dark=True)
        page.call(
            "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}]
        )
        assert page.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.value("document.querySelector('nav').getBoundingClientRect().height") == 0
        assert (
            page.value("[...document.querySelectorAll('details')].every((d) => d.getBoundingClientRect().height > 40)")
            is True
        )
        assert page.value("document.documentElement.scrollWidth") == 718
        assert page.value(PALE) == []
        pdf = page.pdf()
        assert pdf.startswith(b"%PDF-")
        if PICTURES:
            Path(PICTURES, f"{Path(name).stem}.pdf").write_bytes(pdf)


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("name", ["index.html", series_page("stable", SERIES[0]), f"runs/{night_name(7)}-stable.html"])
def test_a_hostile_history_runs_nothing_and_fits(page: Page, name: str, width: int) -> None:
    page.open(f"/pages/hostile/{name}", width=width)
    assert page.value("document.documentElement.scrollWidth") == width
    assert page.value("document.images.length") == 0
    assert page.value("document.scripts.length") == 1
    assert [e for e in page.events if e.get("method") == "Page.javascriptDialogOpening"] == []
    assert page.complaints == []


def test_a_quiet_night_says_so_at_once(page: Page) -> None:
    page.open("/pages/quiet/index.html", width=1400)
    assert (
        page.value("document.querySelector('p.title').textContent") == "Nothing changed: 3 items, 0 ran, 3 unchanged."
    )
    assert page.value("document.getElementById('tonight')") is None
    keep(page, "quiet")


def test_a_thousand_nights_open_in_less_than_a_second(page: Page) -> None:
    timing = "(() => { const t = performance.getEntriesByType('navigation')[0]; return [t.loadEventEnd, t.decodedBodySize]; })()"
    times = []
    for _ in range(3):
        page.open("/pages/thousand/index.html", width=1400)
        deadline = time.monotonic() + 20
        while not page.value(timing)[0] and time.monotonic() < deadline:
            time.sleep(0.05)
        loaded, size = page.value(timing)
        times.append(loaded)
    print(f"index of 1,000 nights: {size} bytes, loaded after {times} ms")  # noqa: T201
    assert 0 < min(times) < 1000
    assert 0 < size < 2_000_000
    page.open(f"/pages/thousand/{PAGES[1]}", width=1400)
    print(f"series page: {page.value(timing)}")  # noqa: T201
    assert page.value(timing)[1] < 2_000_000
    keep(page, "thousand-series")
