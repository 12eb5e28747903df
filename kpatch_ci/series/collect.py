# SPDX-License-Identifier: GPL-2.0-or-later
"""From what was named on the command line to the texts to read: files, directories, maildirs, quilt series, archives, stdin."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import LeftOut
from kpatch_ci.series.archive import MAX_BYTES, MAX_MEMBERS, is_packed, natural, unpack
from kpatch_ci.series.fetch import fetch, is_address
from kpatch_ci.series.letter import Source
from kpatch_ci.series.quilt import NAMES, Entry, read_series_file

SUFFIXES = (".patch", ".diff", ".mbox", ".mbx", ".eml", ".mail", ".txt")
"""Files of a directory that are taken for patches."""
PACKED = (".gz", ".bz2", ".xz", ".zip", ".tar", ".tgz", ".txz", ".tbz2")
STDIN = Path("-")
_MAILDIR = ("cur", "new")
_EXPECTED = (
    f"files named *{', *'.join(SUFFIXES)}, those packed (*{', *'.join(PACKED)}), a maildir, or a quilt series file"
)


@dataclass(slots=True)
class Collection:
    """Texts in the order in which they were named, and what was passed over."""

    sources: list[Source] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    lenient: set[Path] = field(default_factory=set)
    """Files that were not asked for by name and need not be patches."""


def collect(paths: Sequence[Path]) -> Collection:
    """Texts of files, directories, archives and `-`. Raises UserError for what cannot be read."""
    found = Collection()
    for origin, path in enumerate(paths):
        if is_address(path):
            found.sources.append(Source(Path(str(path)), fetch(path), origin=origin))
            continue
        try:
            _collect(path, origin, found)
        except OSError as error:
            raise UserError(
                f"cannot read it: {error.strerror}", where=str(path), expected="a file with a patch"
            ) from error
    return found


def _collect(path: Path, origin: int, found: Collection) -> None:
    if path == STDIN:
        found.sources += _opened(Source(Path("standard input"), _stdin(), origin=origin), found)
    elif path.is_dir():
        _directory(path, origin, found)
    elif path.name in NAMES and (data := _read(path)) and not is_packed(data) and _is_series_file(data):
        found.sources += _quilt(_Folder(path.parent), read_series_file(data, str(path)), str(path), origin)
    else:
        found.sources += _opened(Source(path, _read(path), origin=origin), found)


def _read(path: Path) -> bytes:
    if path.stat().st_size > MAX_BYTES:
        raise UserError("too large for a patch", where=str(path), expected=f"at most {MAX_BYTES >> 20} MiB")
    if not path.is_file():
        with path.open("rb") as stream:  # a pipe, such as <(git format-patch ...) of a shell
            return _at_most(stream.read(MAX_BYTES + 1), str(path))
    return path.read_bytes()


def _stdin() -> bytes:
    if sys.stdin.isatty():
        raise UserError(
            "nothing to read: standard input is a terminal", where="-", expected="a patch: git show | kpatch-ci check -"
        )
    return _at_most(sys.stdin.buffer.read(MAX_BYTES + 1), "standard input")


def _at_most(data: bytes, where: str) -> bytes:
    if len(data) > MAX_BYTES:
        raise UserError("too large for a patch", where=where, expected=f"at most {MAX_BYTES >> 20} MiB")
    return data


def _is_series_file(data: bytes) -> bool:
    return not data.startswith((b"From ", b"diff ", b"--- ")) and b"\n@@ -" not in data


def _directory(path: Path, origin: int, found: Collection) -> None:
    boxes = [path / name for name in _MAILDIR if (path / name).is_dir()]
    if boxes:
        files = [file for box in boxes for file in _files(box)]
        if not files:
            raise UserError("no mail in this maildir", where=str(path), expected="mails in cur/ or new/")
        found.sources += [Source(file, _read(file), origin=origin) for file in files]
        return
    if (index := _index_of(path)) is not None:
        entries = read_series_file(_read(index), str(index))
        found.sources += _quilt(_Folder(index.parent), entries, str(index), origin)
        _unnamed(index.parent, entries, found)
        return
    files = _files(path)
    taken = [file for file in files if _wanted(file.name)]
    if not taken:
        raise UserError("no patches in this directory", where=str(path), expected=_EXPECTED)
    found.left_out += [LeftOut(str(file), "", "not named as a patch is") for file in files if file not in taken]
    for file in taken:
        found.sources += _opened(Source(file, _read(file), origin=origin), found)
    found.lenient |= {file for file in taken if file.suffix == ".txt"}


def _index_of(path: Path) -> Path | None:
    for folder in (path, path / "patches", path / "debian" / "patches"):
        for name in NAMES:
            if (folder / name).is_file():
                return folder / name
    return None


def _files(path: Path) -> list[Path]:
    return sorted((p for p in path.iterdir() if p.is_file() and p.name[0] != "."), key=lambda p: natural(p.name))


def _wanted(name: str) -> bool:
    return name.endswith((*SUFFIXES, *PACKED)) or name.isdigit()


def _unnamed(folder: Path, entries: Sequence[Entry], found: Collection) -> None:
    named = {entry.name for entry in entries}
    for file in _files(folder):
        if file.name not in named and file.name not in NAMES and _wanted(file.name):
            found.left_out.append(LeftOut(str(file), "", "not named in the series file"))


class _Folder(Mapping[str, Source]):
    """Files of a directory by name, read when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, name: str) -> Source:
        file = self._folder / name
        if not file.is_file() or not file.resolve().is_relative_to(self._folder.resolve()):
            raise KeyError(name)
        return Source(file, _read(file))

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _quilt(files: Mapping[str, Source], entries: Sequence[Entry], where: str, origin: int) -> list[Source]:
    sources = []
    for entry in entries:
        try:
            source = files[entry.name]
        except KeyError:
            raise UserError(
                f"the patch {entry.name} is not there",
                where=f"{where}:{entry.line}",
                expected="a file beside the series file",
            ) from None
        opened = unpack(source)
        if len(opened) != 1:
            raise UserError(
                f"{entry.name} holds {len(opened)} files", where=f"{where}:{entry.line}", expected="one patch"
            )
        strip = 1 if entry.strip is None else entry.strip
        sources.append(replace(opened[0], origin=origin, strip=strip, ordered=True))
    return sources


