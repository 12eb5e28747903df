# SPDX-License-Identifier: GPL-2.0-or-later
"""samples.parquet: one row a sample, typed. Needs pyarrow, an extra: its wheel is larger than those of numpy and scipy together."""

from __future__ import annotations

import io

from kpatch_ci.report.formats import missing
from kpatch_ci.report.samples import Sample, samples
from kpatch_ci.report.schema import Document

NUMBERS = {"boot_seed": "int64", "run_seed": "int64", "value": "float64"}
"""Columns that are no text."""


def to_parquet(document: Document) -> bytes:
    """A Parquet file. Raises UserError where pyarrow is not installed."""
    try:
        import pyarrow as pa  # noqa: PLC0415 (optional, and large)
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise missing("samples.parquet", "pyarrow", "parquet") from error
    text = pa.dictionary(pa.int32(), pa.string())
    types = [(n, pa.type_for_alias(NUMBERS[n]) if n in NUMBERS else text) for n in Sample._fields]
    columns = list(zip(*samples(document), strict=True)) or [()] * len(types)
    about = {"kpatch-ci.run_id": document.run_id, "kpatch-ci.schema": document.schema_id}
    schema = pa.schema(types, metadata=about)
    table = pa.table([pa.array(c, type=t) for c, (_, t) in zip(columns, types, strict=True)], schema=schema)
    stream = io.BytesIO()
    parquet.write_table(table, stream, compression="zstd")
    return stream.getvalue()
