# SPDX-License-Identifier: GPL-2.0-or-later
"""report.html in a real browser: phone and desktop, light and dark, paper, with and without scripts, friendly and hostile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kpatch_ci.model.result import ArchResult, ArmResult, RunResult
from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import Replicate
from kpatch_ci.report.html.page import to_html
from kpatch_ci.report.write import write_reports
from tests.e2e.browser import Page, browser, browser_root
from tests.fakes.results import SEEDS, arch_result, arm_result, boot, comparison, everything, run_result
from tests.unit.report.test_page import ATTACKS, hostile

pytestmark = pytest.mark.e2e
WIDTHS = (400, 1400)
LINES = 300

MISPLACED = """(() => {
  const found = [], wide = document.documentElement.clientWidth;
  const inside = (e) => !e.closest(".scroll, details:not([open]) > :not(summary)");
  const boxes = (e) => { const range = document.createRange(); range.selectNodeContents(e); return [...range.getClientRects()]; };
  for (const e of document.querySelectorAll("body *:not(script)")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !inside(e) || e.tagName.toLowerCase() === "title") continue;
    for (const box of boxes(e))
      if (box.left < -0.5 || box.right > wide + 0.5)
        found.push(`outside: ${e.tagName} ${e.textContent.slice(0, 60)} ${box.left}..${box.right}`);
  }
  const across = (a, b) => a.left < b.right - 0.5 && b.left < a.right - 0.5;
  const overlap = (a, b) => across(a, b) && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5;
  const groups = [
    ...[...document.querySelectorAll(".row")].map((r) => [...r.querySelectorAll(".label, .value")]),
    ...[...document.querySelectorAll("svg.panel, svg.axis")].map((s) => [...s.querySelectorAll("text")]),
  ];
  for (const group of groups)
    group.forEach((a, i) => group.slice(i + 1).forEach((b) => {
      if (inside(a) && overlap(a.getBoundingClientRect(), b.getBoundingClientRect()))
        found.push(`overlap: ${a.textContent} / ${b.textContent}`);
    }));
  for (const svg of document.querySelectorAll("svg.strip, svg.panel, svg.bar, svg.panel svg")) {
    const box = svg.getBoundingClientRect();
    if (inside(svg) && (box.width < 100 || box.height < 10)) found.push(`small: ${svg.textContent} ${box.width}x${box.height}`);
  }
  return found;
})()"""
"""What is beside the window, on top of something else, or has no room."""

PALE = """(() => {
  const luminance = (c) => {
    const [r, g, b] = c.match(/[\\d.]+/g).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (c !== "rgba(0, 0, 0, 0)") return c;
    }
    return "rgb(255, 255, 255)";
  };
  const found = new Set();
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || e.closest("script, title")) continue;
    const style = getComputedStyle(e), color = e.closest("svg") ? style.fill : style.color;
    const [a, b] = [luminance(color), luminance(ground(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.add(`${e.tagName}.${e.getAttribute("class")} ${color} on ${ground(e)}`);
  }
  return [...found];
})()"""
"""Text with less contrast than WCAG's 4.5 to 1."""


def good_arch(place: Path) -> ArchResult:
    """Cases with long names, counters, frequencies and consoles."""
    labels = ("fs=ext4,clients=8", "rw=write,bs=4k,oflag=direct+dsync", "groups=16,mode=process-pipes,datasize=100")
    found = [comparison(case="all", primary=True), *(comparison(case=label) for label in labels)]
    found.append(comparison(case="groups=1", change_percent=-0.4, ci_percent=(-1.6, 0.9)))
    for metric in ("migrations", "context_switches", "wakeups"):
        found += [comparison(metric=metric, unit="count", case=c, ci_percent=(-350.0, 12.0)) for c in labels]
    states = {"policy0": {"500000": 30, "800000": 0, "1800000": 70}, "policy6": {"700000": 100, "2400000": 3}}
    ran = {f"cpu{n}": {"run_ns": 10_000_000 * (1 + n), "wait_ns": 5000} for n in range(8)}
    arms: list[ArmResult] = []
    for arm in ("baseline", "patched"):
        extra = {"time_in_state": states, "cpu_times": ran, "frequency": frequencies(1 + len(arms))}
        runs = tuple(
            Replicate("hackbench", label, seed, Status.PASSED, Mode.DETERMINISTIC, extra=extra)
            for label in labels
            for seed in SEEDS
        )
        console = place / f"{arm}.log"
        console.write_text("".join(f"[{i:12.6f}] {arm} says line {i} <b>&amp;\n" for i in range(LINES)))
        arms.append(arm_result(arm, boots=(boot(1, arm, console=console),), replicates=runs))
    clusters = {"little": tuple(range(6)), "big": (6, 7)}
    return arch_result(baseline=arms[0], patched=arms[1], clusters=clusters, comparisons=tuple(found))


