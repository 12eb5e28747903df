# SPDX-License-Identifier: GPL-2.0-or-later
"""Building one arm on one architecture, in the sandbox, and keeping what a guest needs.

The baseline is built once per tree and architecture and its objects are kept; the patched arm starts from a copy of them,
so its cost is the files that it touches. Inside the sandbox source and output are always /src and /out: no path of this
machine gets into an object, and what is copied stays valid.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.kernel.checkout import changed_paths, checkout, checkout_patched
from kpatch_ci.kernel.diagnostics import failure_tail, objects_compiled, warnings
from kpatch_ci.kernel.git import open_repo
from kpatch_ci.kernel.kconfig import Kconfigs, Requested, check, merged, parse_config
from kpatch_ci.kernel.outputs import OddOutput, all_logs, compiled, logs_of, next_log, read_small, take
from kpatch_ci.model.arch import Arch
from kpatch_ci.model.build import BuildResult, ConfigMiss, Diagnostic, Tree
from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.status import Status
from kpatch_ci.process import run
from kpatch_ci.store.artifacts import Artifact, ArtifactStore
from kpatch_ci.store.atomic import disk_errors, require_space, write_text
from kpatch_ci.store.cache import locked

KIND = "build"
STAGE_VERSION = 2
SRC, OUT = "/src", "/out"
PINNED = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_USER": "kpatch-ci",
    "KBUILD_BUILD_HOST": "kpatch-ci",
    "KBUILD_BUILD_VERSION": "1",
    "SOURCE_DATE_EPOCH": "1767225600",
}
JOBS = "/jobserver"
FRAGMENT = "kpatch-ci.config"
_OUT_OF_MEMORY = "Killed signal terminated program"
"""What gcc says of a child that the kernel's OOM killer ended."""
KEPT_LOG = "build.log"


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What is to be built. ``tree_id`` is the arm's git tree; for the baseline it is ``tree.tree_id``."""

    arm: str
    arch: Arch
    tree: Tree
    tree_id: str
    config: Mapping[str, Requested]

    def key(self, tools: ToolRoot) -> str:
        """Digest of everything that the build is a function of: git tree, symbols asked for, compilers, pinned settings."""
        target = [self.arch.name, self.arch.make_targets, self.arch.image]
        return digest([KIND, STAGE_VERSION, target, self.tree_id, merged(self.config), tools.fingerprint, PINNED])


