# SPDX-License-Identifier: GPL-2.0-or-later
"""report.html: complete without its script, which only searches the consoles; no request to anywhere, which its policy enforces."""

from __future__ import annotations

import base64
import hashlib
import math
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from kpatch_ci.model.result import RunResult
from kpatch_ci.report import claims, view
from kpatch_ci.report.checks import check_line
from kpatch_ci.report.clean import visible
from kpatch_ci.report.diff import flatten
from kpatch_ci.report.document import as_document
from kpatch_ci.report.failures import failures
from kpatch_ci.report.html import figures, lists, plots, recorded
from kpatch_ci.report.html.console import consoles, shown_boot
from kpatch_ci.report.html.guest import cpu_lines
from kpatch_ci.report.schema import Document

TEMPLATE = "report.html.j2"
_FUNCTIONS = (
    view.applied, view.cases, view.change, view.every_arch, view.figure, view.hunks, view.interval, view.magnitude,
    view.mean, view.measured, view.migration_rates, view.percent, view.primaries, view.probability, view.threshold, view.workloads,
    figures.counter_groups, figures.frequency_bars, figures.intervals, figures.legend, figures.pair_rows, figures.panels,
    figures.rates, lists.miss_lines, lists.proof_lines, lists.warning_lines, flatten, plots.verdict_class, shown_boot,
    check_line, cpu_lines, figures.is_paired, figures.shared_settings, lists.each_lines, lists.finding_lines, view.sample_count,
    recorded.placement_panels, recorded.placement_rows, recorded.steady_lines, recorded.timeline_panels,
    recorded.timeline_rows, recorded.timeline_seed,
    claims.agreement_class, claims.claimed_text, claims.claims, claims.figure_text, claims.groups, claims.interval_text,
    claims.measured_text, claims.quote_of, claims.row_label, claims.summary,
)  # fmt: skip
"""What the templates call."""


def to_html(source: RunResult | Document, directory: Path | None = None) -> str:
    """The page, ending in a newline. ``directory``: the run's, whose consoles are put in; without it there are none."""
    document = as_document(source)
    style, script = _asset("style.css"), _asset("script.js")
    page = _environment().get_template(TEMPLATE)
    text = page.render(
        document=document,
        failures=failures(document),
        mde=any(c.mde_percent is not None for _, arch in view.every_arch(document) for c in view.primaries(arch)),
        consoles=consoles(document, directory),
        mode_notes=view.mode_notes(document),
        table_note=view.table_note(document),
        claims_worth=claims.WORTH,
        significant_note=claims.SIGNIFICANT,
        policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'",
        style=Markup(style),  # noqa: S704 (our own files)
        script=Markup(script),  # noqa: S704
    )
    return text.rstrip("\n") + "\n"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(_asset),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {function.__name__: function for function in _FUNCTIONS}
    return made


def _shown(value: Any) -> Any:
    """Every value on its way into the page, before it is escaped."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a Content Security Policy names an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
