# SPDX-License-Identifier: GPL-2.0-or-later
"""What a patch adds to a source file, read from the file before and after it: names and texts that an image must then hold.

C is read as kernel code is written: what is defined at file scope begins in the first column. What is not, is missed,
and a miss is no false claim: all of this only supports the proof that the image differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import git

from kpatch_ci.kernel.git import open_repo

MIN_STRING = 8
"""Characters of a text that are worth looking for."""
CODE = (".c", ".h", ".S")
MAX_FILES = 500
MAX_BYTES = 16 * 1024 * 1024
"""A file larger than this is no code that anyone wrote."""

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_UNSEEN = re.compile(r"\b(?:MODULE_\w+|__asm__|asm|EXPORT_\w+)\b[^;]*;?")
_FUNCTION = re.compile(
    r"^(?P<head>[A-Za-z_][\w\s*]*?[\s*])(?P<name>[A-Za-z_]\w*)\s*\([^;{}]*?\)\s*(?:__\w+\s*(?:\([^)\n]*\))?\s*)*\n\{",
    re.M,
)
_VARIABLE = re.compile(
    r"^(?P<head>(?:[A-Za-z_]\w*[ \t*]+)+)(?P<name>[A-Za-z_]\w*)[ \t]*(?:\[[^\]\n]*\][ \t]*)*(?:__\w+[ \t]*)*(?:=|;)",
    re.M,
)
_ATTRIBUTE = re.compile(
    r"\b__(?:read_mostly|ro_after_init|initdata|initconst|cacheline_aligned\w*|maybe_unused|used|refdata|percpu|rcu)\b"
)
_SECOND = ("DEFINE_PER_CPU",)
_DEFINED = re.compile(
    r"^(?P<static>static\s+)?(?P<macro>DEFINE_PER_CPU\w*|DEFINE_STATIC_KEY\w*|DEFINE_MUTEX|DEFINE_(?:RAW_)?SPINLOCK|LIST_HEAD"
    r"|DEFINE_IDA|DEFINE_IDR)\((?P<args>[^)]*)\)",
    re.M,
)
_SYSCALL = re.compile(r"^SYSCALL_DEFINE\d\((\w+)", re.M)
_PARAMETER = re.compile(r"^(?:module_param\w*|core_param\w*)\((\w+)", re.M)
_FEATURE = re.compile(r"^SCHED_FEAT\((\w+)", re.M)
_PROCNAME = re.compile(r'\.procname\s*=\s*"([^"\\]+)"')
_ASSEMBLER = re.compile(r"^(?:SYM_(?:FUNC|CODE|TYPED_FUNC)_START\w*|ENTRY)\((\w+)\)", re.M)
_NOT_A_TYPE = frozenset({"typedef", "extern", "return", "goto", "else", "case", "using"})
_TAGS = frozenset({"struct", "union", "enum"})
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v", b"0": b"\0"}


@dataclass(frozen=True, slots=True)
class Addition:
    """One thing that was not in the file before. ``kind``: function, variable, syscall, parameter, sysctl, sched_feature, string."""

    kind: str
    name: str
    static: bool = False
    """Of the file alone: the compiler may have inlined it, or left it out."""


def tree_additions(repo: Path, before: str, after: str) -> tuple[Addition, ...]:
    """What the code files of git tree ``after`` define and those of ``before`` do not, each file told apart from itself alone."""
    opened = open_repo(repo)
    raw = opened.git.execute(
        ["git", "diff-tree", "-r", "-z", "--no-renames", before, after], strip_newline_in_stdout=False
    )
    fields = str(raw).split("\0")
    found: dict[tuple[str, str], Addition] = {}
    for meta, path in list(zip(fields[0::2], fields[1::2], strict=False))[:MAX_FILES]:
        _, mode, old, new, _ = meta.split(" ")
        if path.endswith(CODE) and mode.startswith("100"):
            for one in additions(_text(opened, old), _text(opened, new), path):
                found.setdefault((one.kind, one.name), one)
    return tuple(found.values())


def _text(repo: git.Repo, blob: str) -> str:
    if not blob.strip("0"):
        return ""
    stream = repo.odb.stream(bytes.fromhex(blob))
    return str(stream.read().decode("utf-8", "replace")) if stream.size <= MAX_BYTES else ""


def additions(before: str, after: str, path: str) -> tuple[Addition, ...]:
    """What ``after`` defines and ``before`` does not."""
    known = {(one.kind, one.name) for one in _all(before, path)}
    found = {(one.kind, one.name): one for one in _all(after, path)}
    return tuple(one for key, one in found.items() if key not in known)


def literal_bytes(text: str) -> bytes:
    """A string literal's content, between its quotes, as the compiler stores it."""

    def one(match: re.Match[bytes]) -> bytes:
        code = match[1]
        if code[:1] == b"x" and len(code) > 1:
            return bytes([int(code[1:], 16)])
        if code.isdigit() and code[:1] in b"01234567":
            return bytes([int(code, 8) & 0xFF])
        return _ESCAPES.get(code, code)

    return _ESCAPE.sub(one, text.encode())


def _all(text: str, path: str) -> Iterator[Addition]:
    if path.endswith(".S"):
        yield from (Addition("function", name) for name in _ASSEMBLER.findall(text))
        return
    literals: list[str] = []
    code = _TOKEN.sub(lambda m: _blank(m[0]), text)
    plain = _TOKEN.sub(lambda m: _blank(m[0], literals), _UNSEEN.sub("", _DIRECTIVE.sub("", code)))
    yield from _definitions(plain)
    yield from (Addition("sysctl", name) for name in _PROCNAME.findall(code))
    yield from (Addition("sched_feature", name) for name in _FEATURE.findall(plain))
    yield from (Addition("parameter", name) for name in _PARAMETER.findall(code))
    yield from (Addition("syscall", name) for name in _SYSCALL.findall(plain))
    yield from (Addition("string", text) for text in literals if len(literal_bytes(text)) >= MIN_STRING)


def _blank(token: str, literals: list[str] | None = None) -> str:
    """Comments become a blank; with ``literals`` strings are put there, and leave an empty one."""
    if token.startswith("/"):
        return " "
    if literals is None:
        return token
    if token.startswith('"'):
        literals.append(token[1:-1])
        return '""'
    return "' '"


def _definitions(code: str) -> Iterator[Addition]:
    for match in _FUNCTION.finditer(code):
        words = match["head"].split()
        if words[0] not in _NOT_A_TYPE:
            yield Addition("function", match["name"], static="static" in words)
    for match in _VARIABLE.finditer(_ATTRIBUTE.sub("", code)):
        words = match["head"].replace("*", " ").split()
        if words[0] not in _NOT_A_TYPE and not (len(words) == 1 and words[0] in _TAGS):
            yield Addition("variable", match["name"], static="static" in words)
    for match in _DEFINED.finditer(code):
        names = [name.strip() for name in match["args"].split(",")]
        wanted = names[1:2] if match["macro"].startswith(_SECOND) else names[:1]
        yield from (Addition("variable", name, static=bool(match["static"])) for name in wanted if name.isidentifier())
