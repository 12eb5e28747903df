# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci clean``: what the cache holds, by kind, and what of it to delete."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from kpatch_ci.cli.output import print_json, say, size, verbosity
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.store.atomic import disk_errors
from kpatch_ci.store.cache import alone_with_cache, cache_root


@dataclass(frozen=True, slots=True)
class Kind:
    """Where it is, below the cache, and what its loss costs."""

    places: tuple[str, ...]
    loss: str


KINDS = {
    "replicate": Kind(("store/replicate",), "samples: measured again when they are gone"),
    "inexact": Kind(
        ("store/inexact",), "which workloads were seen to differ between repeats: believed to repeat again"
    ),
    "snapshot": Kind(("store/snapshot", "store/boot"), "booted guests: booted again"),
    "guest-image": Kind(
        ("store/guest-image", "store/guest-files", "guest"), "guests' programs: fetched and packed again"
    ),
    "build": Kind(("store/build",), "kernels: built again"),
    "bisect": Kind(("store/bisect",), "kernels of bisections: built again"),
    "out": Kind(("out",), "objects of the last builds: the next build of an arm is a cold one"),
    "src": Kind(("src", "store/source", "store/changes"), "working trees: checked out again"),
    "trees": Kind(("trees",), "kernel sources as git trees: fetched and imported again"),
    "tools": Kind(("tools",), "compilers and QEMU: fetched again"),
    "history": Kind(("state/history",), "the record of all runs: lost for good, so --all leaves it (docs/history.md)"),
}
KEPT = ("history",)
"""Kinds that no cache can make again: deleted only where they are named."""
OTHER = "other"
_PARTS = frozenset(place for kind in KINDS.values() for place in kind.places)
_LOCK_DEPTH = 3


@click.command(name="clean")
@click.option("--all", "everything", is_flag=True, help="Delete everything but the history.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(KINDS)), help="Delete this kind. Repeatable.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@verbosity
def command(everything: bool, kinds: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Show what the cache holds, by kind. Deletes only with --all or --kind.

    The history of runs is no cache: only --kind history deletes it.
    """
    root = cache_root()
    held = sizes(root)
    chosen = [k for k in held if (everything and k not in KEPT) or k in kinds]
    if as_json:
        print_json({"cache": str(root), "bytes": held, "deleted": chosen if yes else []})
    else:
        _show(root, held)
    if not everything and not kinds:
        return
    if not chosen:
        say("nothing of that is there")
        return
    if not yes:
        if as_json:
            raise click.UsageError("--json cannot ask: add --yes")
        click.confirm(f"Delete {', '.join(chosen)} ({size(sum(held[k] for k in chosen))})?", abort=True, err=True)
    with alone_with_cache(root):
        for kind in chosen:
            delete(root, kind)
    say(f"deleted {', '.join(chosen)}: {size(sum(held[k] for k in chosen))}")


def _show(root: Path, held: dict[str, int]) -> None:
    click.echo(f"{root}: {size(sum(held.values()))}")
    for kind, count in held.items():
        click.echo(f"{size(count):>10}  {kind:12} {KINDS[kind].loss if kind in KINDS else 'notes and leftovers'}")


def sizes(root: Path) -> dict[str, int]:
    """Kind -> bytes on disk, of the kinds that are there, in KINDS' order; a file with several links counts once."""
    if not root.is_dir():
        return {}
    seen: set[tuple[int, int]] = set()
    found = {kind: sum(_bytes(path, seen) for path in paths(root, kind)) for kind in (*KINDS, OTHER)}
    return {kind: count for kind, count in found.items() if count}


def paths(root: Path, kind: str) -> list[Path]:
    """Directories (and, of what is of no kind, files) that are there."""
    if kind in KINDS:
        return [root / place for place in KINDS[kind].places if (root / place).exists()]
    shared = {root / Path(part).parts[0] for part in _PARTS if "/" in part}
    below = [*root.iterdir(), *(inner for place in shared if place.is_dir() for inner in place.iterdir())]
    return sorted(p for p in below if p not in shared and str(p.relative_to(root)) not in _PARTS)


def _bytes(path: Path, seen: set[tuple[int, int]]) -> int:
    total = 0
    for status in _statuses(path):
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            identity = (status.st_dev, status.st_ino)
            if identity in seen:
                continue
            seen.add(identity)
        total += status.st_blocks * 512
    return total


def _statuses(path: Path) -> Iterator[os.stat_result]:
    """Of everything below ``path``, itself included; what vanishes meanwhile is passed over."""
    stack = [str(path)]
    try:
        yield path.lstat()
    except FileNotFoundError:
        return
    while stack:
        try:
            with os.scandir(stack.pop()) as entries:
                for entry in entries:
                    yield entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue


def delete(root: Path, kind: str) -> None:
    """Remove a kind (or everything that is of no kind). Raises InfrastructureError when another process is at work in it."""
    with disk_errors(root):
        for path in paths(root, kind):
            _refuse_if_locked(path, kind)
            if not path.is_dir() or path.is_symlink():
                path.unlink(missing_ok=True)
                continue
            # Out of the way at once, so that being killed half-way leaves no half of an entry in its place.
            doomed = path.with_name(f".deleted-{path.name}.{os.getpid()}")
            path.replace(doomed)
            _remove(doomed)


def _refuse_if_locked(path: Path, kind: str) -> None:
    for depth in range(_LOCK_DEPTH):
        for lock in path.glob("*/" * depth + "*.lock"):
            if lock.is_file() and _held(lock):
                raise InfrastructureError(
                    f"another kpatch-ci is at work in {kind} ({lock.name})", hint="wait for it, or end it, then clean"
                )


def _held(lock: Path) -> bool:
    with lock.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _remove(place: Path) -> None:
    try:
        shutil.rmtree(place)
    except PermissionError:  # directories that their maker left read-only (a source tree, an unpacked package)
        place.chmod(0o700)
        for folder, names, _ in os.walk(place):
            for inner in (Path(folder) / name for name in names):
                if not inner.is_symlink():
                    inner.chmod(0o700)
        shutil.rmtree(place)
