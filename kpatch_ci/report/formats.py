# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of the report formats and of their files. Names only, so that the configuration and ``--help`` are quick to read them."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Mapping

from kpatch_ci.model.errors import UserError

STANDARD: Mapping[str, str] = {
    "junit": "junit.xml",
    "text": "report.txt",
    "markdown": "report.md",
    "html": "report.html",
    "json": "result.json",
}
"""Format -> file: what every run leaves, in the order in which it is written. result.json comes last: where it is, the others are."""

EXPORTS: Mapping[str, str] = {
    "kcidb": "kcidb.json",
    "openmetrics": "metrics.prom",
    "csv": "samples.csv",
    "parquet": "samples.parquet",
}
"""Those that a run leaves where it is asked to."""

FORMATS: Mapping[str, str] = {**STANDARD, **EXPORTS}

NEEDS: Mapping[str, tuple[str, str]] = {"parquet": ("pyarrow", "parquet")}
"""Format -> the module that it is written with, and the extra of this package that brings it."""

_ORIGIN = re.compile(r"[a-z0-9_]+")


def file_name(name: str) -> str:
    """The file of a format; a file's own name is taken too. Raises UserError."""
    if name in FORMATS:
        return FORMATS[name]
    if name in FORMATS.values():
        return name
    raise UserError(f"no report format '{name}'", expected=f"one of {', '.join(FORMATS)}")


def check_formats(names: Iterable[str]) -> None:
    """Raises UserError for a format whose module is not installed: better now than after hours of measuring."""
    for name in names:
        for module, extra in (NEEDS[n] for n, file in FORMATS.items() if n in NEEDS and name in (n, file)):
            if importlib.util.find_spec(module) is None:
                raise missing(name, module, extra)


def missing(name: str, module: str, extra: str) -> UserError:
    """What is said where a format's module is not installed."""
    command = f".venv/bin/python -m pip install -e '.[{extra}]'"
    return UserError(f"{name} needs {module}, which is not installed", expected=f"the extra '{extra}': {command}")


def check_origin(origin: str) -> str:
    """``origin`` as KCIDB takes it. Raises UserError."""
    if not _ORIGIN.fullmatch(origin):
        raise UserError(f"KCIDB takes no origin '{origin}'", expected="lower-case letters, digits and _")
    return origin
