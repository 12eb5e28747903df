# SPDX-License-Identifier: GPL-2.0-or-later
"""samples.csv: one row a sample (RFC 4180 with newlines of Unix)."""

from __future__ import annotations

import csv
import io

from kpatch_ci.report.samples import Sample, samples
from kpatch_ci.report.schema import Document


def to_csv(document: Document) -> str:
    """The head, then a row a sample. A value is the shortest text that reads back as the same double."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Sample._fields)
    writer.writerows(samples(document))
    return text.getvalue()
