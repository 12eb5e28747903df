# SPDX-License-Identifier: GPL-2.0-or-later
"""report.html: what is on the page, and that nothing from a patch or a guest becomes more than text."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.model.status import Mode, Verdict
from kpatch_ci.report.clean import visible
from kpatch_ci.report.document import as_document, load_document, to_document
from kpatch_ci.report.html.console import MAX_BYTES, MAX_LINES, consoles
from kpatch_ci.report.html.page import to_html
from kpatch_ci.report.schema import Document
from kpatch_ci.report.write import write_reports
from tests.fakes.results import (
    HOSTILE,
    arch_result,
    arm_result,
    boot,
    boot_failed,
    comparison,
    everything,
    not_bisectable,
    run_result,
    skipped,
)

VOID = {"meta", "br", "input"}
ATTACKS = (
    "</script><script>alert(1)</script>",
    "</style></title></pre></details><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.\u2066\u200b\x07\x1b[31mred",
    "]]><!-- --><svg/onload=alert(1)>",
    HOSTILE,
)


@dataclass
class Element:
    """One element: its tag, attributes, and the text directly in it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    path: tuple[str, ...] = ()


@dataclass
class Reader(HTMLParser):
    """Reads a page; fails where tags are not closed as they were opened."""

    elements: list[Element] = field(default_factory=list)
    open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), attrs
        element = Element(tag, {k: v or "" for k, v in attrs}, path=tuple(e.tag for e in self.open))
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        if self.open:
            self.open[-1].text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert not reader.open
    return reader


def texts(page: str, tag: str) -> list[str]:
    return [e.text for e in read(page).elements if e.tag == tag]


def poisoned(value: Any, attack: str) -> Any:
    """Every text of a document that no schema fixes, with an attack behind it; keys of mappings too where they are free."""
    if isinstance(value, dict):
        return {k: v if k in FIXED else poisoned(v, attack) for k, v in value.items()}
    if isinstance(value, list):
        return [poisoned(v, attack) for v in value]
    return value + attack if isinstance(value, str) else value


FIXED = {
    "schema",
    "status",
    "mode",
    "better",
    "verdict",
    "method",
    "fit",
    "seed",
    "seeds",
    "metric",
    "kind",
    "agreement",
}


def hostile_claim(attack: str, kind: str) -> dict[str, Any]:
    figure = {"text": attack, "value": 1.0, "unit": attack, "percent": attack, "kernel": attack}
    words = (
        "text",
        "workload",
        "metric",
        "case",
        "statistic",
        "label",
        "stated_percent",
        "says",
        "source",
        "note",
        "guessed",
        "reason",
    )
    measured = {"workload": attack, "metric": attack, "case": attack, "verdict": "improved"}
    return dict.fromkeys(words, attack) | {
        "kind": kind,
        "agreement": "agrees",
        "figures": [figure, figure],
        "baseline": figure,
        "patched": figure,
        "measured": measured,
    }


