# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees and builds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kpatch_ci.model.status import Status


@dataclass(frozen=True, slots=True)
class Tree:
    """Kernel source at a known state: a git tree object in a repository on this machine."""

    label: str
    """What the user called it: ``debian:6.1``, a path with a ref, ..."""
    release: str
    """Kernel version from its Makefile, such as ``6.1.140``."""
    repo: Path
    """Git directory that holds the objects."""
    commit: str
    tree_id: str
    origin: str
    """Where it came from and how that was verified (package version and checksum, or ref)."""
    notes: tuple[str, ...] = ()
    """What a person may take for part of it, and is not."""


@dataclass(frozen=True, slots=True)
class ConfigMiss:
    """A requested symbol that is not in the final .config as asked."""

    symbol: str
    wanted: str
    got: str
    reason: str
    """The unmet dependency, in Kconfig's words."""
    where: str
    """Fragment file and line."""


Identity = tuple[str, str, str, str, str]
"""Of a diagnostic: path, context, severity, text, option."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One compiler, linker or Kbuild message."""

    path: str
    line: int
    severity: str
    """``warning`` or ``error``."""
    text: str
    option: str = ""
    """Such as ``-Wunused-variable``."""
    context: str = ""
    """The function that it is in (and those that it was inlined into), or else its line of source; empty where neither is known."""

    @property
    def identity(self) -> Identity:
        """What tells two messages apart: content, not position, for a patch moves lines."""
        return (self.path, self.context, self.severity, self.text, self.option)


@dataclass(frozen=True, slots=True)
class Proof:
    """One thing that a series adds, looked up in both arms' images."""

    kind: str
    """``symbol``, ``sysctl``, ``sched_feature``, or ``source``: a changed file that an object was made from.

    Derived ones are also ``function``, ``variable``, ``syscall``, ``parameter`` and ``string``."""
    name: str
    in_patched: bool
    in_baseline: bool
    derived: bool = False
    """Read from the patch by us, not named by the series: where it is not found that explains, and is no fault."""
    why: str = ""
    """Of a derived one that does not hold: what may be the reason."""

    @property
    def broken(self) -> bool:
        """Whether it was promised and does not hold."""
        return not self.holds and not self.derived

    @property
    def holds(self) -> bool:
        """Only what is in patched and not in baseline proves anything."""
        return self.in_patched and not self.in_baseline


@dataclass(frozen=True, slots=True)
class BuildResult:
    """One arm on one architecture. ``artifact`` is a directory: image, config, System.map, modules/, build.log; None unless passed."""

    status: Status
    arm: str
    arch: str
    tree_id: str
    key: str
    seconds: float
    objects: int
    """Object files compiled by this build (not those it took from the baseline)."""
    cached: bool
    release: str = ""
    image_digest: str = ""
    kernel_digest: str = ""
    """Of image and modules together: what tells two arms' kernels apart."""
    config_digest: str = ""
    compiled: Mapping[str, bool] = field(default_factory=dict)
    """Code files that the arm changes -> whether any object was made from them under this configuration."""
    differing: Mapping[str, tuple[str, ...]] | None = None
    """Objects that differ from the baseline's -> their sections that do; None of a baseline, or where that was not recorded."""
    artifact: Path | None = None
    log: Path | None = None
    warnings: tuple[Diagnostic, ...] = ()
    misses: tuple[ConfigMiss, ...] = ()
    reason: str = ""
    log_tail: str = ""
    reproduce: str = ""
    """Command that does this build by hand."""
