# SPDX-License-Identifier: GPL-2.0-or-later
"""What stands at the other end of a connection: takes artifacts, does calls, says that it is alive.

When the connection ends, however it ends, every child is killed and the process is gone within seconds.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kpatch_ci import process
from kpatch_ci.model.errors import InfrastructureError, KpatchError
from kpatch_ci.pipeline.calls import CALLS, Call, decode, encode
from kpatch_ci.pipeline.far.frames import BEAT, DEAD, Cut, Frames, Header, Heart, squeezed, unsqueezed
from kpatch_ci.pipeline.worker import Worker
from kpatch_ci.store.parcels import Incoming, checked, parcel_of

STOP_GRACE = 8.0
"""Seconds that calls which were given up may take to end."""
READ = 512 * 1024
"""Bytes of a blob that are read for one question, before they are packed."""
PAYLOAD = "payload"
"""Of an answer, what follows its header."""
Task = Callable[[Header], Mapping[str, Any]]


class Server:
    """Serves one connection. ``worker`` is None where this machine cannot do calls yet; ``tasks`` are further long operations."""

    def __init__(self, worker: Worker | None, incoming: Incoming, frames: Frames, tasks: Mapping[str, Task]) -> None:
        self._worker, self._incoming, self._frames = worker, incoming, frames
        self._tasks: dict[str, Task] = {"call": self._call, **tasks}
        self._at_work = 0
        self._change = threading.Condition()
        self._broken: dict[str, str] = {}
        self._shown: dict[str, Path] = {}
        """Blobs of the artifacts that were asked for."""
        self._inline: dict[str, Callable[[Header, bytes], Mapping[str, Any] | None]] = {
            "blob": self._blob,
            "offer": self._offer,
            "commit": self._commit,
            "parcel": self._announce,
            "read": self._read,
            "stop": self._stop,
            "beat": lambda _, __: None,
        }

    def serve(self, *, beat: float = BEAT, dead: float = 2 * DEAD) -> None:
        """Until the connection ends. Ends every child then."""
        heart = Heart(self._frames, self._frames.pipe.close, beat=beat, dead=dead)
        try:
            while (frame := self._frames.receive()) is not None:
                self._take(*frame)
        except Cut:
            pass  # as when it ends between two frames: nobody is there to be told
        finally:
            heart.stop()
            self._incoming.close()
            process.kill_all()
            if self._worker is not None:
                self._worker.turns.close()

    def _take(self, header: Header, payload: bytes) -> None:
        op = str(header.get("op"))
        if op in self._inline:
            self._answer(header, lambda: self._inline[op](header, payload))
        elif op in self._tasks:
            with self._change:
                self._at_work += 1
            threading.Thread(target=self._work, args=(self._tasks[op], header), daemon=True, name=op).start()
        else:
            self._answer(header, lambda: _unknown(op))

    def _work(self, task: Task, header: Header) -> None:
        try:
            self._answer(header, lambda: task(header))
        finally:
            with self._change:
                self._at_work -= 1
                self._change.notify_all()

    def _answer(self, header: Header, do: Callable[[], Mapping[str, Any] | None]) -> None:
        answer: Mapping[str, Any] | None
        try:
            answer = do()
        except KpatchError as error:
            said = {name: getattr(error, name, None) for name in ("what", "hint", "log")}
            answer = {"error": {**said, "what": said["what"] or str(error)}}
        except Exception as error:  # a bug of ours is told to whoever asked
            answer = {"error": {"what": f"{type(error).__name__}: {error}", "log": traceback.format_exc(), "bug": True}}
        if answer is not None and "id" in header:
            self._send({**answer, "id": header["id"]})

    def _send(self, answer: Header) -> None:
        try:
            payload = answer.pop(PAYLOAD, b"")
            self._frames.send(answer, payload)
        except InfrastructureError as error:
            self._send({"id": answer["id"], "error": {"what": f"its answer has {error.what}"}})
        except Cut:
            self._frames.pipe.close()  # and with it serve() ends

    def _call(self, header: Header) -> Mapping[str, Any]:
        if self._worker is None:
            raise InfrastructureError("it has no tool root")
        call: Call = decode(CALLS[header["kind"]], header["call"])
        lacking = self._worker.missing(call)
        if lacking:
            return {"lacking": lacking}
        return {"answer": encode(self._worker.do(call))}

    def _offer(self, header: Header, _: bytes) -> Mapping[str, Any]:
        parcel = checked(*_parcel(header))
        used_up = self._worker is not None and self._worker.is_used_up(parcel)
        return {"needed": {} if used_up else self._incoming.needed(parcel)}

    def _announce(self, header: Header, _: bytes) -> Mapping[str, Any]:
        """An artifact of ours, announced."""
        if self._worker is None:
            raise InfrastructureError("it has no tool root")
        store = self._worker.store
        parcel = parcel_of(store, str(header["kind"]), str(header["key"]))
        place = store.place(parcel.kind, parcel.key)
        self._shown |= {one["sha256"]: place / name for name, one in parcel.manifest["files"].items()}
        return {"manifest": parcel.manifest, "modes": parcel.modes}

    def _read(self, header: Header, _: bytes) -> Mapping[str, Any]:
        """Some bytes of a blob that was announced."""
        path = self._shown.get(str(header["sha"]))
        if path is None:
            raise InfrastructureError("a blob that was not announced")
        try:
            with path.open("rb") as stream:
                stream.seek(int(header["offset"]))
                data = stream.read(READ)
        except OSError as error:
            raise InfrastructureError(f"cannot read {path.name}: {error.strerror}") from error
        packed, payload = squeezed(data)
        return {"zlib": packed, PAYLOAD: payload}

    def _commit(self, header: Header, _: bytes) -> Mapping[str, Any]:
        parcel = checked(*_parcel(header))
        broken = next((self._broken.pop(sha) for sha in parcel.blobs if sha in self._broken), None)
        if broken:
            raise InfrastructureError(broken)
        self._incoming.admit(parcel)
        return {}

    def _blob(self, header: Header, payload: bytes) -> None:
        """Not answered: what went wrong is said when the artifact is to be made of it."""
        sha = str(header["sha"])
        try:
            data = unsqueezed(header, payload)
            if sha not in self._broken:
                self._incoming.append(sha, int(header["offset"]), data)
        except InfrastructureError as error:
            self._broken[sha] = str(error)

    def _stop(self, _: Header, __: bytes) -> None:
        """End what is at work; what is asked for after this is done as ever."""
        process.kill_all()
        with self._change:
            self._change.wait_for(lambda: self._at_work == 0, STOP_GRACE)
        process.go_on()


def _parcel(header: Header) -> tuple[str, str, Any, Any]:
    return str(header.get("kind")), str(header.get("key")), header.get("manifest"), header.get("modes")


def _unknown(op: str) -> Mapping[str, Any]:
    raise InfrastructureError(f"it knows no '{op}': it is of another version")
