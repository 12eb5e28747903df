# SPDX-License-Identifier: GPL-2.0-or-later
"""Every report of every kind of result, read by a parser of its format: the failure is in it, and nothing is that was not."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import kcidb_io
import pytest
import xmlschema
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from pyarrow import parquet

from kpatch_ci.model.status import Status
from kpatch_ci.report.document import load_document
from kpatch_ci.report.formats import EXPORTS, FORMATS, STANDARD
from kpatch_ci.report.samples import Sample
from kpatch_ci.report.schema import Document
from kpatch_ci.report.write import EXPORTS as EXPORT_WRITERS
from kpatch_ci.report.write import REPORTS, render
from tests.fakes.kinds import KINDS, Kind

XSD = Path(__file__).parents[2] / "data" / "junit" / "jenkins-junit.xsd"
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def rendered(kind: Kind, name: str, tmp_path: Path) -> bytes:
    return render(name, kind.document, tmp_path)


def words(text: str) -> str:
    """With single spaces: a report for people folds its lines."""
    return " ".join(text.replace("|", " ").split())


class Page(HTMLParser):
    """Text and tags of a page."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in {"meta", "link", "br", "hr", "input", "img", "path", "rect", "line", "circle"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def xml_text(source: str) -> str:
    root = ET.fromstring(source)  # noqa: S314 (our own text)
    return " ".join([t for e in root.iter() for t in (e.text or "", *e.attrib.values())])


READABLE: Mapping[str, Callable[[str], str]] = {
    "junit": xml_text,
    "text": str,
    "markdown": str,
    "html": lambda source: " ".join(Page(source).text),
    "json": lambda source: json.dumps(json.loads(source), ensure_ascii=False),
    "kcidb": lambda source: json.dumps(json.loads(source), ensure_ascii=False),
}
"""Formats in which reasons are written, and what reads their words."""


def test_the_table_of_names_and_the_tables_of_writers_agree() -> None:
    assert list(STANDARD.values()) == list(REPORTS)
    assert list(EXPORTS.values()) == list(EXPORT_WRITERS)


def test_every_format_is_read_here() -> None:
    assert set(READABLE) | {"openmetrics", "csv", "parquet"} == set(FORMATS)


@every_kind
def test_the_reason_is_in_every_report_that_has_words(kind: Kind, tmp_path: Path) -> None:
    for name, read in READABLE.items():
        text = words(read(rendered(kind, name, tmp_path).decode()))
        assert [reason for reason in kind.said if reason not in text] == [], name


@every_kind
def test_a_report_comes_out_the_same_each_time(kind: Kind, tmp_path: Path) -> None:
    for name in FORMATS:
        assert rendered(kind, name, tmp_path) == rendered(kind, name, tmp_path), name


@every_kind
def test_no_report_has_escape_sequences_or_other_controls(kind: Kind, tmp_path: Path) -> None:
    for name in (n for n in FORMATS if n != "parquet"):
        text = rendered(kind, name, tmp_path).decode()
        assert not [c for c in text if c < " " and c not in "\n\t"], name


@every_kind
def test_result_json_read_back_is_the_document(kind: Kind, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(rendered(kind, "json", tmp_path))
    assert load_document(tmp_path / "result.json") == kind.document


@every_kind
def test_junit_validates_and_counts_what_failed(kind: Kind, tmp_path: Path, junit: xmlschema.XMLSchema) -> None:
    text = rendered(kind, "junit", tmp_path).decode()
    junit.validate(text)
    suites = list(ET.fromstring(text))  # noqa: S314
    ends = [s for (_, arch), s in kind.ends.items() if arch]
    assert [bad(s) for s in suites] == [s in (Status.FAILED, Status.ERROR) for s in ends]


@pytest.fixture(scope="module")
def junit() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(str(XSD))


def bad(suite: ET.Element) -> bool:
    return suite.get("failures") != "0" or suite.get("errors") != "0"


@every_kind
def test_a_page_is_whole_and_its_names_are_text(kind: Kind, tmp_path: Path) -> None:
    page = Page(rendered(kind, "html", tmp_path).decode())
    assert page.open == []
    for series, _ in kind.ends:
        assert series in words("".join(page.text))


def kcidb_of(document: Document, tmp_path: Path) -> Any:
    return json.loads(render("kcidb", document, tmp_path))


@every_kind
def test_kcidb_takes_it(kind: Kind, tmp_path: Path) -> None:
    report = kcidb_of(kind.document, tmp_path)
    for schema in (kcidb_io.schema.V5_0, kcidb_io.schema.LATEST):
        assert schema.is_compatible(report)
        schema.validate(report)


@every_kind
def test_kcidb_s_objects_belong_together_and_have_an_identifier_each(kind: Kind, tmp_path: Path) -> None:
    report = kcidb_of(kind.document, tmp_path)
    ids = {name: [o["id"] for o in report.get(name, [])] for name in ("checkouts", "builds", "tests")}
    assert all(count == 1 for names in ids.values() for count in Counter(names).values())
    assert {b["checkout_id"] for b in report.get("builds", [])} <= set(ids["checkouts"])
    assert {t["build_id"] for t in report.get("tests", [])} <= set(ids["builds"])
    assert all(o["origin"] == "kpatchci" for name in ids for o in report.get(name, []))


@every_kind
def test_kcidb_has_how_each_series_ended(kind: Kind, tmp_path: Path) -> None:
    report = kcidb_of(kind.document, tmp_path)
    builds = {b["id"]: b for b in report.get("builds", [])}
    ends = {Status.PASSED: "PASS", Status.FAILED: "FAIL", Status.ERROR: "MISS", Status.SKIPPED: "SKIP"}
    wanted = [ends[a.status] for s in kind.document.series for a in s.arches if a.apply.status is Status.PASSED]
    found = [t["status"] for t in report.get("tests", []) if t["path"] == "verdict" and t["build_id"] in builds]
    assert found == wanted
    invalid = [c for c in report.get("checkouts", []) if c.get("valid") is False]
    assert len(invalid) == sum(s.arches[0].apply.status is Status.FAILED for s in kind.document.series if s.arches)


@every_kind
def test_openmetrics_text_is_read_by_prometheus_own_parser(kind: Kind, tmp_path: Path) -> None:
    families = {f.name: f for f in text_string_to_metric_families(rendered(kind, "openmetrics", tmp_path).decode())}
    name = "kpatch_ci_series_status"
    points = families[name].samples if name in families else []
    now = {(p.labels["series"], p.labels["arch"]): p.labels[name] for p in points if p.value == 1}
    assert now == {key: str(status) for key, status in kind.ends.items()}


@every_kind
def test_csv_has_a_row_for_each_sample(kind: Kind, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(rendered(kind, "csv", tmp_path).decode()), strict=True))
    assert len(rows) == kind.samples
    assert all(float(row["value"]) == float(row["value"]) for row in rows)
    assert all(set(row) == set(Sample._fields) for row in rows)


@every_kind
def test_parquet_has_the_rows_of_the_csv(kind: Kind, tmp_path: Path) -> None:
    rows = csv.DictReader(io.StringIO(rendered(kind, "csv", tmp_path).decode()))
    table = parquet.read_table(io.BytesIO(rendered(kind, "parquet", tmp_path)))
    assert table.column_names == list(Sample._fields)
    assert [{k: str(v) for k, v in row.items()} for row in table.to_pylist()] == list(rows)
