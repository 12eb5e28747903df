# SPDX-License-Identifier: GPL-2.0-or-later
"""Building one arm on one architecture, in the sandbox, and keeping what a guest needs.

The baseline is built once per tree and architecture and its objects are kept; the patched arm starts from a copy of them,
so its cost is the files that it touches.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.kernel.checkout import GIT, Trees, changed_paths, checkout, checkout_patched
from kpatch_ci.kernel.diagnostics import objects_compiled, warnings
from kpatch_ci.kernel.external import External, copy_external, drop_external
from kpatch_ci.kernel.kconfig import Requested, merged
from kpatch_ci.kernel.make import PINNED, SRC, Failure, Make
from kpatch_ci.kernel.objects import differing_objects
from kpatch_ci.kernel.outputs import OddOutput, all_logs, compiled, logs_of, read_small, take
from kpatch_ci.model.arch import Arch
from kpatch_ci.model.build import BuildResult, Tree
from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.status import Status
from kpatch_ci.process import check_stopping, run
from kpatch_ci.store.artifacts import Artifact, ArtifactStore
from kpatch_ci.store.atomic import require_space
from kpatch_ci.store.cache import locked

KIND = "build"
STAGE_VERSION = 2
KEPT_LOG = "build.log"


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What is to be built. ``tree_id`` is the arm's git tree; for the baseline it is ``tree.tree_id``."""

    arm: str
    arch: Arch
    tree: Tree
    tree_id: str
    config: Mapping[str, Requested]
    external: tuple[External, ...] = ()
    """Our modules, built after the kernel's own."""

    def key(self, tools: ToolRoot) -> str:
        """Digest of everything that the build is a function of: git tree, symbols asked for, compilers, pinned settings, our modules."""
        target = [self.arch.name, self.arch.make_targets, self.arch.image]
        ours = [[[module.name, module.files] for module in self.external]] if self.external else []
        inputs = [target, self.tree_id, merged(self.config), tools.fingerprint, PINNED, *ours]
        return digest([KIND, STAGE_VERSION, *inputs])

    def baseline(self) -> BuildRequest:
        """The same of the tree as it is."""
        return replace(self, arm="baseline", tree_id=self.tree.tree_id)