def frequencies(speed: int) -> dict[str, object]:
    """One policy that changes every 10 ms / speed, more often than is drawn, and one that never does."""
    steps = (500000, 800000, 1100000, 1400000, 1800000)
    changes = [[10_000_000 * n // speed, steps[n % 5]] for n in range(1, 500)]
    policies = {"policy0": {"khz": 1400000, "changes": changes}, "policy6": {"khz": 700000, "changes": []}}
    return {"span_ns": 5_000_000_000 // speed, "lost": 3, "known_from_ns": 9_000_000, "policies": policies}


def result(place: Path) -> RunResult:
    """A good series, and one of each kind."""
    noise = comparison(case="all", primary=True, mode=Mode.KVM, patched=(0.9, 1.8))
    unpaired = arch_result(comparisons=(noise, replace(noise, case="groups=8", primary=False)))
    return run_result(("good", good_arch(place)), ("unpaired", unpaired), *everything())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The browser; /pages/report.html and /pages/hostile-N.html."""
    place = tmp_path_factory.mktemp("pages")
    store = tmp_path_factory.mktemp("store")
    write_reports(result(store), place)
    for i, attack in enumerate(ATTACKS):
        (place / f"hostile-{i}.html").write_text(to_html(hostile(attack)), encoding="utf-8")
    with browser(browser_root(), place) as opened:
        yield opened


def unfold(page: Page) -> None:
    page.value("document.querySelectorAll('details').forEach((d) => { d.open = true; })")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_clipped_overlaps_or_is_pale(page: Page, width: int, dark: bool) -> None:
    page.open("/pages/report.html", width=width, dark=dark)
    assert page.value("matchMedia('(prefers-color-scheme: dark)').matches") is dark
    assert page.value("document.querySelectorAll('svg.strip').length") > 10
    assert page.value("document.querySelectorAll('path.step').length") == 2 * 3 * 2, (
        "two policies, three cases, two arms"
    )
    assert page.value("document.querySelectorAll('path.solid').length") == 3
    for _ in ("folded", "unfolded"):
        assert page.value("document.documentElement.scrollWidth") == width
        assert page.value(MISPLACED) == []
        assert page.value(PALE) == []
        unfold(page)
    assert page.complaints == []
    assert page.requests == ["file:///pages/report.html"]
    assert len(page.picture()) > 20_000


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("number", range(len(ATTACKS)))
def test_a_hostile_result_runs_nothing_and_fits(page: Page, number: int, width: int) -> None:
    page.open(f"/pages/hostile-{number}.html", width=width)
    unfold(page)
    assert page.value("document.documentElement.scrollWidth") == width
    assert page.value("document.scripts.length") == 1
    assert page.value("document.images.length") == 0
    assert [e for e in page.events if e.get("method") == "Page.javascriptDialogOpening"] == []
    assert page.complaints == []
    assert page.requests == [f"file:///pages/hostile-{number}.html"]


def test_the_console_is_searched(page: Page) -> None:
    page.open("/pages/report.html", width=1400)
    page.value("document.querySelector('a[href=\"#console-2\"]').click()")
    box = "document.getElementById('console-2')"
    assert page.value(f"{box}.open") is True
    assert page.value(f"{box}.querySelector('.find').hidden") is False
    page.value(f"{box}.querySelector('input').focus()")
    page.call("Input.insertText", text="LINE 29")
    assert page.value(f"{box}.querySelector('output').textContent") == f"11 of {LINES} lines"
    lines = page.value(f"{box}.querySelector('pre').textContent").split("\n")
    assert len(lines) == 11
    assert all(" patched says line 29" in line for line in lines)
    page.value(f"{box}.querySelector('input').value = ''")
    page.value(f"{box}.querySelector('input').dispatchEvent(new Event('input'))")
    assert page.value(f"{box}.querySelector('pre').textContent.split('\\n').length") == LINES


def test_without_scripts_the_page_is_whole_but_for_the_search(page: Page) -> None:
    page.open("/pages/report.html", width=1400)
    text = page.value("document.body.textContent")
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open("/pages/report.html", width=1400)
        assert page.value("document.body.textContent") == text
        assert page.value("[...document.querySelectorAll('.find')].every((e) => e.hidden)") is True
        assert page.value(MISPLACED) == []
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)


def test_on_paper_the_tables_are_open_and_the_consoles_away(page: Page) -> None:
    page.open("/pages/report.html", width=718, dark=True)
    page.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    table = "document.querySelector('figure details.paper table').getBoundingClientRect().height"
    assert page.value(table) > 50
    assert page.value("document.getElementById('consoles').getBoundingClientRect().height") == 0
    assert page.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.value("document.documentElement.scrollWidth") == 718
    assert page.value(PALE) == []
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF-")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") > 1