class Builder:
    """Builds below one cache directory with one tool root.

    ``jobs`` is make's -j. ``jobserver`` is the directory and name of a named pipe that make shares with the other stages
    of the run, as GNU make 4.4 defines it (`--jobserver-auth=fifo:PATH`); without one make keeps its own.
    """

    def __init__(
        self,
        cache: Path,
        store: ArtifactStore,
        tools: ToolRoot,
        *,
        jobs: int,
        timeout: float,
        jobserver: Path | None = None,
    ) -> None:
        self.cache, self.store, self.tools = cache, store, tools
        self.jobs, self.timeout, self.jobserver = jobs, timeout, jobserver

    def find(self, request: BuildRequest) -> BuildResult | None:
        """The build, when it was made before."""
        artifact = self.store.get(KIND, request.key(self.tools))
        return _result(request, artifact, cached=True) if artifact else None

    def build(self, request: BuildRequest, logs: Path) -> BuildResult:
        """Build, or reuse. A kernel that does not build is a result; raises InfrastructureError where the machine fails."""
        key = request.key(self.tools)
        found = self.find(request)
        if found:
            return found
        log = logs / f"build-{request.arch.name}-{request.arm}.log"
        out = self._output(request, key)
        with locked(out):
            found = self.find(request)  # another process may have made it while this one waited
            if found:
                return found
            started = time.monotonic()
            source = self._prepare(request, out)
            failed = self._configure(request, source, out, log) or self._make(request, source, out, log)
            artifact = None
            if not failed:
                try:
                    artifact = self._keep(request, key, out, time.monotonic() - started)
                except OddOutput as odd:
                    failed = _Failure(str(odd), "")
            self._discard(request, out)
        if artifact is None or failed:
            require_space(self.cache)
            assert failed  # noqa: S101
            seconds = time.monotonic() - started
            return _failed(request, key, failed, seconds=seconds, log=log, reproduce=self.reproduce(request))
        return _result(request, artifact, cached=False)

    def reproduce(self, request: BuildRequest) -> str:
        """The make command, as a person would type it in a checkout of the tree."""
        env = " ".join(f"{k}='{v}'" for k, v in PINNED.items())
        make = ["make", f"-j{self.jobs}", *self._variables(request.arch)]
        return f"{env} {' '.join([*make, *request.arch.make_targets])}"

    def _output(self, request: BuildRequest, key: str) -> Path:
        return self.cache / "out" / f"{'patched-' if _is_patched(request) else ''}{request.arch.name}-{key[:16]}"

    def _prepare(self, request: BuildRequest, out: Path) -> Path:
        """Source tree to build from; for a patched arm the output starts as a copy of the baseline's objects."""
        if not _is_patched(request):
            out.mkdir(parents=True, exist_ok=True)
            return checkout(self.cache, request.tree)
        baseline = BuildRequest("baseline", request.arch, request.tree, request.tree.tree_id, request.config)
        objects = self._output(baseline, baseline.key(self.tools))
        self._discard(request, out)
        with locked(objects):
            newest = self._copy_objects(objects, out) if (objects / "vmlinux").exists() else 0.0
        out.mkdir(parents=True, exist_ok=True)
        return checkout_patched(self.cache, request.tree, request.tree_id, newer_than=newest)

    def _copy_objects(self, objects: Path, out: Path) -> float:
        """Copy the baseline's output, all of it or nothing; the time stamp of its newest object."""
        work = Path(tempfile.mkdtemp(prefix=".new-", dir=out.parent))
        done = run(["cp", "-aT", "--reflink=auto", objects, work], timeout=self.timeout)
        if not done.ok:
            require_space(self.cache)
            raise InfrastructureError(f"cannot copy the baseline's objects: {done.explain()}", log=done.output)
        work.rename(out)
        return max(
            (objects / name).stat().st_mtime
            for name in ("vmlinux", ".config", "modules.order")
            if (objects / name).exists()
        )

    def _discard(self, request: BuildRequest, out: Path) -> None:
        """A patched arm's objects are not needed again: the next edit starts from the baseline's."""
        if _is_patched(request):
            shutil.rmtree(out, ignore_errors=True)
            shutil.rmtree(logs_of(out), ignore_errors=True)

    def _variables(self, arch: Arch) -> list[str]:
        cross = [f"CROSS_COMPILE={arch.cross_compile}"] if arch.cross_compile else []
        return [f"ARCH={arch.kernel_arch}", *cross]

    def _sandboxed(self, source: Path, out: Path, arch: Arch, targets: Sequence[str], *, parallel: bool) -> list[str]:
        env = dict(PINNED)
        writable: list[tuple[Path, str]] = [(out, OUT)]
        make = ["make", "-C", SRC, f"O={OUT}", *self._variables(arch), *targets]
        if parallel and self.jobserver is not None:
            env["MAKEFLAGS"] = f" -j{self.jobs} --jobserver-auth=fifo:{JOBS}"
            writable.append((self.jobserver, JOBS))
        elif parallel:
            make.insert(1, f"-j{self.jobs}")
        return self.tools.argv(make, mounts=[(source, SRC)], write_mounts=writable, env=env)

    def _configure(self, request: BuildRequest, source: Path, out: Path, log: Path) -> _Failure | None:
        with disk_errors(out):
            write_text(out / FRAGMENT, merged(request.config))
        allconfig = [f"KCONFIG_ALLCONFIG={OUT}/{FRAGMENT}", "allnoconfig"]
        argv = self._sandboxed(source, out, request.arch, allconfig, parallel=False)
        done = run(argv, timeout=self.timeout, log=log.with_suffix(".config.log"))
        if not done.ok:
            return _Failure(f"allnoconfig: {done.explain()}", done.output)
        try:
            final = parse_config(read_small(out, ".config"))
        except OddOutput as odd:
            return _Failure(str(odd), done.output)
        kconfigs = Kconfigs(open_repo(request.tree.repo), request.tree_id)
        misses = check(request.config, final, kconfigs)
        if misses:
            rows = [f"CONFIG_{m.symbol}: asked for {m.wanted} ({m.where}), got {m.got}: {m.reason}" for m in misses]
            return _Failure(
                f"{len(misses)} requested kconfig symbol(s) are not in the final .config", "\n".join(rows), misses
            )
        return None

    def _make(self, request: BuildRequest, source: Path, out: Path, log: Path) -> _Failure | None:
        argv = self._sandboxed(source, out, request.arch, request.arch.make_targets, parallel=True)
        said = next_log(out)
        done = run(argv, timeout=self.timeout, log=said)
        if done.ok:
            return None
        shutil.copyfile(said, log)
        text = said.read_text(errors="replace")
        if _OUT_OF_MEMORY in text:
            raise InfrastructureError(
                "a compiler was killed: out of memory", log=done.output, hint="use a smaller --jobs"
            )
        return _Failure(f"make: {done.explain()}", failure_tail(text))

    def _keep(self, request: BuildRequest, key: str, out: Path, seconds: float) -> Artifact:
        text = all_logs(out)
        changed = changed_paths(request.tree, request.tree_id) if _is_patched(request) else ()

        def fill(place: Path) -> Mapping[str, Any]:
            modules = take(out, request.arch, place)
            (place / KEPT_LOG).write_text(text)
            return {
                "seconds": round(seconds, 2),
                "objects": objects_compiled(text),
                "release": read_small(out, "include/config/kernel.release").strip(),
                "compiled": compiled(out, changed, SRC),
                "warnings": [[d.path, d.line, d.severity, d.text, d.option] for d in warnings(text)],
                "modules": modules,
                "tree_id": request.tree_id,
                "reproduce": self.reproduce(request),
            }

        return self.store.put(KIND, key, fill)


