# SPDX-License-Identifier: GPL-2.0-or-later
"""What is found of a series beside its figures: a build after every patch, and what checkers say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kpatch_ci.model.build import Diagnostic
from kpatch_ci.model.status import Status


@dataclass(frozen=True, slots=True)
class PatchBuild:
    """The tree after one patch of a series, built on one architecture."""

    number: int
    """From 1."""
    subject: str
    tree_id: str
    status: Status
    seconds: float = 0.0
    objects: int = 0
    """Object files compiled: those that this patch touches, where its build started from the patch before."""
    cached: bool = False
    new_warnings: tuple[Diagnostic, ...] = ()
    """That the tree before this patch has not."""
    errors: tuple[Diagnostic, ...] = ()
    reason: str = ""
    log_tail: str = ""
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class EachResult:
    """A series built after every patch on one architecture. All of it is built, also what comes after a patch that breaks it."""

    arch: str
    patches: tuple[PatchBuild, ...]
    key: str = ""

    @property
    def first_break(self) -> PatchBuild | None:
        """The first patch after which the kernel does not build."""
        return next((p for p in self.patches if p.status is not Status.PASSED), None)

    @property
    def status(self) -> Status:
        """Failed where any patch leaves a kernel that does not build."""
        return Status.FAILED if self.first_break else Status.PASSED

    @property
    def reason(self) -> str:
        """One line: which patch, which architecture, and whether it is mended by the end; empty where every patch builds."""
        first = self.first_break
        if first is None:
            return ""
        count = len(self.patches)
        which = f"patch {first.number}/{count} `{first.subject}`"
        if first.number == count:
            return f"{which} is the first that does not build on {self.arch}"
        more = sum(p.status is not Status.PASSED for p in self.patches) - 1
        others = (
            f" ({more} more after it do not build either)"
            if more > 1
            else " (one more after it does not either)"
            if more
            else ""
        )
        end = "the series' end does" if self.patches[-1].status is Status.PASSED else "nor does the series' end"
        return f"not bisectable: {which} does not build on {self.arch}{others}; {end}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a checker says of a series and not of the tree before it."""

    path: str
    line: int
    """0 where it is of no line of a file."""
    severity: str
    """``warning``, ``error`` or ``check``."""
    kind: str
    """gcc's option, checkpatch's type; empty where the checker has no name for it."""
    text: str
    source: str = ""
    """The line of source or of the mail."""
    patch: int = 0
    """Number of the patch, where the checker works on patches."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one checker says. ``ERROR``: it could not do its work. Findings are no failure."""

    checker: str
    """``W=1``, ``sparse`` or ``checkpatch``."""
    status: Status
    findings: tuple[Finding, ...] = ()
    checked: int = 0
    """Objects, or patches."""
    unchecked: tuple[str, ...] = ()
    """Objects that the series touches and that the checker was not shown."""
    seconds: float = 0.0
    cached: bool = False
    reason: str = ""
    log_tail: str = ""
    key: str = ""