def hostile(attack: str) -> Document:
    attack = attack.encode("utf-8", "replace").decode()
    raw = poisoned(to_document(run_result()), attack)
    raw["fingerprint"][attack] = attack
    for series in raw["series"]:
        series["claims"] = [
            {"text": attack, "change_percent": 1.0, "workload": attack, "metric": attack, "case": attack, "arch": ""}
        ]
        series["variant"], series["notes"], series["arms"] = attack, attack, [attack, attack]
        series["flags"] = series["chosen"] = [attack]
        for arch in series["arches"]:
            arch["claims"] = [hostile_claim(attack, kind) for kind in ("row", "sentence")]
            arch["differing"] = {attack: [attack]}
            arch["config_changes"] = arch["new_complaints"] = arch["not_compiled"] = [attack]
            arch["boot"]["baseline"]["facts"]["cpufreq"] = [{"policy": attack, "related_cpus": attack}, attack]
            arch["build"]["patched"]["misses"] = [
                {"symbol": attack, "wanted": attack, "got": attack, "reason": attack, "where": attack}
            ]
            shares = {"seconds": 1.0, "shares": {attack: 1.0}}
            arch["residencies"] = [
                {"workload": f"dd{attack}", "case": attack, "policy": attack, "baseline": shares, "patched": shares}
            ]
            ran = {"cpus": {attack: 0.75, "1": 0.25}, "clusters": {attack: 1.0}}
            line = {"span_ns": 10, "khz": 5, "changes": [[5, 6]], "total": 1}
            told = {"workload": f"dd{attack}", "case": attack}
            arch["clusters"] = {attack: [0], "other": [1]}
            arch["placement_times"] = [told | {"baseline": ran, "patched": ran}]
            arch["timelines"] = [
                told | {"seed": attack, "policy": attack, "baseline": line, "patched": line},
                told | {"seed": attack, "policy": attack, "baseline": {"span_ns": 10, "khz": 5}},
            ]
            for c in arch["comparisons"]:
                c["seeds"] = [attack for _ in c["seeds"]]
    return Document.model_validate(raw)


def test_the_hostile_document_reaches_every_part_of_the_page() -> None:
    reached = [e for e in read(to_html(hostile("ATTACK"))).elements if "ATTACK" in e.text]
    assert {e.tag for e in reached} >= {"a", "code", "dd", "dt", "h2", "h3", "h4", "p", "pre", "td", "th", "title"}
    classes = {name for e in reached for name in e.attributes.get("class", "").split()}
    assert classes >= {"label", "quote", "title", "command", "why"}
    pictures = [e for e in reached if e.tag == "title" and "svg" in e.path]
    assert {e.path[-1] for e in pictures} == {"svg", "circle"}


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_text_adds_no_element_and_no_attribute(attack: str) -> None:
    harmless, page = read(to_html(hostile("harmless"))), read(to_html(hostile(attack)))
    assert Counter(e.tag for e in page.elements) == Counter(e.tag for e in harmless.elements)
    for element, like in zip(page.elements, harmless.elements, strict=True):
        assert element.tag == like.tag
        assert element.attributes.keys() == like.attributes.keys()
        assert not [name for name in element.attributes if name.startswith("on") or name == "style"]
        assert not {"src", "srcset", "action", "formaction", "data"} & element.attributes.keys()
        assert element.attributes.get("href", "#").startswith("#")
        assert element.attributes.get("class", "") == like.attributes.get("class", "")
    scripts = [e.text for e in page.elements if e.tag == "script"]
    assert scripts == [e.text for e in harmless.elements if e.tag == "script"]
    assert len(scripts) == 1


@pytest.mark.parametrize("attack", ATTACKS)
def test_controls_and_bidi_marks_are_spelled_out(attack: str) -> None:
    page = to_html(hostile(attack))
    assert [c for c in page if not c.isprintable() and c != "\n"] == []


def test_visible_spells_out_what_has_no_glyph() -> None:
    assert visible("a\u202eb\u200b\x07\x1b[31mc\x1b[0m\td\r\ne") == "a<U+202E>b<U+200B><U+0007>c\td\ne"
    assert visible("caf\u00e9 \u2192 \u6f22") == "caf\u00e9 \u2192 \u6f22"


def test_templates_in_a_text_are_not_run() -> None:
    assert "{{ 7 * 7 }}" in to_html(hostile("{{ 7 * 7 }}"))


