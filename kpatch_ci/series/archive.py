# SPDX-License-Identifier: GPL-2.0-or-later
"""Archives and compressed files, read in memory and never unpacked to disk, within bounds."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Protocol

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.letter import Source

MAX_BYTES = 256 * 1024 * 1024
"""A file, or all that an archive holds, may be no larger than this."""
MAX_MEMBERS = 20_000
MAX_DEPTH = 3
"""Archives in archives: a .gz of a tar is two."""

_PACKED = ((b"\x1f\x8b", ".gz"), (b"BZh", ".bz2"), (b"\xfd7zXZ\x00", ".xz"), (b"]\x00\x00", ".lzma"))
_PATCHES = (".patch", ".diff", ".mbox", ".mbx", ".eml", ".mail")
"""A link of such a name is refused; any other is passed over, none is followed."""
_REFUSED = (
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
    (b"Rar!", "RAR"),
)
_BROKEN = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    RuntimeError,
    ValueError,
)


class Readable(Protocol):
    """Anything that reads at most so many bytes."""

    def read(self, size: int, /) -> bytes: ...


def is_packed(data: bytes) -> bool:
    """Whether bytes are an archive or compressed, readable here or not."""
    return _is_archive(data) or any(data.startswith(magic) for magic, *_ in (*_PACKED, *_REFUSED))


def unpack(source: Source) -> list[Source]:
    """The files in an archive, in the order of their names, or the file itself where it is none.

    Raises UserError for what is damaged, too large, or names a place outside of the archive.
    """
    budget = [MAX_BYTES]
    return _unpack(source, budget, 0)


def _unpack(source: Source, budget: list[int], depth: int) -> list[Source]:
    data = source.data
    for magic, name in _REFUSED:
        if data.startswith(magic):
            raise UserError(
                f"packed with {name}", where=str(source), expected="a tar, zip, .gz, .bz2 or .xz: unpack it first"
            )
    if not is_packed(data):
        return [source]
    if depth > MAX_DEPTH:
        raise UserError("archives in archives", where=str(source), expected=f"at most {MAX_DEPTH} deep")
    try:
        members = list(_members(source, budget))
    except UserError:
        raise
    except _BROKEN as error:
        raise UserError(
            f"the archive is damaged: {error}", where=str(source), expected="a whole tar, zip, .gz, .bz2 or .xz"
        ) from error
    return [file for member in members for file in _unpack(member, budget, depth + 1)]


def _members(source: Source, budget: list[int]) -> Iterator[Source]:
    data = source.data
    for magic, suffix in _PACKED:
        if data.startswith(magic):
            name = source.path.name.removesuffix(suffix)
            if name.endswith((".tgz", ".txz", ".tbz2", ".tbz")):
                name = f"{Path(name).stem}.tar"
            with _opened(suffix, data) as stream:
                yield replace(source, path=source.path.with_name(name), data=_bounded(stream, source, budget))
            return
    found = dict(_from_tar(source, budget) if not _is_zip(data) else _from_zip(source, budget))
    for name in sorted(found, key=natural):
        yield replace(source, path=Path(f"{source.path}:{name}"), data=found[name])


def _opened(suffix: str, data: bytes) -> gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile:
    packed = io.BytesIO(data)
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=packed)
    return bz2.BZ2File(packed) if suffix == ".bz2" else lzma.LZMAFile(packed)


def natural(name: str) -> list[tuple[int, int | str]]:
    """Sorting key by which 2 stands before 10."""
    pieces: list[tuple[int, int | str]] = []
    digits = ""
    for char in name:
        if char.isascii() and char.isdigit():
            digits += char
            continue
        if digits:
            pieces.append((0, int(digits[:300])))
            digits = ""
        pieces.append((1, char))
    return [*pieces, (0, int(digits[:300]))] if digits else pieces


def _from_tar(source: Source, budget: list[int]) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(source.data), mode="r:") as archive:
        for count, member in enumerate(archive):
            _check(member.name, count, source)
            if (member.issym() or member.islnk()) and member.name.endswith(_PATCHES):
                raise UserError(
                    f"a link in the archive: {member.name!r}", where=str(source), expected="plain files and directories"
                )
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None:
                yield _clean(member.name), _bounded(stream, source, budget)


def _from_zip(source: Source, budget: list[int]) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
        for count, member in enumerate(archive.infolist()):
            _check(member.filename, count, source)
            if not member.is_dir():
                with archive.open(member) as stream:
                    yield _clean(member.filename), _bounded(stream, source, budget)


def _check(name: str, count: int, source: Source) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise UserError(
            f"a name in the archive leads out of it: {name!r}", where=str(source), expected="names below one directory"
        )
    if count >= MAX_MEMBERS:
        raise UserError("too many files in the archive", where=str(source), expected=f"at most {MAX_MEMBERS}")


def _clean(name: str) -> str:
    return str(PurePosixPath(name))


def _bounded(stream: Readable, source: Source, budget: list[int]) -> bytes:
    data = stream.read(budget[0] + 1)
    if len(data) > budget[0]:
        raise UserError(
            "it unpacks to more than a patch can be", where=str(source), expected=f"at most {MAX_BYTES >> 20} MiB"
        )
    budget[0] -= len(data)
    return data


def _is_zip(data: bytes) -> bool:
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def _is_archive(data: bytes) -> bool:
    return _is_zip(data) or data[257:262] == b"ustar"
