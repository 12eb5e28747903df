# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's document (result.json as plain data) -> the rows of every table. Pure."""

from __future__ import annotations

import datetime
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import UserError

Row = dict[str, Any]
Json = Mapping[str, Any]
ARMS = ("baseline", "patched")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows by table name, without the run's number; ``run`` is that of ``runs``, without its name."""

    run: Row
    children: Mapping[str, Sequence[Row]]


def rows_of(document: Json, recorded_at: float, original: Json | None = None) -> Rows:
    """Everything that is stored of one run. Raises UserError where the document cannot be: no number of ours, or no date.

    ``original``: the document as it was read, without the keys that a newer version gives a default; what is kept and told by its digest.
    """
    original = document if original is None else original
    try:
        identity = digest(original)
    except ValueError as error:
        raise UserError(f"result {document.get('run_id')} holds a figure that is no number: {error}") from error
    whole = json.dumps(original, sort_keys=True, separators=(",", ":")).encode()
    tree = document.get("tree", {})
    fingerprint = document["fingerprint"]
    run = {
        **_texts(document, "run_id", "started", "status", "profile", "mode", "command"),
        **{f"tree_{key}": _clean(tree.get(key)) for key in ("label", "release", "commit")},
        "tree_id": _clean(tree.get("tree_id")),
        "kpatch_ci": _clean(fingerprint.get("kpatch_ci")),
        "digest": identity,
        "started_at": _seconds(document),
        "recorded_at": recorded_at,
        "seconds": float(document.get("seconds") or 0.0),
        "document_bytes": len(whole),
    }
    return Rows(run, {"documents": [{"zlib": zlib.compress(whole, 6)}], **_parts(document, fingerprint)})


def _parts(document: Json, fingerprint: Json) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {
        name: [] for name in ("fingerprints", "series", "arches", "builds", "comparisons", "samples")
    }
    found["fingerprints"] = list(_fingerprints(fingerprint))
    for number, one in enumerate(document["series"]):
        found["series"].append(
            {
                "number": number,
                **_texts(one, "name", "title", "variant", "status"),
                **dict(zip(("arm_baseline", "arm_patched"), map(_clean, one.get("arms", ARMS)), strict=True)),
            }
        )
        for arch in one["arches"]:
            _add_arch(found, number, arch)
    return found


def _add_arch(found: dict[str, list[Row]], series: int, arch: Json) -> None:
    number = len(found["arches"])
    applied = arch["apply"]
    found["arches"].append(
        {
            "number": number,
            "series": series,
            **_texts(arch, "arch", "machine", "status", "reason"),
            "apply_status": _clean(applied.get("status")),
            "apply_method": _clean(applied.get("method")),
        }
    )
    for arm in ARMS:
        build = arch["build"][arm]
        found["builds"].append(
            {
                "arch": number,
                "arm": arm,
                **_texts(build, "status", "release", "tree_id", "image_digest", "config_digest"),
                "seconds": float(build.get("seconds") or 0.0),
                "objects": build.get("objects") or 0,
                "cached": bool(build.get("cached")),
            }
        )
    for comparison in arch["comparisons"]:
        _add_comparison(found, number, comparison)


def _add_comparison(found: dict[str, list[Row]], arch: int, one: Json) -> None:
    number = len(found["comparisons"])
    low, high = one.get("ci_percent") or (None, None)
    found["comparisons"].append(
        {
            "number": number,
            "arch": arch,
            **_texts(one, "workload", "case", "metric", "unit", "better", "mode", "verdict", "reason"),
            "is_primary": bool(one.get("primary")),
            **{key: one.get(key) for key in ("change_percent", "p_value", "p_adjusted", "mde_percent")},
            "ci_low": low,
            "ci_high": high,
            **{f"{arm}_mean": mean(one[arm]) for arm in ARMS},
        }
    )
    for index, seed in enumerate(one["seeds"]):
        values = {arm: one[arm][index] if index < len(one[arm]) else None for arm in ARMS}
        found["samples"].append({"comparison": number, "number": index, "seed": _clean(seed), **values})


def mean(values: Sequence[float | None]) -> float | None:
    """Arithmetic mean of those that there are; None without any."""
    there = [value for value in values if value is not None]
    return math.fsum(there) / len(there) if there else None


def _fingerprints(fingerprint: Json) -> Iterator[Row]:
    for key, value in _leaves({k: v for k, v in fingerprint.items() if k != "arches"}):
        yield {"arch": "", "key": key, "value": value}
    arches = fingerprint.get("arches")
    for arch, inner in arches.items() if isinstance(arches, Mapping) else ():
        for key, value in _leaves(inner):
            yield {"arch": _clean(arch), "key": key, "value": value}


def _leaves(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted key and text of each leaf; a list is one leaf."""
    if isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _leaves(value[key], f"{prefix}.{key}" if prefix else str(key))
    else:
        text = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        yield _clean(prefix), _clean(text)


def _texts(source: Json, *names: str) -> Row:
    return {name: _clean(source.get(name)) for name in names}


def _clean(value: Any) -> str:
    """Text that both databases take: no lone surrogates, no NUL. The document keeps what it was."""
    return "" if value is None else str(value).encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _seconds(document: Json) -> float:
    """When the run started, in seconds since 1970; the run id tells where ``started`` is missing. Raises UserError."""
    given = document.get("started") or ""
    try:
        when = datetime.datetime.fromisoformat(given)
    except ValueError:
        try:
            when = datetime.datetime.strptime(str(document["run_id"])[:15], "%Y%m%d-%H%M%S")
        except ValueError as error:
            raise UserError(
                f"result {document['run_id']} does not say when it started",
                expected="`started` in result.json, such as 2026-01-31T01:02:03+00:00",
            ) from error
    return (when if when.tzinfo else when.replace(tzinfo=datetime.UTC)).timestamp()
