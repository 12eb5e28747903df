# SPDX-License-Identifier: GPL-2.0-or-later
"""result.json: a run's result as a document, and such a document read back. Every other report is written from a Document."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.result import SCHEMA, ArchResult, ArmResult, RunResult, SeriesResult
from kpatch_ci.model.series import AppliedPatch, ApplyResult
from kpatch_ci.model.status import Status
from kpatch_ci.model.workload import Replicate
from kpatch_ci.report.checks import check_json, each_json, warnings_json
from kpatch_ci.report.claims import claim_json, judged_json
from kpatch_ci.report.logs import log_names
from kpatch_ci.report.residency import residencies
from kpatch_ci.report.running import placement_times
from kpatch_ci.report.schema import Document
from kpatch_ci.report.timeline import timelines

FACTS = (
    "release",
    "cpus",
    "cpu",
    "cpufreq",
    "switch_cost",
    "features",
    "clocksource",
    "clockevent",
    "mem_kb",
    "cmdline",
)
"""What result.json keeps of a guest's facts; its sysctls, modules and domains are in the console log."""
MAX_ERRORS = 10

Json = dict[str, Any]
Logs = Mapping[Path, str]


def to_document(result: RunResult, logs: Logs | None = None) -> Json:
    """``result`` as plain JSON values. ``logs``: log file -> path relative to the output directory (default: as log_names() puts them)."""
    return as_document(result, logs).model_dump(mode="json", by_alias=True)


def as_document(source: RunResult | Document, logs: Logs | None = None) -> Document:
    """``source`` as the model that reports are written from; a Document is returned as it is."""
    if isinstance(source, Document):
        return source
    names = log_names(source) if logs is None else logs
    raw = {
        "schema": SCHEMA,
        **_fields(source, "run_id status started seconds profile mode command origin tree thresholds fingerprint"),
        "series": [_series(s, names) for s in source.series],
        "hosts": [_fields(h, "name stages sent received lost") for h in source.hosts],
        "stages": [_fields(s, "stage key cached seconds why status") for s in source.stages],
    }
    return Document.model_validate(_plain(raw))


