# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs in a worker of the cluster: it says what it is, and does calls. Plain JSON goes in and comes out.

A worker's cache is KPATCH_CI_CACHE of its own environment. It holds a tool root, which must be that of whoever calls.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

from kpatch_ci import process
from kpatch_ci.debian.toolroot import check_sandbox, find_toolroot
from kpatch_ci.kernel.build import KIND
from kpatch_ci.model.errors import InfrastructureError, KpatchError
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.calls import CALLS, BuildAnswer, Call, decode, encode
from kpatch_ci.pipeline.worker import Worker, code_version, holdings
from kpatch_ci.store.atomic import disk_errors
from kpatch_ci.store.cache import cache_root, use_cache
from kpatch_ci.store.depot import Depot

SPARE = 1 << 30
"""Bytes that must be free below the cache: a few snapshots' worth."""


def hello(suite: str, depot: dict[str, Any] | None, probe: str) -> dict[str, Any]:
    """What this worker is, and under ``trouble`` what keeps it from working. ``probe``: see Depot.write_probe.

    Without a depot the probe is a file in the store of whoever asks, which must be this one too.
    """
    cache = cache_root()
    tools = find_toolroot(cache, suite)
    trouble = []
    try:
        with disk_errors(cache):
            _mark(cache)
        if shutil.disk_usage(cache).free < SPARE:
            trouble.append(f"less than {SPARE >> 30} GiB are free below {cache}")
        if tools:
            check_sandbox(tools)
        if depot:
            Depot(**depot).read_probe(probe)
        elif not (cache / "store" / probe).exists():
            trouble.append(f"its store {cache / 'store'} is not this machine's, and no `store:` is named")
    except (KpatchError, OSError) as error:
        trouble.append(str(error).splitlines()[0])
    return {
        "code": code_version(),
        "distributed": importlib.metadata.version("distributed"),
        "tools": tools.fingerprint if tools else "",
        "versions": dict(tools.versions) if tools else {},
        "cache": str(cache),
        **holdings(cache),
        "trouble": trouble,
    }


@lru_cache(maxsize=1)
def _mark(cache: Path) -> int:
    """The cache is in use until this process ends."""
    return use_cache(cache)


@lru_cache(maxsize=1)
def _worker(suite: str) -> Worker:
    """One for the whole process: what it has verified it does not hash again."""
    cache = cache_root()
    tools = find_toolroot(cache, suite)
    if tools is None:
        raise InfrastructureError(f"no tool root of Debian {suite} below {cache}")
    _mark(cache)
    return Worker(cache, tools)


def do_call(text: str) -> str:
    """Do a call, and answer: ``answer`` to the call of ``key``; or what is ``lacking`` of its artifacts; or why it was ``refused``.

    A worker of another version or with other tools refuses: its figures would not be alike. So does one whose caller's round is
    over: guests that were ended meanwhile have not failed.
    """
    asked = json.loads(text)
    with process.owned(str(asked.get("round", ""))):
        try:
            answer = _done(asked)
            process.check_stopping()
        except (KpatchError, OSError) as error:
            answer = {"refused": str(error)}
    return json.dumps({"key": asked["key"], **answer})


def end_round(name: str) -> None:
    """End what is at work here for one caller's round; what others have called for goes on. Returns at once: it runs in dask's own loop."""
    threading.Thread(target=process.kill_of, args=(name,), name="end-round", daemon=True).start()


def _done(asked: dict[str, Any]) -> dict[str, Any]:
    if asked["code"] != code_version():
        return {"refused": "its kpatch-ci is of another version"}
    worker = _worker(asked["suite"])
    if worker.tools.fingerprint != asked["tools"]:
        return {"refused": "its tool root has other packages"}
    kind: Any = CALLS[asked["kind"]]
    call: Call = decode(kind, asked["call"])
    fetched = 0
    for ref in worker.missing(call):
        came = Depot(**asked["depot"]).pull(*ref, worker.store) if asked["depot"] else None
        if came is None:
            return {"lacking": [list(ref)]}
        fetched += came
    answer = worker.do(call)
    if isinstance(answer, BuildAnswer) and answer.build.status is Status.PASSED and asked["depot"]:
        made = worker.store.get(KIND, answer.build.key)
        if made is None:
            return {"refused": "the kernel that it built was damaged at once"}
        Depot(**asked["depot"]).push(made)
    return {"kind": asked["kind"], "answer": encode(answer), "fetched": fetched}
