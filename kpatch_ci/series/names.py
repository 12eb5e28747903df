# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of files in a diff: unquoted, and brought to the one leading directory (``a/``, ``b/``) that git apply expects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

NULL = "/dev/null"
_TOP = """
arch block certs crypto Documentation drivers fs include init io_uring ipc kernel lib LICENSES mm net rust samples scripts
security sound tools usr virt
"""
TOP = frozenset(_TOP.split())
"""Directories at the root of a kernel tree: what tells a path without a prefix from one with."""
_TOP_FILES = "COPYING CREDITS Kbuild Kconfig MAINTAINERS Makefile README .clang-format .gitignore .mailmap"
TOP_FILES = frozenset(_TOP_FILES.split())
PREFIXES = frozenset({("a", "b"), ("i", "w"), ("c", "i"), ("c", "w"), ("o", "w"), ("1", "2"), ("old", "new")})
"""Leading directories by which git and people tell the two sides apart."""
MAX_STRIP = 12

_NAMED = re.compile(rb"(copy from|copy to|rename from|rename to|---|\+\+\+) (.*?)((?:\t.*)?\r?\n?)$", re.DOTALL)
_ESCAPE = re.compile(rb'\\([abfnrtv"\\]|[0-3][0-7]{2})')
_QUOTED = re.compile(rb'"((?:[^"\\]|\\(?:[abfnrtv"\\]|[0-3][0-7]{2}))*)"', re.DOTALL)
_CODES = {
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
    b'"': b'"',
    b"\\": b"\\",
}
_ASIDE = re.compile(r"(?:\.orig|\.old|\.bak|~)$")
Pair = tuple[str, str]


def header_name(line: bytes) -> tuple[str, bytes] | None:
    """Key and raw name of a ``---``, ``+++``, rename or copy line; None for any other."""
    match = _NAMED.match(line)
    return (match.group(1).decode(), match.group(2)) if match else None


def unquote(raw: bytes) -> str:
    """A path as git prints it: C-quoted where it holds control or non-ASCII bytes."""
    raw = raw.strip()
    if match := _QUOTED.fullmatch(raw):
        raw = _ESCAPE.sub(_unescaped, match.group(1))
    return raw.decode(errors="replace")


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match.group(1)
    return _CODES.get(code) or bytes([int(code, 8)])


def git_pair(line: bytes) -> Pair | None:
    """The two names of a ``diff --git`` line where they are told apart by their length or their quotes; else None."""
    rest = line.removeprefix(b"diff --git ").rstrip(b"\r\n")
    if rest.startswith(b'"') and rest.endswith(b'"') and b'" "' in rest:
        left, _, right = rest.partition(b'" "')
        return unquote(left + b'"'), unquote(b'"' + right)
    half = len(rest) // 2
    if len(rest) % 2 and rest[half : half + 1] == b" ":
        return unquote(rest[:half]), unquote(rest[half + 1 :])
    return None


def strip_level(pairs: Iterable[Pair], default: int = 1) -> int:
    """How many leading directories the names of a diff have that the kernel tree has not (``-p`` of patch).

    One for all: the fewest that leave both names of every file alike and, where names are known at the tree's root, leave
    those. ``default`` where nothing tells.
    """
    known = [pair for pair in pairs if pair != (NULL, NULL)]
    if not known or all(_usual(pair) for pair in known):
        return default
    plausible = [n for n in range(MAX_STRIP + 1) if all(_alike(pair, n) for pair in known)]
    rooted = [n for n in plausible if all(_rooted(pair, n) for pair in known)]
    if rooted:
        return rooted[0]
    return default if default in plausible or not plausible else plausible[0]


def relative(name: str, level: int) -> str:
    """A name below the tree's root; /dev/null stays."""
    return name if name == NULL else "/".join(name.split("/")[level:])


def rewritten(head: Sequence[bytes], level: int) -> list[bytes]:
    """The header lines of a file's part of a diff with their names as ``a/...`` and ``b/...``."""
    made = [_rewritten(line, level) for line in head]
    moved = {key: unquote(raw) for key, raw in filter(None, map(header_name, made))}
    old, new = (moved.get(f"rename {side}", moved.get(f"copy {side}")) for side in ("from", "to"))
    if old and new and head[0].startswith(b"diff --git ") and git_pair(head[0]) is None:
        made[0] = b"diff --git " + _quote("a/", old, 0) + b" " + _quote("b/", new, 0) + b"\n"
    return made


def _rewritten(line: bytes, level: int) -> bytes:
    if line.startswith(b"diff --git ") and (pair := git_pair(line)):
        end = line[len(line.rstrip(b"\r\n")) :]
        return b"diff --git " + _quote("a/", pair[0], level) + b" " + _quote("b/", pair[1], level) + end
    match = _NAMED.match(line)
    if match is None or unquote(match.group(2)) == NULL:
        return line
    key = match.group(1)
    if key in (b"---", b"+++"):
        return key + b" " + _quote("a/" if key == b"---" else "b/", unquote(match.group(2)), level) + match.group(3)
    return key + b" " + _quote("", unquote(match.group(2)), max(0, level - 1)) + match.group(3)


def paths_of(first: bytes, names: Sequence[tuple[str, bytes]]) -> list[str]:
    """Paths below the tree's root of a section whose names have one leading directory; a rename touches two."""
    found: dict[str, str] = {}
    for key, raw in names:
        name = unquote(raw)
        if name != NULL:
            found[key] = name if key not in ("---", "+++") else (relative(name, 1) or name)
    moved = [found[key] for key in ("rename from", "rename to", "copy to") if key in found]
    changed = found.get("+++", found.get("---"))
    if moved or changed:
        return list(dict.fromkeys([*moved, *([changed] if changed else [])]))
    pair = git_pair(first) if first.startswith(b"diff --git ") else None
    return [relative(pair[1], 1) or pair[1]] if pair else []


def _usual(pair: Pair) -> bool:
    old, new = (name.split("/")[0] for name in pair)
    if NULL in pair:
        return (new if pair[0] == NULL else old) in ("a", "b")
    return (old, new) in PREFIXES


def _alike(pair: Pair, level: int) -> bool:
    left, right = (relative(name, level) for name in pair)
    if not left or not right:
        return False
    return NULL in pair or left == right or _ASIDE.sub("", left) == right


def _rooted(pair: Pair, level: int) -> bool:
    name = relative(pair[1] if pair[1] != NULL else pair[0], level)
    first, slash, _ = name.partition("/")
    return first in TOP if slash else name in TOP_FILES


def _quote(prefix: str, name: str, level: int) -> bytes:
    plain = prefix + relative(_ASIDE.sub("", name) if prefix == "a/" else name, level)
    data = plain.encode()
    if all(32 <= byte < 127 and byte not in b'"\\' for byte in data):
        return data
    shown = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in data)
    return f'"{shown}"'.encode()
