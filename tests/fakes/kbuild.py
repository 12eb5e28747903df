# SPDX-License-Identifier: GPL-2.0-or-later
"""A make that compiles no kernel: it goes by time stamps like the real one, and its sources say what the compiler would.

As a module it is the tool root that starts it (`FakeKbuildRoot`); as a program it is make. A line of a source may be
``fn NAME`` (what follows is in that function), ``include FILE``, ``warn TEXT``, ``error TEXT``, ``warn1 TEXT`` (with W=1 only) and
``sparse TEXT`` (several lines where there is a ``;`` in it). ``ARCH ...`` before any of these: on that architecture only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kpatch_ci.debian.toolroot import ToolRoot

ARCHES = ("arm64", "x86_64")


@dataclass(frozen=True, slots=True)
class FakeKbuildRoot(ToolRoot):
    """Starts this file in place of a sandboxed make."""

    def argv(self, command: Sequence[str | Path], **how: Any) -> list[str]:
        """See ToolRoot.argv(); what is mounted at /src and /out is handed over."""
        places = {inside: str(outside) for outside, inside in (*how["mounts"], *how["write_mounts"])}
        return [sys.executable, __file__, places["/src"], places["/out"], *map(str, command)]


@dataclass(frozen=True)
class Make:
    """One run. ``out`` gets an object a source."""

    source: Path
    out: Path
    words: Sequence[str]

    @property
    def arch(self) -> str:
        return next(w.partition("=")[2] for w in self.words if w.startswith("ARCH="))

    def run(self) -> int:
        if "allnoconfig" in self.words:
            (self.out / ".config").write_text("")
            return 0
        single = [w.removesuffix(".o") for w in self.words if w.endswith(".o")]
        names = single or [str(p.relative_to(self.source))[:-2] for p in sorted(self.source.rglob("*.c"))]
        failed = 0
        for name in names:
            ok = self.check(name) if "C=2" in self.words else self.compile(name, force="W=1" in self.words)
            failed += not ok
            if failed and "-k" not in self.words:
                break
        if not failed and not single:
            self.link(names)
        return 2 if failed else 0

    def compile(self, name: str, *, force: bool) -> bool:
        path, made = self.source / f"{name}.c", self.out / f"{name}.o"
        if not path.exists():
            print(f"make: *** No rule to make target '{name}.o'.")  # noqa: T201
            return False
        needs = [path, *(self.source / w[1] for _, w in self.lines(path) if w[0] == "include")]
        if not force and made.exists() and all(p.stat().st_mtime < made.stat().st_mtime for p in needs):
            return True
        print(f"  CC      {name}.o")  # noqa: T201
        made.unlink(missing_ok=True)
        errors = sum(self.say(p) for p in needs)
        if errors:
            return False
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(name)
        return True

    def say(self, path: Path) -> int:
        """Print what the compiler says of a file; how many errors."""
        relative, errors = path.relative_to(self.source), 0
        kinds = {"warn": "warning", "error": "error"} | ({"warn1": "warning"} if "W=1" in self.words else {})
        for number, (word, text) in self.lines(path):
            if word == "fn":
                print(f"/src/{relative}: In function '{text}':")  # noqa: T201
            elif word in kinds:
                option = " [-Wfake]" if word != "error" else ""
                print(f"/src/{relative}:{number}:1: {kinds[word]}: {text}{option}")  # noqa: T201
                errors += word == "error"
        return errors

    def check(self, name: str) -> bool:
        print(f"  CHECK   /src/{name}.c")  # noqa: T201
        for number, (word, text) in self.lines(self.source / f"{name}.c"):
            if word == "sparse":
                first, *more = text.split(";")
                print(f"/src/{name}.c:{number}:5: warning: {first}")  # noqa: T201
                for line in more:
                    print(f"/src/{name}.c:{number}:5:    {line}")  # noqa: T201
        return True

    def link(self, names: Sequence[str]) -> None:
        places = ("vmlinux", "System.map", "arch/arm64/boot/Image", "arch/x86/boot/bzImage")
        text = "\n".join((self.source / f"{n}.c").read_text() for n in names)
        for place in (*places, "include/config/kernel.release"):
            path = self.out / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text if place in places else "6.1.9\n")

    def lines(self, path: Path) -> Iterator[tuple[int, tuple[str, str]]]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            words = line.split()
            if words and words[0] in ARCHES and words.pop(0) != self.arch:
                continue
            if words:
                yield number, (words[0], " ".join(words[1:]))


if __name__ == "__main__":
    os.environ.pop("MAKEFLAGS", None)
    sys.exit(Make(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]).run())
