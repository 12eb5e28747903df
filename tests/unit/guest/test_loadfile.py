# SPDX-License-Identifier: GPL-2.0-or-later
"""dbench's loadfile without its filler files."""

from __future__ import annotations

from kpatch_ci.guest.loadfile import without_fillers

LOAD = rb"""NTCreateX "\clients\client1\filler.000" 0x0 2 5 SUCCESS
WriteX 5 0 65536 65536 SUCCESS
NTCreateX "\clients\client1\x.doc" 0x0 2 6 SUCCESS
Close 5 SUCCESS
WriteX 6 0 100 100 SUCCESS
NTCreateX "\clients\client1\y.doc" 0x0 2 5 SUCCESS
WriteX 5 0 200 200 SUCCESS
Unlink "\clients\client1\filler.000" 0x6 SUCCESS
Flush 6 SUCCESS
"""


def test_operations_on_filler_files_go_and_a_handle_that_is_used_again_stays() -> None:
    kept = list(without_fillers(LOAD.splitlines(keepends=True)))
    assert [line.split()[0:2] for line in kept] == [
        [b"NTCreateX", rb'"\clients\client1\x.doc"'],
        [b"WriteX", b"6"],
        [b"NTCreateX", rb'"\clients\client1\y.doc"'],
        [b"WriteX", b"5"],
        [b"Flush", b"6"],
    ]


def test_it_stops_at_the_number_of_lines_that_is_asked_for() -> None:
    assert len(list(without_fillers(LOAD.splitlines(keepends=True), most=2))) == 2
