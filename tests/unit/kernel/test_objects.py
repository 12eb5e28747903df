# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects of two arms told apart, whatever a patch's build left in their places."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpatch_ci.kernel.elf import BadElf, defined_symbols, differing_sections
from kpatch_ci.kernel.objects import NAMES, NEW, UNREADABLE, differing_objects
from tests.fakes.elf import elf


def put(place: Path, name: str, data: bytes, stamp: int = 1000) -> Path:
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (stamp, stamp))
    return path


def test_each_object_that_differs_is_named_with_its_sections(tmp_path: Path) -> None:
    base, out = tmp_path / "base", tmp_path / "out"
    old = elf({".text": b"code", "__bug_table": b"1"}, {".comment": b"gcc"})
    for name in ("same.o", "k/code.o", "k/lines.o", "k/names.o", "k/bad.o", "touched.o", "vmlinux.o"):
        put(base, name, old)
    put(out, "same.o", old, stamp=2000)
    put(out, "touched.o", old)
    put(out, "k/code.o", elf({".text": b"CODE", "__bug_table": b"2"}))
    put(out, "k/lines.o", elf({".text": b"code", "__bug_table": b"9"}))
    put(out, "k/names.o", elf({".text": b"code", "__bug_table": b"1"}, {".comment": b"other"}))
    put(out, "k/bad.o", b"no object")
    put(out, "k/new.o", old)
    put(out, "vmlinux.o", b"made of the others")
    (out / "link.o").symlink_to("/etc/passwd")
    os.mkfifo(out / "pipe.o")
    assert differing_objects(out, base) == {
        "k/bad.o": (UNREADABLE,),
        "k/code.o": (".text", "__bug_table"),
        "k/lines.o": ("__bug_table",),
        "k/names.o": (NAMES,),
        "k/new.o": (NEW,),
    }


def test_a_modules_own_symbols_are_read() -> None:
    assert defined_symbols(elf({".text": b"x"}, symbols=("null_init", "null_exit"))) == {"null_init", "null_exit"}


def test_a_section_that_is_gone_differs_too() -> None:
    assert differing_sections(elf({".text": b"x", ".data": b"y"}), elf({".text": b"x"})) == (".data",)


@given(st.binary(max_size=200), st.integers(0, 400), st.binary(min_size=1, max_size=8))
def test_no_bytes_make_another_exception(junk: bytes, at: int, damage: bytes) -> None:
    whole = elf({".text": b"code"}, symbols=("a",))
    for data in (junk, whole[:at], whole[:at] + damage + whole[at + len(damage) :]):
        try:
            defined_symbols(data)
        except BadElf:
            continue


def test_what_is_no_elf_is_said_to_be_none() -> None:
    with pytest.raises(BadElf, match="ELF"):
        differing_sections(b"#!/bin/sh" + bytes(100), elf({}))
