# SPDX-License-Identifier: GPL-2.0-or-later
"""kcidb.json: a run as KernelCI's common database takes it (KCIDB I/O schema 5.0, which 5.1 to 5.3 accept unchanged).

A series is a checkout, invalid where it does not apply; each arm on each architecture is a build; what a kernel was put through are its
tests (kcidb_tests.py). What is not known is left out: the schema gives no default a meaning, and has no null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from kpatch_ci.model.digest import digest
from kpatch_ci.model.status import Status
from kpatch_ci.report.clean import one_line, printable, safe_json, tail
from kpatch_ci.report.failures import build_reason
from kpatch_ci.report.kcidb_tests import tests
from kpatch_ci.report.schema import ApplyDoc, ArchDoc, BuildDoc, Document, SeriesDoc
from kpatch_ci.report.view import BAD, hunks

VERSION = {"major": 5, "minor": 0}
STATUS = {Status.PASSED: "PASS", Status.FAILED: "FAIL", Status.ERROR: "MISS", Status.SKIPPED: "MISS"}
"""Of a build. Ours or the machine's fault is MISS: KCIDB's ERROR is a fault of the test's own code."""
TAIL = 100
MAX_EXCERPT = 16_384
"""Characters of a log that go into the database."""

_ADDRESS = re.compile(r"https://(?:[^/@\s]*@)?([^/@\s]+/[^@\s]+)(?:@.*)?")
"""A tree that is a repository's address, with a ref or without."""
_LOGIN = re.compile(r"(\w://)[^/@\s]+@")

Json = dict[str, Any]


