# SPDX-License-Identifier: GPL-2.0-or-later
"""report.html: complete without its script, which only searches the consoles; no request to anywhere, which its policy enforces."""

from __future__ import annotations

from pathlib import Path

from kpatch_ci.model.result import RunResult
from kpatch_ci.report import claims, view
from kpatch_ci.report.checks import check_line
from kpatch_ci.report.diff import flatten
from kpatch_ci.report.document import as_document
from kpatch_ci.report.failures import failures
from kpatch_ci.report.hosts import host_line, lost_hosts
from kpatch_ci.report.html import figures, lists, plots, recorded
from kpatch_ci.report.html.console import consoles, shown_boot
from kpatch_ci.report.html.guest import cpu_lines
from kpatch_ci.report.html.templates import Templates
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
    return Templates(__package__, _FUNCTIONS).render(
        TEMPLATE,
        document=document,
        failures=failures(document),
        mde=any(c.mde_percent is not None for _, arch in view.every_arch(document) for c in view.primaries(arch)),
        consoles=consoles(document, directory),
        mode_notes=view.mode_notes(document),
        hosts=[text for text in (host_line(document), *lost_hosts(document)) if text],
        table_note=view.table_note(document),
        claims_worth=claims.WORTH,
        significant_note=claims.SIGNIFICANT,
    )