@dataclass(frozen=True, slots=True)
class _Failure:
    reason: str
    tail: str
    misses: tuple[ConfigMiss, ...] = ()


def _result(request: BuildRequest, artifact: Artifact, *, cached: bool) -> BuildResult:
    meta = artifact.meta
    return BuildResult(
        status=Status.PASSED,
        arm=request.arm,
        arch=request.arch.name,
        tree_id=request.tree_id,
        key=artifact.key,
        seconds=meta["seconds"],
        objects=meta["objects"],
        cached=cached,
        release=meta["release"],
        image_digest=artifact.digests["image"],
        kernel_digest=digest({n: d for n, d in artifact.digests.items() if n == "image" or n.startswith("modules/")}),
        compiled=meta["compiled"],
        config_digest=artifact.digests["config"],
        artifact=artifact.path,
        log=artifact.path / KEPT_LOG,
        warnings=tuple(Diagnostic(*row) for row in meta["warnings"]),
        reproduce=meta["reproduce"],
    )


def _failed(
    request: BuildRequest, key: str, failure: _Failure, *, seconds: float, log: Path, reproduce: str
) -> BuildResult:
    text = log.read_text(errors="replace") if log.exists() else ""
    return BuildResult(
        status=Status.FAILED,
        arm=request.arm,
        arch=request.arch.name,
        tree_id=request.tree_id,
        key=key,
        seconds=round(seconds, 2),
        objects=objects_compiled(text),
        cached=False,
        log=log if log.exists() else log.with_suffix(".config.log"),
        warnings=warnings(text),
        misses=failure.misses,
        reason=failure.reason,
        log_tail=failure.tail,
        reproduce=reproduce,
    )


def _is_patched(request: BuildRequest) -> bool:
    return request.tree_id != request.tree.tree_id


def default_jobs() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))