def to_kcidb(document: Document) -> str:
    """The report as JSON text. ``document.origin`` names the CI system that submits it."""
    report = kcidb(document)
    return safe_json(json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"


def kcidb(document: Document) -> Json:
    """The report as plain values. Identifiers are the same whenever it is made from the same result."""
    run = _Run(document)
    checkouts: dict[str, Json] = {}
    builds: dict[str, Json] = {}
    found: dict[str, Json] = {}
    for series in document.series:
        _add(checkouts, [run.checkout(series)])
        for arch in series.arches:
            for arm, build in (("baseline", arch.build.baseline), ("patched", arch.build.patched)):
                if not _tried(arch, arm, build):
                    continue
                parent = run.id(series.name) if arm == "patched" else run.base(build)
                made = run.build(parent, arch, arm, build)
                _add(checkouts, [run.base_checkout(parent, build)] if arm == "baseline" else [])
                _add(builds, [made])
                _add(found, (_whole(t, document, made["id"]) for t in tests(arch, arm)))
    lists = {"checkouts": checkouts, "builds": builds, "tests": found}
    filled = {name: list(objects.values()) for name, objects in lists.items() if objects}
    return {"version": VERSION, **_plain(filled)}


def _add(objects: dict[str, Json], more: Iterator[Json] | list[Json]) -> None:
    """The first of an identifier counts: series share their baseline."""
    for one in more:
        objects.setdefault(one["id"], one)


def _tried(arch: ArchDoc, arm: str, build: BuildDoc) -> bool:
    """Whether there is a build to speak of: of a series that applies there always is, were it one that could not be tried."""
    if build.status is not Status.SKIPPED:
        return True
    return arm == "patched" and arch.apply.status is Status.PASSED


class _Run:
    """Identifiers and what all objects of a run have in common."""

    def __init__(self, document: Document) -> None:
        self.document = document
        told = (document.run_id, document.started, document.command, document.tree, document.fingerprint)
        self.name = f"{document.run_id}-{digest(told)[:8]}"
        """Two machines may begin a run in the same second."""

    def id(self, *parts: str) -> str:
        return one_line(f"{self.document.origin}:{'/'.join((self.name, *parts))}")

    def base(self, build: BuildDoc) -> str:
        return self.id("baseline", (build.tree_id or self.document.tree.get("tree_id", ""))[:12] or "unknown")

    def common(self) -> Json:
        """Of a checkout. When a build or a test began is not known: it may be older than the run."""
        began = _date_time(self.document.started)
        return {"origin": self.document.origin, **({"start_time": began} if began else {})}

    def tree(self) -> Json:
        """The tree under the patches. A commit is named only where others can have it: Debian's source has none of its own."""
        label = self.document.tree.get("label", "")
        url = _ADDRESS.fullmatch(label)
        public: Json = {"git_repository_url": f"https://{url[1]}"} if url else {}
        commit = self.document.tree.get("commit", "")
        if public and re.fullmatch(r"[0-9a-f]{40}", commit):
            public["git_commit_hash"] = commit
        return {
            "tree_name": one_line(label),
            "git_commit_name": one_line(self.document.tree.get("release", "")),
            **public,
        }

    def base_checkout(self, name: str, build: BuildDoc) -> Json:
        own = build.tree_id in ("", self.document.tree.get("tree_id", ""))
        clean = {"patchset_hash": ""} if own else {}
        misc = {"tree": self.document.tree, "tree_id": build.tree_id}
        return {"id": name, **self.common(), **self.tree(), **clean, "comment": "baseline", "valid": True, "misc": misc}

    def checkout(self, series: SeriesDoc) -> Json:
        found: Json = {"id": self.id(series.name), **self.common(), **self.tree()}
        found["comment"] = one_line(f"{series.name}: {series.title}" if series.title else series.name)
        misc: Json = {"variant": series.variant, "arms": list(series.arms), "status": str(series.status)}
        misc |= {"command": self.document.command, "fingerprint": self.document.fingerprint, "tree": self.document.tree}
        if series.arches:
            apply = next((a.apply for a in series.arches if a.apply.status in BAD), series.arches[0].apply)
            found |= _applied(apply)
            names = "method tree_id changed_paths reason"
            misc |= {name: getattr(apply, name) for name in names.split()}
            misc["patches"] = [p.subject for p in apply.patches]
        return found | {"misc": misc}

    def build(self, parent: str, arch: ArchDoc, arm: str, build: BuildDoc) -> Json:
        name = f"{parent}/{one_line(arch.arch)}"
        found: Json = {"id": name, "checkout_id": parent, "origin": self.document.origin}
        architecture = re.sub(r"[^a-z0-9_]", "_", arch.arch)
        found |= {"architecture": architecture, "status": STATUS[build.status], "duration": float(build.seconds)}
        found |= {"comment": arm, "command": printable(build.reproduce), "config_name": one_line(arch.machine)}
        compiler = self.document.fingerprint.get("gcc_arm64" if arch.arch == "arm64" else "gcc")
        if isinstance(compiler, str) and compiler:
            found["compiler"] = f"gcc {one_line(compiler)}"
        if build.status is not Status.PASSED:
            reason = build_reason(build) if build.status in BAD else arch.reason or "a prerequisite failed"
            found["log_excerpt"] = excerpt(reason, build.log_tail)
        names = "objects cached image_digest config_digest tree_id release log"
        misc = {name: getattr(build, name) for name in names.split()}
        misc["new_warnings"] = [w.model_dump(mode="json") for w in build.new_warnings]
        return found | {"misc": misc}


def _applied(apply: ApplyDoc) -> Json:
    """Valid or not; neither where it was not tried or our own fault."""
    if apply.status in (Status.PASSED, Status.FAILED):
        valid = apply.status is Status.PASSED
        return {"valid": True} if valid else {"valid": False, "log_excerpt": excerpt(apply.reason, hunks(apply))}
    return {"log_excerpt": excerpt(apply.reason or str(apply.status), hunks(apply))}


def _whole(test: Json, document: Document, build: str) -> Json:
    """A test with what all have: identifiers, log, environment."""
    reason, log = test.pop("reason", ""), test.pop("log_tail", "")
    path, name = test["path"], test.pop("name", "")
    said = {"log_excerpt": excerpt(reason, log)} if reason or log else {}
    mode = test["misc"].get("mode", str(document.mode))
    environment = {"comment": one_line(test.pop("machine")), "misc": {"mode": mode}}
    head = {"id": one_line(f"{build}/{name or path}"), "build_id": build, "origin": document.origin}
    return {**head, **test, **said, "environment": environment}


def excerpt(reason: str, log: str) -> str:
    """The reason, then as many of the log's last lines as there is room for."""
    head, lines = one_line(reason)[: MAX_EXCERPT // 2], "\n".join(tail(log, TAIL))
    return "\n".join(filter(None, (head, lines[-(MAX_EXCERPT - len(head) - 1) :])))


def _date_time(text: str) -> str:
    """RFC 3339; empty where the result's stamp is none."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return ""
    return at.isoformat() if at.tzinfo else ""


def _plain(value: Any) -> Any:
    """Without null, which the schema does not know, without control characters, and without names and passwords in addresses."""
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value if v is not None]
    return _LOGIN.sub(r"\1", printable(value)) if isinstance(value, str) else value
