# SPDX-License-Identifier: GPL-2.0-or-later
"""Of result.json: one arm's build, boots and replicates."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from kpatch_ci.report.parts import KEEP_UNKNOWN, Number, StatusText, WarningDoc


class Part(BaseModel):
    """Base of every object here."""

    model_config = KEEP_UNKNOWN


class MissDoc(Part):
    """A requested symbol that is not in the final .config as asked."""

    symbol: str
    """With ``CONFIG_``."""
    wanted: str
    """Value that was asked for."""
    got: str
    """Value in the final .config."""
    reason: str
    """The unmet dependency, in Kconfig's words."""
    where: str
    """Fragment file and line."""


class BuildDoc(Part):
    """One arm's build. ``log`` is relative to the output directory; empty where there is none."""

    status: StatusText
    """``passed``, ``failed`` (the patch's fault), ``skipped`` (a prerequisite failed) or ``error`` (ours or the machine's fault)."""
    seconds: Number = 0.0
    """Wall time of the build when it was made."""
    objects: int = 0
    """Object files that it compiled, not those taken from the baseline."""
    cached: bool = False
    """Whether an earlier build was reused."""
    warnings: list[WarningDoc] = []
    """All that compiler and Kbuild said."""
    new_warnings: list[WarningDoc] = []
    """Patched arm only: what the patch introduced."""
    misses: list[MissDoc] = []
    """Requested symbols that are not in the final .config as asked."""
    reason: str = ""
    """Why it failed."""
    log: str = ""
    """Relative to the output directory; empty where there is none."""
    log_tail: str = ""
    """The log's last lines, where it failed."""
    key: str = ""
    """sha256 of all that the build depends on."""
    release: str = ""
    """Kernel release."""
    tree_id: str = ""
    """Git tree that was built."""
    image_digest: str = ""
    """sha256 of the kernel image; empty where there is none."""
    config_digest: str = ""
    """sha256 of the final .config."""
    reproduce: str = ""
    """Command that does this build by hand."""


class BootDoc(Part):
    """One boot of one arm under one boot seed."""

    boot_seed: int
    """What the guest's randomness comes from."""
    status: StatusText
    """``passed``, ``failed`` (the patch's fault), ``skipped`` (a prerequisite failed) or ``error`` (ours or the machine's fault)."""
    seconds: Number = 0.0
    """Wall time of the boot when it was made."""
    cached: bool = False
    """Whether an earlier boot was reused."""
    cpus: int | None = None
    """CPUs that the guest has online; null where it did not say."""
    differences: list[str] = []
    """What the guest says of itself and the machine file says otherwise."""
    reason: str = ""
    """Why it failed."""
    log: str = ""
    """Console, relative to the output directory; empty where there is none."""
    log_tail: str = ""
    """The console's last lines, where it failed."""
    key: str = ""
    """sha256 of all that the boot depends on."""
    snapshot_digest: str = ""
    """sha256 of the snapshot; empty where there is none."""
    qemu_argv: list[str] = []
    """QEMU's command line."""
    reproduce: str = ""
    """Command that boots such a guest."""


class ArmBootDoc(Part):
    """The boots of one arm; ``status`` is the worst of them, ``facts`` what the first guest that told any said."""

    status: StatusText
    """The worst of the boots; ``skipped`` where there is none."""
    cpus: int | None = None
    """CPUs that the first guest that told has online."""
    facts: dict[str, Any] = {}
    """What that guest said of itself: release, CPUs, scheduler features, clock, memory, command line."""
    differences: list[str] = []
    """Contradictions to the machine file, of all boots."""
    reason: str = ""
    """Why the worst boot failed."""
    boots: list[BootDoc] = []
    """One a boot seed."""


class ReplicateDoc(Part):
    """A replicate that gave no samples."""

    workload: str
    """Name, with its suffix."""
    case: str
    """``key=value[,key=value]``."""
    seed: str
    """``boot.run``."""
    status: StatusText
    """``passed``, ``failed`` (the patch's fault), ``skipped`` (a prerequisite failed) or ``error`` (ours or the machine's fault)."""
    reason: str = ""
    """Why it gave no samples."""
    log_tail: str = ""
    """Last lines of what the workload said."""


class OnceDoc(Part):
    """A guest that was lost, and not when it was booted again (real time under TCG)."""

    arm: str
    """``baseline`` or ``patched``."""
    what: str
    """``boot``, or workload and case."""
    seed: str
    """Of the boot, or ``boot.run``."""
    reason: str
    """How the first guest was lost."""
    log_tail: str = ""
    """The last lines of its console."""


class ReplicatesDoc(Part):
    """Count of one arm's replicates, and those that gave no samples."""

    total: int = 0
    """Replicates of the arm."""
    cached: int = 0
    """Of those, how many were reused."""
    failures: list[ReplicateDoc] = []
    """Those that gave no samples."""