def _opened(source: Source, found: Collection) -> list[Source]:
    """A file, or what is in it where it is an archive: by its quilt series, else by name."""
    files = unpack(source)
    if len(files) == 1 and files[0].path.parent == source.path.parent and ":" not in files[0].path.name:
        return files
    prefix = f"{source.path}"
    by_name = {_inside(file): file for file in files}
    root = _common(list(by_name))
    names = {name[len(root) :]: file for name, file in by_name.items()}
    for folder in ("", "patches/", "debian/patches/"):
        for name in NAMES:
            if (index := names.get(folder + name)) is not None:
                entries = read_series_file(index.data, str(index))
                below = {key.removeprefix(folder): file for key, file in names.items() if key.startswith(folder)}
                wanted = {entry.name for entry in entries}
                found.left_out += [
                    LeftOut(str(file), "", "not named in the series file")
                    for key, file in below.items()
                    if key not in wanted and _wanted(Path(key).name)
                ]
                return _quilt(below, entries, str(index), source.origin)
    taken = [file for name, file in names.items() if _wanted(Path(name).name)]
    if not taken:
        raise UserError("no patches in this archive", where=prefix, expected=_EXPECTED)
    found.left_out += [LeftOut(str(file), "", "not named as a patch is") for file in files if file not in taken]
    found.lenient |= {file.path for file in taken if file.path.suffix == ".txt"}
    return taken


def _inside(file: Source) -> str:
    return str(file.path).partition(":")[2]


def _common(names: Sequence[str]) -> str:
    """The directory that all files of an archive are in, with its slash; empty where there is none."""
    first = names[0].partition("/")
    return f"{first[0]}/" if first[1] and all(name.startswith(f"{first[0]}/") for name in names) else ""


__all__ = ["MAX_BYTES", "MAX_MEMBERS", "STDIN", "SUFFIXES", "Collection", "collect"]