def test_the_policy_allows_nothing_but_the_pages_own_script_and_style() -> None:
    page = to_html(run_result())
    elements = read(page).elements
    [policy] = [
        e.attributes["content"] for e in elements if e.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    parts = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert parts["default-src"] == "'none'"
    for tag in ("script", "style"):
        [text] = [e.text for e in elements if e.tag == tag]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert parts[f"{tag}-src"] == f"'sha256-{digest}'"
    assert not re.search(r"(?:https?:)?//[a-z]", re.sub(r"<script>.*</script>", "", page, flags=re.S))


@pytest.mark.parametrize(("name", "arch"), everything())
def test_each_kind_of_result_has_a_page_with_its_verdict_first(name: str, arch: Any) -> None:
    page = to_html(run_result((name, arch)))
    headings = [e.text for e in read(page).elements if e.tag == "h2"]
    assert headings[0] == "Verdicts"
    failed = arch.status in ("failed", "error")
    assert ("What went wrong" in headings) is failed
    assert headings[-1] == "To reproduce"
    badges = [e.text for e in read(page).elements if "badge" in e.attributes.get("class", "").split()]
    assert badges[0] == arch.status


def test_builds_after_every_patch_and_findings_are_listed() -> None:
    items = texts(to_html(run_result(("half-way", not_bisectable()))), "code")
    assert "patch 1/3 `a: one`: builds" in items
    assert "    kernel/a.c:7: warning: unused variable 'c' [-Wunused-variable] (in f)" in items
    assert any(item.startswith("patch 2/3 `b: foo.c:3:") and item.endswith("failed: make: exit 2") for item in items)
    assert "    kernel/a.c:9: error: 'x' undeclared" in items
    assert "patch 2: error: no sign-off [NO_SIGN]" in items


def test_unpaired_samples_are_not_called_pairs() -> None:
    unpaired = comparison(case="all", primary=True, mode=Mode.KVM, patched=(0.9, 1.8))
    captions = texts(to_html(run_result(("s", arch_result(comparisons=(unpaired,))))), "figcaption")
    assert captions[1] == "time (s): 3 and 2 runs, rings baseline, dots patched"
    assert not [c for c in captions if "pair" in c]


def test_every_link_leads_somewhere_and_every_id_is_one() -> None:
    elements = read(to_html(run_result())).elements
    ids = [e.attributes["id"] for e in elements if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    links = [e.attributes["href"] for e in elements if "href" in e.attributes]
    assert links
    assert {link[1:] for link in links} <= set(ids)


def test_every_plot_has_a_text_and_a_table_behind_it() -> None:
    counters = [
        comparison(metric=m, unit="count", baseline=(4.0, 5.0, 6.0)) for m in ("migrations", "context_switches")
    ]
    arch = arch_result(comparisons=(comparison(case="all", primary=True), comparison(), *counters))
    elements = read(to_html(run_result(("s", arch)))).elements
    figures = sum(e.tag == "figure" for e in elements)
    tables = sum(e.tag == "table" and e.path[-2:] == ("details", "div") and "figure" in e.path for e in elements)
    assert figures == tables == 5, "cases, seeds, migration rates, two counters"
    for picture in (e for e in elements if e.tag == "svg" and e.attributes.get("role") == "img"):
        i = elements.index(picture)
        assert elements[i + 1].tag == "title"
        assert elements[i + 1].text


def test_figures_are_spelled_as_in_the_text_report() -> None:
    cells = texts(to_html(run_result(("s", arch_result()))), "td")
    for spelled in ("2.000", "1.800", "+10.0", "+8.25..+12.1", "<.0001", "0.0421"):
        assert spelled in cells


def test_a_verdict_is_a_row_with_its_minimum_detectable_effect_where_that_is_known() -> None:
    figures = [comparison(w, case="all", primary=True, mde_percent=m) for w, m in (("dd", 0.731), ("dbench", None))]
    page = read(to_html(run_result(("s", arch_result(comparisons=tuple(figures))), ("off", skipped()))))
    labels = ("arch", "workload", "change", "interval %", "p adj", "MDE %", "verdict", "status")
    cells = [e for e in page.elements if e.tag == "td" and e.attributes.get("data-label") in labels]
    told = [(e.attributes["data-label"], e.text) for e in cells if e.attributes["data-label"] == "MDE %"]
    assert told == [("MDE %", "0.73"), ("MDE %", "")]
    assert [e.attributes["colspan"] for e in cells if "colspan" in e.attributes] == ["6"]
    assert "MDE %" not in to_html(run_result(("s", arch_result())))


def test_a_regression_is_told_before_any_series() -> None:
    arch = arch_result(comparisons=(comparison(case="all", primary=True, verdict=Verdict.REGRESSED),))
    page = to_html(run_result(("s", arch)))
    assert page.index("What went wrong") < page.index('class="series"')


def console_of(tmp_path: Path, data: bytes) -> Document:
    log = tmp_path / "store" / "console"
    log.parent.mkdir()
    log.write_bytes(data)
    baseline, patched = (arm_result(arm, boots=(boot(1, arm, console=log),)) for arm in ("baseline", "patched"))
    return write_reports(run_result(("s", arch_result(baseline=baseline, patched=patched))), tmp_path / "out")


def test_the_console_is_on_the_page_once_escaped_and_the_script_searches_it(tmp_path: Path) -> None:
    console_of(tmp_path, b"[    0.1] <b>Linux</b> \xff\x1b[1mversion\r\n[    0.2] \xe2\x80\xaeboot\n")
    page = (tmp_path / "out" / "report.html").read_text()
    [found] = [e for e in read(page).elements if e.tag == "pre" and "console" not in e.text and "Linux" in e.text]
    assert found.text == "[    0.1] <b>Linux</b> \ufffdversion\n[    0.2] <U+202E>boot"
    [field_] = [e for e in read(page).elements if e.tag == "input"]
    assert field_.attributes["type"] == "search"
    anchors = [e.attributes["href"] for e in read(page).elements if e.attributes.get("href", "").startswith("#console")]
    assert anchors == ["#console-1", "#console-1"], "both arms show the one"


def test_a_long_console_keeps_its_end(tmp_path: Path) -> None:
    document = console_of(tmp_path, b"".join(b"line %d\n" % i for i in range(MAX_LINES + 10)))
    [console] = consoles(document, tmp_path / "out").values()
    lines = console.text.split("\n")
    assert (lines[0], lines[-1]) == ("line 10", f"line {MAX_LINES + 9}")
    assert (console.lines, console.cut) == (MAX_LINES, True)


def test_a_console_without_line_ends_is_bounded_too(tmp_path: Path) -> None:
    document = console_of(tmp_path, b"x" * (MAX_BYTES + 5))
    [console] = consoles(document, tmp_path / "out").values()
    assert (len(console.text), console.cut) == (MAX_BYTES, True)


def test_of_several_boots_the_one_that_failed_is_shown(tmp_path: Path) -> None:
    document = as_document(run_result(("no-boot", boot_failed())))
    (tmp_path / "logs/arm64/no-boot").mkdir(parents=True)
    for n in (1, 2):
        (tmp_path / f"logs/arm64/no-boot/console-{n}.log").write_text(f"boot {n}\n")
    found = consoles(document, tmp_path)
    assert [c.text for c in found.values()] == ["boot 2"]


def test_without_its_directory_the_page_is_whole_but_for_consoles(tmp_path: Path) -> None:
    console_of(tmp_path, b"Linux\n")
    path = tmp_path / "out" / "result.json"
    page = to_html(load_document(path))
    assert "Boot consoles" not in page
    assert "logs/arm64/baseline/console-1.log" in page
    assert "Boot consoles" in to_html(load_document(path), path.parent)


@pytest.mark.parametrize("log", ["../secret", "/etc/hostname", "logs/../../secret", "link", "logs", "a\0b"])
def test_a_log_outside_the_runs_directory_is_not_read(tmp_path: Path, log: str) -> None:
    (tmp_path / "secret").write_text("secret")
    run = tmp_path / "run"
    (run / "logs").mkdir(parents=True)
    (run / "link").symlink_to(tmp_path / "secret")
    raw = to_document(run_result(("s", arch_result())))
    raw["series"][0]["arches"][0]["boot"]["patched"]["boots"][0]["log"] = log
    assert consoles(Document.model_validate(raw), run) == {}
