# SPDX-License-Identifier: GPL-2.0-or-later
"""Putting a kernel onto a board, and starting it once: through kexec, or through a boot entry that the boot after it forgets."""

from __future__ import annotations

import gzip
import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kpatch_ci.board.own import ASK, Network, own_part, read_network
from kpatch_ci.board.ssh import Shell, SilentError
from kpatch_ci.model.board import Board
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.machine import Machine

COPY_TIMEOUT = 900.0
NEEDED = ("timeout", "sha256sum", "gzip", "ip", "sed", "sync", "setsid", "uname")
KEXEC_FLAGS = {"arm64": "", "x86_64": "-c --args-linux"}
"""The x86_64 image is an ELF file (vmlinux), which kexec_load() takes and kexec_file_load() does not."""
KINDS, KEPT = ("kernel", "initrd", "busybox"), 6
"""What is copied to a board, and how many of each stay there for the next time."""
START_LOG = "start.log"
"""What the last start said, in the board's folder."""
TOKEN = "kpci.token="  # noqa: S105 (names a start, opens nothing)
"""Kernel argument that only the start that is waited for has."""
PROCESSORS = {"arm64": "aarch64"}
"""What uname calls an architecture, where that is not our name."""


@dataclass(frozen=True, slots=True)
class Known:
    """A board's own system, as it was met before anything was done to it."""

    release: str
    boot_id: str
    network: Network


@dataclass(frozen=True, slots=True)
class Files:
    """What is copied to a board: paths on this machine."""

    kernel: Path
    initrd: Path
    busybox: Path
    """For the board's architecture, static: its own system may have no cpio."""


def board_of(machine: Machine) -> Board:
    """The board that a machine is."""
    if machine.board is None:
        raise ValueError(f"{machine.name} is no board")
    return machine.board


def examine(shell: Shell, machine: Machine) -> Known:
    """Can this be done with that board at all? Raises InfrastructureError that names the board and what is not so."""
    board = board_of(machine)
    wanted = [*NEEDED, *(["kexec"] if board.boot_entry is None else [])]
    script = (
        "id -u; uname -m; uname -r; cat /proc/sys/kernel/random/boot_id; cat /proc/cmdline; "
        f"for p in {' '.join(wanted)}; do command -v $p >/dev/null || echo missing $p; done; "
        f"umask 077; mkdir -p {board.folder} || echo no-folder; {ASK}"
    )
    answer = ask(shell, machine, script)
    lines = answer.splitlines()
    if len(lines) < 5:
        raise not_so(machine, f"it does not say what it is: {answer[:200]!r}", "a Linux system with a POSIX shell")
    uid, processor, release, boot_id, cmdline = (line.strip() for line in lines[:5])
    if uid != "0":
        raise not_so(machine, f"{board.login.user} is not root there", "log in as root, or allow `sudo -n`")
    if processor != PROCESSORS.get(machine.arch, machine.arch):
        raise not_so(machine, f"it is {processor}, and the machine file says {machine.arch}", "another address or arch")
    if TOKEN in cmdline:
        raise not_so(machine, "it still runs a kernel under test", "power-cycle it: its own system comes back")
    missing = [line.split()[1] for line in lines if line.startswith("missing ")]
    if missing:
        hint = "install it there (Debian's package of kexec is kexec-tools)"
        raise not_so(machine, f"its own system has no {', '.join(missing)}", hint)
    if "no-folder" in lines:
        raise not_so(machine, f"{board.folder} cannot be made there", "`folder:` in the machine file")
    return Known(release, boot_id, read_network(answer, machine.name))


def not_so(machine: Machine, what: str, hint: str) -> InfrastructureError:
    """An error that names the board."""
    return InfrastructureError(f"board {machine.name} ({board_of(machine).login}): {what}", hint=hint)


def ask(
    shell: Shell, machine: Machine, script: str, *, timeout: float | None = None, stdin: bytes = b"", failed: str = ""
) -> str:
    """What a command prints that has to work; ``failed`` says what it is where it does not. Raises InfrastructureError.

    SilentError where the line breaks is one too.
    """
    try:
        answer = shell.run(script, timeout=timeout or board_of(machine).timeouts.command, stdin=stdin)
    except SilentError as error:
        raise not_so(machine, f"it stopped answering: {error}", "is it up, and is the network?") from error
    if not answer.ok:
        full = "No space left" in answer.errors
        hint = (
            "make room there, or name another `folder:`" if full else "the board's own system must be able to do this"
        )
        raise not_so(machine, failed + answer.explain(), hint)
    return answer.output


