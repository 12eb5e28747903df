# SPDX-License-Identifier: GPL-2.0-or-later
"""Every file that a run leaves. A reporter is one file, one line in REPORTS or EXPORTS, and its name in formats.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from kpatch_ci.model.result import RunResult
from kpatch_ci.report.clean import safe_json
from kpatch_ci.report.document import as_document
from kpatch_ci.report.formats import file_name
from kpatch_ci.report.html.page import to_html
from kpatch_ci.report.junit import to_junit
from kpatch_ci.report.kcidb import to_kcidb
from kpatch_ci.report.logs import log_names
from kpatch_ci.report.markdown import to_markdown
from kpatch_ci.report.openmetrics import to_openmetrics
from kpatch_ci.report.samples_csv import to_csv
from kpatch_ci.report.samples_parquet import to_parquet
from kpatch_ci.report.schema import Document
from kpatch_ci.report.text import to_text
from kpatch_ci.store.atomic import write_bytes


def to_json(document: Document) -> str:
    """result.json's text."""
    plain = document.model_dump(mode="json", by_alias=True)
    return safe_json(json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"


Report = Callable[[Document], str | bytes]
"""Bytes where a format is no text."""

REPORTS: Mapping[str, Report] = {
    "junit.xml": to_junit,
    "report.txt": to_text,
    "report.md": to_markdown,
    "report.html": to_html,
    "result.json": to_json,
}
"""File name -> writer. result.json comes last: where it is, the others are, unless a writer is broken."""

EXPORTS: Mapping[str, Report] = {
    "kcidb.json": to_kcidb,
    "metrics.prom": to_openmetrics,
    "samples.csv": to_csv,
    "samples.parquet": to_parquet,
}
"""Those that a run leaves where it is asked to, and `report --format` makes of any result.json."""

WITH_LOGS: Mapping[str, Callable[[Document, Path], str]] = {"report.html": to_html}
"""Those that also show logs, where the run's directory has them."""


def render(name: str, document: Document, directory: Path) -> bytes:
    """The report whose file or format is called ``name``. ``directory``: where the document's logs are. Raises UserError."""
    name = file_name(name)
    if name in WITH_LOGS:
        return WITH_LOGS[name](document, directory).encode()
    made = (REPORTS[name] if name in REPORTS else EXPORTS[name])(document)
    return made if isinstance(made, bytes) else made.encode()


def write_reports(result: RunResult, output: Path, exports: Iterable[str] = ()) -> Document:
    """Write every report of ``result`` to ``output``, each atomically, with its logs below ``logs/``; the document that they show.

    ``exports``: formats beside the standard ones.
    """
    logs = {source: name for source, name in log_names(result, output).items() if _carry(source, output / name)}
    document = as_document(result, logs)
    write_document(document, output, tuple(dict.fromkeys((*map(file_name, exports), *REPORTS))))
    return document


def write_document(document: Document, output: Path, names: tuple[str, ...] = tuple(REPORTS)) -> None:
    """Write the reports whose files are called ``names`` from ``document``, and the logs that lie in ``output``.

    A writer that fails (a bug) does not cost the other reports: they are written before its error goes on.
    """
    bug: Exception | None = None
    for name in names:
        try:
            content = render(name, document, output)
        except Exception as error:
            bug = bug or error
        else:
            write_bytes(output / name, content)
    if bug is not None:
        raise bug


def _carry(source: Path, target: Path) -> bool:
    """Have the log at ``target``; False where there is none, so that no report names a file that is not there."""
    if not source.is_file():
        return False
    if source != target:
        write_bytes(target, source.read_bytes())
    return True
