# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames: what is cut, what is none, what a login shell prints before."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from kpatch_ci.pipeline.far.frames import HEAD, LARGEST, MARK, PACKED, Cut, Frames, Heart
from tests.fakes.far import SocketPipe

Pair = tuple[Frames, SocketPipe]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = (SocketPipe(end) for end in socket.socketpair())
    yield Frames(ours), theirs
    ours.close()
    theirs.close()


def test_a_frame_arrives_as_it_was_sent_and_both_ends_count_the_same_bytes(pair: Pair) -> None:
    ours, pipe = pair
    theirs = Frames(pipe)
    ours.send({"op": "x", "text": "für\n"}, bytes(range(256)))
    assert theirs.receive() == ({"op": "x", "text": "für\n"}, bytes(range(256)))
    assert theirs.received == ours.sent > 256
    pipe.close()
    assert ours.receive() is None


def test_a_long_header_travels_packed(pair: Pair) -> None:
    ours, pipe = pair
    header = {"op": "call", "facts": ["the same words again"] * 500}
    ours.send(header)
    assert ours.sent < 1000
    assert Frames(pipe).receive() == (header, b"")


def test_a_packed_header_that_is_damaged_is_no_frame(pair: Pair) -> None:
    ours, pipe = pair
    pipe.write(HEAD.pack(4 | PACKED, 0) + b"\0\1\2\3")
    with pytest.raises(Cut, match="no JSON"):
        ours.receive()


def test_a_stream_that_ends_within_a_frame_is_cut_and_not_an_end(pair: Pair) -> None:
    ours, pipe = pair
    pipe.write(HEAD.pack(100, 0) + b'{"op"')
    pipe.close()
    with pytest.raises(Cut, match="ended within a frame"):
        ours.receive()


def test_a_stream_that_ends_within_the_lengths_is_cut_too(pair: Pair) -> None:
    ours, pipe = pair
    pipe.write(b"\0\0\0")
    pipe.close()
    with pytest.raises(Cut, match="ended within a frame"):
        ours.receive()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (HEAD.pack(LARGEST + 1, 0), "none of ours"),
        (b"Last login: Mon Nov 30 from 10.0.0.1\n", "none of ours"),
        (HEAD.pack(3, 0) + b"{]}", "no JSON"),
        (HEAD.pack(2, 0) + b"[]", "no JSON object"),
    ],
)
def test_what_is_no_frame_is_refused(pair: Pair, data: bytes, words: str) -> None:
    ours, pipe = pair
    pipe.write(data)
    with pytest.raises(Cut, match=words):
        ours.receive()


def test_what_a_login_shell_prints_is_passed_over(pair: Pair) -> None:
    ours, pipe = pair
    theirs = Frames(pipe)
    pipe.write(b"Welcome to kpatch-ci frames 1!\n" + MARK)
    theirs.send({"op": "hello"})
    assert ours.skip_to_mark() == b"Welcome to kpatch-ci frames 1!\n"
    assert ours.receive() == ({"op": "hello"}, b"")


def test_without_a_mark_what_was_printed_is_told(pair: Pair) -> None:
    ours, pipe = pair
    pipe.write(b"sh: 1: exec: python3: not found\n")
    pipe.close()
    with pytest.raises(Cut, match="python3: not found"):
        ours.skip_to_mark()


def test_sending_to_nobody_is_cut(pair: Pair) -> None:
    ours, pipe = pair
    pipe.close()
    with pytest.raises(Cut, match="cannot send"):
        ours.send({"op": "x"}, bytes(1_000_000))


def test_silence_is_noticed_once_and_signs_of_life_prevent_it(pair: Pair) -> None:
    ours, pipe = pair
    theirs = Frames(pipe)
    silent: list[str] = []
    told = threading.Event()

    def tell() -> None:
        silent.append("x")
        told.set()

    heart = Heart(ours, tell, beat=0.02, dead=0.3)
    reader = threading.Thread(target=lambda: [ours.receive() for _ in range(20)])
    reader.start()
    for _ in range(20):
        theirs.send({"op": "beat"})
        assert not told.wait(0.03)
    reader.join()
    assert told.wait(5)
    assert not threading.Event().wait(0.1)
    assert silent == ["x"]
    heart.stop()
