# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs of the kernel's make, in the sandbox: configuring, building, and building modules of ours.

Inside the sandbox source and output are always /src and /out: no path of this machine gets into an object, and what is
copied stays valid.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.kernel.diagnostics import failure_tail
from kpatch_ci.kernel.external import External, place_external
from kpatch_ci.kernel.kconfig import Kconfigs, Requested, check, merged, parse_config
from kpatch_ci.kernel.outputs import OddOutput, next_log, read_small
from kpatch_ci.model.arch import Arch
from kpatch_ci.model.build import ConfigMiss
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.process import Completed, run
from kpatch_ci.store.atomic import disk_errors, write_text

SRC, OUT = "/src", "/out"
PINNED = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_USER": "kpatch-ci",
    "KBUILD_BUILD_HOST": "kpatch-ci",
    "KBUILD_BUILD_VERSION": "1",
    "SOURCE_DATE_EPOCH": "1767225600",
}
JOBS = "/jobserver"
EXTERNAL = "/kpci/module"
FRAGMENT = "kpatch-ci.config"
_OUT_OF_MEMORY = "Killed signal terminated program"
"""What gcc says of a child that the kernel's OOM killer ended."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a build did not pass."""

    reason: str
    tail: str
    misses: tuple[ConfigMiss, ...] = ()


@dataclass(frozen=True, slots=True)
class Make:
    """Runs make for one architecture. ``jobs``, ``timeout`` and ``jobserver`` as Builder has them."""

    tools: ToolRoot
    arch: Arch
    jobs: int
    timeout: float
    jobserver: Path | None = None

    @property
    def variables(self) -> list[str]:
        """What make is told of the architecture."""
        cross = [f"CROSS_COMPILE={self.arch.cross_compile}"] if self.arch.cross_compile else []
        return [f"ARCH={self.arch.kernel_arch}", *cross]

    def reproduce(self, targets: Sequence[str]) -> str:
        """The make command, as a person would type it in a checkout of the tree."""
        env = " ".join(f"{k}='{v}'" for k, v in PINNED.items())
        return f"{env} {' '.join(['make', f'-j{self.jobs}', *self.variables, *targets])}"

    def run(
        self,
        source: Path,
        out: Path,
        targets: Sequence[str],
        log: Path,
        *,
        parallel: bool = True,
        extra: Path | None = None,
        mounts: Sequence[tuple[Path, str]] = (),
    ) -> Completed:
        """Run make on ``targets`` (options and variables among them). ``extra`` is a module's place, ``mounts`` further tools.

        Raises InfrastructureError where a compiler ran out of memory.
        """
        env = dict(PINNED)
        writable: list[tuple[Path, str]] = [(out, OUT)]
        if extra is not None:
            writable.append((extra, EXTERNAL))
        argv = ["make", "-C", SRC, f"O={OUT}", *self.variables, *targets]
        if parallel and self.jobserver is not None:
            env["MAKEFLAGS"] = f" -j{self.jobs} --jobserver-auth=fifo:{JOBS}"
            writable.append((self.jobserver, JOBS))
        elif parallel:
            argv.insert(1, f"-j{self.jobs}")
        sandboxed = self.tools.argv(argv, mounts=[(source, SRC), *mounts], write_mounts=writable, env=env)
        done = run(sandboxed, timeout=self.timeout, log=log)
        if not done.ok and _OUT_OF_MEMORY in log.read_text(errors="replace"):
            raise InfrastructureError(
                "a compiler was killed: out of memory", log=done.output, hint="use a smaller --jobs"
            )
        return done

    def configure(
        self, config: Mapping[str, Requested], kconfigs: Kconfigs | None, *, source: Path, out: Path, log: Path
    ) -> Failure | None:
        """Make the .config, and check that every symbol asked for is in it; ``kconfigs`` tells why one is not."""
        with disk_errors(out):
            write_text(out / FRAGMENT, merged(config))
        allconfig = [f"KCONFIG_ALLCONFIG={OUT}/{FRAGMENT}", "allnoconfig"]
        done = self.run(source, out, allconfig, log, parallel=False)
        if not done.ok:
            return Failure(f"allnoconfig: {explain(done)}", done.output)
        try:
            final = parse_config(read_small(out, ".config"))
        except OddOutput as odd:
            return Failure(str(odd), done.output)
        misses = check(config, final, kconfigs)
        if misses:
            rows = [f"CONFIG_{m.symbol}: asked for {m.wanted} ({m.where}), got {m.got}: {m.reason}" for m in misses]
            return Failure(
                f"{len(misses)} requested kconfig symbol(s) are not in the final .config", "\n".join(rows), misses
            )
        return None

    def build(self, source: Path, out: Path, log: Path) -> Failure | None:
        """Build the kernel. A failing make's words go to ``log`` too."""
        said = next_log(out)
        done = self.run(source, out, self.arch.make_targets, said)
        return None if done.ok else _copied(explain(done), said, log)

    def build_external(self, modules: Sequence[External], source: Path, out: Path, log: Path) -> Failure | None:
        """Build modules of ours against a kernel that was built."""
        for module in modules:
            with disk_errors(out):
                place = place_external(module, out)
            said = next_log(out)
            done = self.run(source, out, [f"M={EXTERNAL}", "modules"], said, extra=place)
            if not done.ok:
                return _copied(f"our module {module.name} does not build: {explain(done)}", said, log)
        return None


def explain(done: Completed) -> str:
    """One line: why a make is not ok, without the name of what it was started by."""
    return f"make{done.explain().removeprefix(Path(done.argv[0]).name)}"


def _copied(reason: str, said: Path, log: Path) -> Failure:
    log.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(said, log)
    return Failure(reason, failure_tail(said.read_text(errors="replace")))