def load_document(path: Path) -> Document:
    """Read a result.json. Raises UserError where it is missing, damaged, or of another schema (each fault named)."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(
            f"cannot be read: {error.strerror}", where=str(path), expected="a result.json that a run left"
        ) from error
    except ValueError as error:
        raise UserError(
            f"is damaged, no JSON: {error}", where=str(path), expected="a result.json that a run left"
        ) from error
    return document_of(data, str(path))


def document_of(data: Any, where: str) -> Document:
    """``data``, read from ``where``, as a document. Raises UserError where it is damaged or of another schema."""
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        raise UserError(f"is of schema {schema!r}", where=where, expected=f"this version reads {SCHEMA}")
    try:
        return Document.model_validate(data)
    except ValidationError as error:
        raise UserErrors([_user_error(where, e) for e in error.errors()[:MAX_ERRORS]]) from error


def _user_error(where: str, error: Mapping[str, Any]) -> UserError:
    place = ".".join(str(part) for part in error["loc"])
    return UserError(f"is damaged at {place}: {error['msg']}", where=where)


def _series(series: SeriesResult, logs: Logs) -> Json:
    arches = [_arch(a, logs) for a in series.arches]
    claims = [claim_json(c) for c in series.claims]
    return {**_fields(series, "name title notes variant arms status chosen flags"), "claims": claims, "arches": arches}


def _arch(arch: ArchResult, logs: Logs) -> Json:
    patched = _build(arch.patched, logs) | {"new_warnings": warnings_json(arch.new_warnings)}
    return {
        **_fields(arch, "arch machine status reason reproduce"),
        "apply": _apply(arch.apply),
        "build": {"baseline": _build(arch.baseline, logs), "patched": patched},
        "boot": {"baseline": _boots(arch.baseline, logs), "patched": _boots(arch.patched, logs)},
        "not_compiled": list(arch.not_compiled),
        "config_changes": list(arch.config_changes),
        "new_complaints": list(arch.new_complaints),
        "lost_once": [_fields(one, "arm what seed reason log_tail") for one in arch.lost_once],
        "each": each_json(arch.each, logs),
        "checks": [check_json(c) for c in arch.checks],
        "differing": None if arch.differing is None else {name: list(s) for name, s in arch.differing.items()},
        "proofs": [_fields(p, "kind name in_baseline in_patched holds derived why") for p in arch.proofs],
        "replicates": {"baseline": _replicates(arch.baseline), "patched": _replicates(arch.patched)},
        "comparisons": [_comparison(c) for c in arch.comparisons],
        "claims": [judged_json(c) for c in arch.claims],
        "residencies": residencies(arch.baseline, arch.patched),
        "clusters": arch.clusters,
        "placement_times": placement_times(arch.baseline, arch.patched, arch.clusters),
        "timelines": timelines(arch.baseline, arch.patched),
    }


def _apply(apply: ApplyResult) -> Json:
    return {
        **_fields(apply, "status method fit tree_id reason changed_paths"),
        "patches": [_patch(p) for p in apply.patches],
    }


def _patch(patch: AppliedPatch) -> Json:
    return {
        **_fields(patch, "subject source status method tree_id offsets notes"),
        "placements": [asdict(p) for p in patch.placements],
        "failures": [asdict(f) for f in patch.failures],
    }


def _build(arm: ArmResult | None, logs: Logs) -> Json:
    if arm is None:
        return {"status": Status.SKIPPED}
    build: BuildResult = arm.build
    names = "status objects cached reason log_tail key release tree_id"
    return {
        **_fields(build, names),
        **_fields(build, "image_digest config_digest reproduce"),
        "seconds": _finite(build.seconds) or 0.0,
        "warnings": warnings_json(build.warnings),
        "misses": [_fields(m, "symbol wanted got reason where") for m in build.misses],
        "log": _log(build.log, logs),
    }


def _boots(arm: ArmResult | None, logs: Logs) -> Json:
    if arm is None:
        return {"status": Status.SKIPPED}
    facts = next((b.facts for b in arm.boots if b.facts), {})
    return {
        "status": arm.boot_status,
        "cpus": _cpus(facts),
        "facts": {name: facts[name] for name in FACTS if name in facts},
        "differences": list(dict.fromkeys(d for b in arm.boots for d in b.differences)),
        "reason": next((b.reason for b in arm.boots if b.status == arm.boot_status and b.reason), ""),
        "boots": [_boot(b, logs) for b in arm.boots],
    }


def _boot(boot: BootResult, logs: Logs) -> Json:
    return {
        **_fields(boot, "boot_seed status cached reason log_tail key snapshot_digest reproduce differences qemu_argv"),
        "seconds": _finite(boot.seconds) or 0.0,
        "cpus": _cpus(boot.facts),
        "log": _log(boot.console, logs),
    }


def _cpus(facts: Mapping[str, Any]) -> int | None:
    cpus = facts.get("cpus")
    return cpus if isinstance(cpus, int) else None


def _replicates(arm: ArmResult | None) -> Json:
    runs: tuple[Replicate, ...] = arm.replicates if arm else ()
    bad = [r for r in runs if r.status is not Status.PASSED]
    return {
        "total": len(runs),
        "cached": sum(r.cached for r in runs),
        "failures": [{**_fields(r, "workload case status reason log_tail"), "seed": str(r.seed)} for r in bad],
    }


def _comparison(c: Comparison) -> Json:
    ci = None if c.ci_percent is None or not all(map(math.isfinite, c.ci_percent)) else list(c.ci_percent)
    figures = (
        "baseline patched change_percent p_value p_adjusted boot_variance_share"
        " spread_between_percent spread_within_percent units mde_percent"
    )
    return {
        **_fields(c, "workload case metric unit better mode ci_method verdict primary reason"),
        **_fields(c, figures),
        "ci_percent": ci,
        "seeds": [str(s) for s in c.seeds],
    }


def _log(path: Path | None, logs: Logs) -> str:
    return logs.get(path, "") if path else ""


def _fields(value: object, names: str) -> Json:
    return {name: getattr(value, name) for name in names.split()}


def _finite(value: float | None) -> float | None:
    """JSON has no NaN and no infinity: None stands for both."""
    return value if value is not None and math.isfinite(value) else None


def _plain(value: Any) -> Any:
    """JSON values only: mappings become dicts, sequences lists, lone surrogates ``?``, NaN and infinity None, anything else its text."""
    if isinstance(value, Mapping):
        return {_utf8(str(k)): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return _finite(value)
    return value if value is None or isinstance(value, bool | int) else _utf8(str(value))


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