class Builder:
    """Builds below one cache directory with one tool root.

    ``jobs`` is make's -j. ``jobserver`` is the directory and name of a named pipe that make shares with the other stages
    of the run, as GNU make 4.4 defines it (`--jobserver-auth=fifo:PATH`); without one make keeps its own. ``trees`` tells how
    a patched tree differs from the baseline's.
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
        trees: Trees = GIT,
    ) -> None:
        self.cache, self.store, self.tools = cache, store, tools
        self.jobs, self.timeout, self.jobserver, self.trees = jobs, timeout, jobserver, trees

    def find(self, request: BuildRequest) -> BuildResult | None:
        """The build, when it was made before."""
        artifact = self.store.get(KIND, request.key(self.tools))
        return passed(request, artifact, cached=True) if artifact else None

    def build(self, request: BuildRequest, logs: Path) -> BuildResult:
        """Build, or reuse. A kernel that does not build is a result; raises InfrastructureError where the machine fails."""
        key = request.key(self.tools)
        found = self.find(request)
        if found:
            return found
        log = logs / f"build-{request.arch.name}-{request.arm}.log"
        out = self._output(request)
        with locked(out, check_stopping):
            found = self.find(request)  # another process may have made it while this one waited
            if found:
                return found
            started = time.monotonic()
            failed = self._compile(request, out, log)
            artifact = None
            if not failed:
                try:
                    artifact = self._keep(request, out, time.monotonic() - started)
                except OddOutput as odd:
                    failed = Failure(str(odd), "")
            drop_external(out)
            self._discard(request, out)
        if artifact is None or failed:
            require_space(self.cache)
            assert failed  # noqa: S101
            seconds = time.monotonic() - started
            return failed_build(request, key, failed, seconds=seconds, log=log, reproduce=self.reproduce(request))
        return passed(request, artifact, cached=False)

    def _compile(self, request: BuildRequest, out: Path, log: Path) -> Failure | None:
        source, make = self._prepare(request, out), self.make(request.arch)
        return (
            self.configure(request, source, out, _config_log(log))
            or make.build(source, out, log)
            or make.build_external(request.external, source, out, log)
        )

    def has_objects(self, request: BuildRequest) -> bool:
        """Whether the objects are here from which a patched kernel of the request's tree starts."""
        return (self._output(request.baseline()) / "vmlinux").exists()

    def make_objects(self, request: BuildRequest, logs: Path) -> None:
        """For a patched kernel: make those objects where they are not here, though the baseline itself may be known, and made elsewhere.

        A baseline that does not build leaves none: the patched kernel is built without them then.
        """
        base = replace(request.baseline(), external=())
        out = self._output(base)
        if not _is_patched(request) or self.has_objects(base):
            return
        with locked(out, check_stopping):
            if not self.has_objects(base):
                self._compile(base, out, logs / f"objects-{base.arch.name}.log")

    def make(self, arch: Arch) -> Make:
        """Make as this builder runs it."""
        return Make(self.tools, arch, self.jobs, self.timeout, self.jobserver)

    def configure(self, request: BuildRequest, source: Path, out: Path, log: Path) -> Failure | None:
        """Make the .config of a request, and check it."""
        kconfigs = self.trees.kconfigs(request.tree, request.tree_id)
        return self.make(request.arch).configure(request.config, kconfigs, source=source, out=out, log=log)

    def reproduce(self, request: BuildRequest) -> str:
        """The make command, as a person would type it in a checkout of the tree."""
        return self.make(request.arch).reproduce(request.arch.make_targets)

    def _output(self, request: BuildRequest) -> Path:
        return self.cache / "out" / objects_name(request, self.tools)

    def _prepare(self, request: BuildRequest, out: Path) -> Path:
        """Source tree to build from; for a patched arm the output starts as a copy of the baseline's objects."""
        if not _is_patched(request):
            out.mkdir(parents=True, exist_ok=True)
            return checkout(self.cache, request.tree)
        self._discard(request, out)
        newest = self.copy_objects(request, out)
        return checkout_patched(self.cache, request.tree, request.tree_id, newer_than=newest, trees=self.trees)

    def copy_objects(self, request: BuildRequest, out: Path) -> float:
        """Make ``out`` a copy of the baseline's objects, all of it or nothing; the time stamp of the newest, 0 without any."""
        objects = self._output(request.baseline())
        with locked(objects, check_stopping):
            newest = self._copy(objects, out) if (objects / "vmlinux").exists() else 0.0
        out.mkdir(parents=True, exist_ok=True)
        return newest

    def _copy(self, objects: Path, out: Path) -> float:
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

    def _keep(self, request: BuildRequest, out: Path, seconds: float) -> Artifact:
        changed = changed_paths(request.tree, request.tree_id, self.trees) if _is_patched(request) else ()
        objects = self._output(request.baseline()) if _is_patched(request) else None
        against = {
            "compiled": compiled(out, changed, SRC),
            "differing": differing_objects(out, objects) if objects and objects.is_dir() else None,
        }
        more = {"seconds": round(seconds, 2), **against}
        return self.keep_as(KIND, request, out, text=all_logs(out), more=more)

    def keep_as(self, kind: str, request: BuildRequest, out: Path, *, text: str, more: Mapping[str, Any]) -> Artifact:
        """Keep what was built in ``out``. ``text`` is what make said; ``more`` says how long it took and how it stands to others.

        Raises OddOutput for outputs that are no regular files.
        """

        def fill(place: Path) -> Mapping[str, Any]:
            modules = take(out, request.arch, place)
            modules += [name for module in request.external for name in copy_external(module, out, place / "modules")]
            (place / KEPT_LOG).write_text(text)
            return {
                "objects": objects_compiled(text),
                "release": read_small(out, "include/config/kernel.release").strip(),
                "warnings": [[d.path, d.line, d.severity, d.text, d.option] for d in warnings(text)],
                "modules": modules,
                "tree_id": request.tree_id,
                "reproduce": self.reproduce(request),
                **more,
            }

        return self.store.put(kind, request.key(self.tools), fill)


def objects_name(request: BuildRequest, tools: ToolRoot) -> str:
    """Of an output directory. After the kernel alone: with another version of our modules its objects are the same."""
    key = replace(request, external=()).key(tools)
    return f"{'patched-' if _is_patched(request) else ''}{request.arch.name}-{key[:16]}"


def passed(request: BuildRequest, artifact: Artifact, *, cached: bool) -> BuildResult:
    """The result of a build whose outputs were kept."""
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
        differing=_sections(meta.get("differing")),
        config_digest=artifact.digests["config"],
        artifact=artifact.path,
        log=artifact.path / KEPT_LOG,
        warnings=warnings((artifact.path / KEPT_LOG).read_text(errors="replace")),
        reproduce=meta["reproduce"],
    )


def _sections(kept: Mapping[str, Sequence[str]] | None) -> Mapping[str, tuple[str, ...]] | None:
    return None if kept is None else {name: tuple(found) for name, found in kept.items()}


def failed_build(
    request: BuildRequest, key: str, failure: Failure, *, seconds: float, log: Path, reproduce: str
) -> BuildResult:
    """The result of a build that did not pass."""
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
        log=log if log.exists() else _config_log(log),
        warnings=warnings(text),
        misses=failure.misses,
        reason=failure.reason,
        log_tail=failure.tail,
        reproduce=reproduce,
    )


def _config_log(log: Path) -> Path:
    return log.with_suffix(".config.log")


def _is_patched(request: BuildRequest) -> bool:
    return request.tree_id != request.tree.tree_id


def default_jobs() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))
