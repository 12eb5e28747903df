# SPDX-License-Identifier: GPL-2.0-or-later
"""Every file that a run leaves. A reporter is one file and one line in REPORTS."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from kpatch_ci.model.result import RunResult
from kpatch_ci.report.clean import safe_json
from kpatch_ci.report.document import as_document
from kpatch_ci.report.html.page import to_html
from kpatch_ci.report.junit import to_junit
from kpatch_ci.report.logs import log_names
from kpatch_ci.report.markdown import to_markdown
from kpatch_ci.report.schema import Document
from kpatch_ci.report.text import to_text
from kpatch_ci.store.atomic import write_bytes, write_text


def to_json(document: Document) -> str:
    """result.json's text."""
    plain = document.model_dump(mode="json", by_alias=True)
    return safe_json(json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"


Report = Callable[[Document], str]

REPORTS: Mapping[str, Report] = {
    "junit.xml": to_junit,
    "report.txt": to_text,
    "report.md": to_markdown,
    "report.html": to_html,
    "result.json": to_json,
}
"""File name -> writer. result.json comes last: where it is, the others are, unless a writer is broken."""

WITH_LOGS: Mapping[str, Callable[[Document, Path], str]] = {"report.html": to_html}
"""Those that also show logs, where the run's directory has them."""


def render(name: str, document: Document, directory: Path) -> str:
    """The text of the report called ``name``. ``directory``: where the document's logs are."""
    return WITH_LOGS[name](document, directory) if name in WITH_LOGS else REPORTS[name](document)


def write_reports(result: RunResult, output: Path) -> Document:
    """Write every report of ``result`` to ``output``, each atomically, with its logs below ``logs/``; the document that they show."""
    logs = {source: name for source, name in log_names(result, output).items() if _carry(source, output / name)}
    document = as_document(result, logs)
    write_document(document, output)
    return document


def write_document(document: Document, output: Path, names: tuple[str, ...] = tuple(REPORTS)) -> None:
    """Write the reports called ``names`` from ``document``, and the logs that lie in ``output``.

    A writer that fails (a bug) does not cost the other reports: they are written before its error goes on.
    """
    bug: Exception | None = None
    for name in names:
        try:
            text = render(name, document, output)
        except Exception as error:
            bug = bug or error
        else:
            write_text(output / name, text)
    if bug is not None:
        raise bug


def _carry(source: Path, target: Path) -> bool:
    """Have the log at ``target``; False where there is none, so that no report names a file that is not there."""
    if not source.is_file():
        return False
    if source != target:
        write_bytes(target, source.read_bytes())
    return True