def copy(shell: Shell, machine: Machine, name: str, content: bytes) -> str:
    """Bring a file to the board, unless it is there, and check it there. Returns its path, which ends in its digest."""
    digest = hashlib.sha256(content).hexdigest()
    path = f"{board_of(machine).folder}/{name}-{digest[:32]}"
    if _arrived(ask(shell, machine, f"sha256sum {path} 2>/dev/null || true"), digest):
        return path
    keep = f"gzip -dc > {path}.new && chmod 700 {path}.new && mv {path}.new {path} && sha256sum {path}"
    script = f"umask 077; {keep} || {{ rm -f {path}.new; exit 1; }}"
    failed = f"{name} cannot be copied to {path}: "
    said = ask(shell, machine, script, timeout=COPY_TIMEOUT, stdin=gzip.compress(content, 1), failed=failed)
    if not _arrived(said, digest):
        raise not_so(
            machine, f"what arrived is not what was sent (sha256 {said[:64]}, sent {digest})", "is its disk sound?"
        )
    return path


def _arrived(said: str, digest: str) -> bool:
    return said.split(" ", 1)[0] == digest


def install(shell: Shell, machine: Machine, known: Known, files: Files, command_line: str) -> None:
    """Copy kernel, initramfs and what makes the latter the board's own, and get the kernel ready to be started once."""
    board = board_of(machine)
    kernel = copy(shell, machine, "kernel", files.kernel.read_bytes())
    common = copy(shell, machine, "initrd", files.initrd.read_bytes())
    busybox = copy(shell, machine, "busybox", files.busybox.read_bytes())
    ask(shell, machine, _prune(board.folder, (kernel, common, busybox)))
    own, initrd = f"{board.folder}/own", f"{board.folder}/initrd"
    ask(shell, machine, own_part(known.network, board.login.user, own, busybox))
    ask(shell, machine, f"umask 077; cat {common} {own} > {initrd} && rm -f {own}", timeout=COPY_TIMEOUT)
    line = shlex.quote(command_line)
    if board.boot_entry is None:
        # What is packed has host keys in it: it goes away, also where it was not loaded.
        load = f"kexec {KEXEC_FLAGS[machine.arch]} -l {kernel} --initrd={initrd} --command-line={line}; s=$?; rm -f {initrd}; exit $s"
        failed = "kexec did not load the kernel: "
    else:
        load = f"export KERNEL={kernel} INITRD={initrd} CMDLINE={line}; {board.boot_entry}"
        failed = "the boot entry was not made: "
    ask(shell, machine, load, timeout=COPY_TIMEOUT, failed=failed)


def _prune(folder: str, used: Sequence[str]) -> str:
    """Script that removes what has not been used for the longest, so that kernels do not fill the board.

    Never what is ``used`` now: on a board whose clock starts anew with each boot that may look the oldest.
    """
    mine = "|".join(used)
    old = "; ".join(
        f'ls -t {folder}/{kind}-* | tail -n +{KEPT + 1} | while read -r f; do case $f in {mine}) ;; *) rm -f "$f" ;; esac; done'
        for kind in KINDS
    )
    return f"(touch {' '.join(used)}; {old}) 2>/dev/null || true"


def start(shell: Shell, machine: Machine) -> None:
    """Leave the board's own system for the kernel that is ready. The connection is lost soon after.

    systemd ends what runs and unmounts first, where it is there.
    """
    log = f"{board_of(machine).folder}/{START_LOG}"
    if board_of(machine).boot_entry is None:
        go = "if [ -d /run/systemd/system ]; then systemctl kexec; else sync; kexec -e; fi"
    else:
        go = "if [ -d /run/systemd/system ]; then systemctl reboot; else sync; reboot -f; fi"
    ask(shell, machine, f"setsid sh -c {shlex.quote(f'sleep 1; {go}')} </dev/null >{log} 2>&1 &")


def leave(shell: Shell) -> None:
    """Reboot whatever runs; says nothing of whether that works. Done even after Ctrl-C."""
    go = "sleep 1; if [ -d /run/systemd/system ]; then systemctl reboot; else sync; reboot -f; fi"
    shell.run(f"setsid sh -c {shlex.quote(go)} </dev/null >/dev/null 2>&1 &", timeout=10, last=True)
