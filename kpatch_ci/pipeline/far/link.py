# SPDX-License-Identifier: GPL-2.0-or-later
"""Our end of a connection: questions of many threads, each with its answer, over one stream of frames."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as NoAnswer
from typing import Any

from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.pipeline.far.frames import BEAT, DEAD, Cut, Frames, Header, Heart
from kpatch_ci.pipeline.places import PlaceLost

Answered = tuple[Header, bytes]


class Link:
    """Safe for concurrent threads. When the other end is gone every question, open or new, raises PlaceLost."""

    def __init__(self, name: str, frames: Frames, *, beat: float = BEAT, dead: float = DEAD) -> None:
        self.name, self.frames = name, frames
        self.lost = ""
        """Why it is gone; empty while it is there."""
        self.given_up = 0
        """How often what was at work there was given up."""
        self._numbers = itertools.count(1)
        self._open: dict[int, Future[Answered]] = {}
        self._lock = threading.Lock()
        silent = f"it gave no sign of life for {dead:g} s"
        self._heart = Heart(frames, lambda: self.close(silent), beat=beat, dead=dead)
        threading.Thread(target=self._read, daemon=True, name=f"link {name}").start()

    def ask(self, header: dict[str, Any], payload: bytes = b"", *, timeout: float) -> Answered:
        """A question and its answer.

        Raises PlaceLost (gone, or no answer in ``timeout`` seconds), InfrastructureError (it says that it cannot).
        """
        future: Future[Answered] = Future()
        with self._lock:
            number = next(self._numbers)
            self._open[number] = future
        try:
            self.tell({**header, "id": number}, payload)
            answer, data = future.result(timeout)
        except NoAnswer as error:
            self.close(f"it did not answer within {timeout:.0f} s ({header['op']})")
            raise PlaceLost(self.lost) from error
        finally:
            with self._lock:
                self._open.pop(number, None)
        if "error" in answer:
            raise _raised(self.name, answer["error"])
        return answer, data

    def tell(self, header: dict[str, Any], payload: bytes = b"") -> None:
        """Something that is not answered. Raises PlaceLost."""
        if self.lost:
            raise PlaceLost(self.lost)
        try:
            self.frames.send(header, payload)
        except Cut as error:
            self.close(str(error))
            raise PlaceLost(self.lost) from error

    def give_up(self) -> None:
        """What is at work there is ended; whoever waits for it gets PlaceLost. The connection stays."""
        self.given_up += 1
        if not self.lost:
            try:
                self.tell({"op": "stop"})
            except PlaceLost:
                return
            self._fail("stopped")

    def close(self, why: str = "closed") -> None:
        """End the connection: what is at work there ends within seconds."""
        with self._lock:
            if self.lost:
                return
            self.lost = why
        self._heart.stop()
        self.frames.pipe.close()
        self._fail(why)

    def _fail(self, why: str) -> None:
        with self._lock:
            waiting = list(self._open.values())
        for future in waiting:
            _set(future, PlaceLost(why))

    def _read(self) -> None:
        try:
            while (frame := self.frames.receive()) is not None:
                self._take(*frame)
            self.close("the connection ended")
        except Cut as error:
            self.close(str(error))

    def _take(self, header: Header, payload: bytes) -> None:
        if header.get("op") == "beat":
            return
        with self._lock:
            future = self._open.get(header.get("id", 0))
        if future is not None:  # else nobody waits for it any more
            _set(future, (header, payload))


def _set(future: Future[Answered], value: Answered | PlaceLost) -> None:
    try:
        if isinstance(value, PlaceLost):
            future.set_exception(value)
        else:
            future.set_result(value)
    except InvalidStateError:
        pass  # it was answered meanwhile


def _raised(name: str, error: dict[str, Any]) -> InfrastructureError:
    return InfrastructureError(f"{name}: {error.get('what')}", hint=error.get("hint"), log=error.get("log"))
