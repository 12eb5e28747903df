# SPDX-License-Identifier: GPL-2.0-or-later
"""What a build left in its output directory, taken with care: a patch's Makefile may have put anything there."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from kpatch_ci.model.arch import Arch

CODE = (".c", ".h", ".S")
IN_LIST_KEPT = {"vmlinux": "vmlinux", "System.map": "System.map", ".config": "config"}
_SMALL = 16 * 1024 * 1024


class OddOutput(Exception):
    """An output that is no plain file in its place. Becomes a failed build."""


def plain_file(out: Path, name: str) -> Path:
    """``out``/``name``, when it is a regular file below ``out`` without any symbolic link on the way. Raises OddOutput."""
    path = out / name
    inside = path.resolve().is_relative_to(out.resolve()) and path.resolve() == out.resolve() / name
    if not inside or path.is_symlink() or not path.is_file():
        raise OddOutput(f"the build left no regular file {name}")
    return path


def read_small(out: Path, name: str) -> str:
    """Text of an output. Raises OddOutput also for one that is too large to be what it should be."""
    path = plain_file(out, name)
    if path.stat().st_size > _SMALL:
        raise OddOutput(f"{name} has {path.stat().st_size} bytes")
    return path.read_text(errors="replace")


def take(out: Path, arch: Arch, place: Path) -> list[str]:
    """Copy image, vmlinux, System.map, config and modules into ``place``; the modules' names in load order."""
    shutil.copyfile(plain_file(out, arch.image), place / "image")
    for name, kept in IN_LIST_KEPT.items():
        shutil.copyfile(plain_file(out, name), place / kept)
    names = []
    if (out / "modules.order").exists():
        for line in read_small(out, "modules.order").splitlines():
            module = plain_file(out, str(Path(line).with_suffix(".ko")))
            (place / "modules").mkdir(exist_ok=True)
            shutil.copyfile(module, place / "modules" / module.name)
            names.append(module.name)
    return names


def compiled(out: Path, paths: Iterable[str], source: str) -> dict[str, bool]:
    """For each code file of ``paths`` (relative to the tree): whether any object of this output was made from it.

    Kbuild writes what an object depends on into ``.<object>.cmd``; ``source`` is what the tree is called there.
    """
    wanted = {path: f" {source}/{path} ".encode() for path in paths if path.endswith(CODE)}
    found = dict.fromkeys(wanted, False)
    if not wanted:
        return found
    for command in out.rglob(".*.o.cmd"):
        if command.is_symlink() or not command.is_file():
            continue
        words = command.read_bytes().replace(b"\n", b" ").replace(b"\\", b" ")
        for path, text in wanted.items():
            if not found[path] and text in words:
                found[path] = True
    return found


def config_changes(baseline: Mapping[str, str], patched: Mapping[str, str]) -> tuple[str, ...]:
    """Kconfig symbols whose value differs between the arms, as ``CONFIG_X: y -> n``; absent is told from "is not set"."""
    names = sorted({*baseline, *patched})
    values = ((n, baseline.get(n, "absent"), patched.get(n, "absent")) for n in names)
    return tuple(f"CONFIG_{name}: {before} -> {after}" for name, before, after in values if before != after)


def logs_of(out: Path) -> Path:
    """Beside an output directory, where no build can write: a log for each make that worked on it.

    So a resumed build keeps the words of the first.
    """
    return out.with_name(f"{out.name}.logs")


def all_logs(out: Path) -> str:
    """Everything that make has said about this output, in order."""
    return "".join(p.read_text(errors="replace") for p in sorted(logs_of(out).glob("*.log")))


def next_log(out: Path) -> Path:
    """Where the next make's words go."""
    return logs_of(out) / f"{len(list(logs_of(out).glob('*.log'))):04d}.log"
