# SPDX-License-Identifier: GPL-2.0-or-later
"""The only door to subprocesses.

Every child runs in a session of its own, so that ending it ends its children too; every one has a timeout; none
sees this process's standard input. ``kill_all`` ends whatever is left (Ctrl-C), ``kill_of`` what one owner of several has started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

from kpatch_ci.model.errors import InfrastructureError

TERM_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
TAIL_LINES = 30
PIPE = subprocess.PIPE

_live: set[Process] = set()
_live_lock = threading.Lock()
_stopping = threading.Event()
_mine = threading.local()
_over: set[str] = set()
"""Owners whose children were ended, and who start no more."""


@dataclass(frozen=True, slots=True)
class Completed:
    """How a command ended. ``output`` is what it printed (stdout and stderr), or the log's tail where a log file was given."""

    argv: tuple[str, ...]
    returncode: int
    """Exit status; negative: the signal that ended it."""
    seconds: float
    timed_out: bool
    output: str
    log: Path | None = None

    @property
    def ok(self) -> bool:
        """Exit status 0 in time."""
        return self.returncode == 0 and not self.timed_out

    def explain(self) -> str:
        """One line: why this is not ok."""
        name = Path(self.argv[0]).name
        if self.timed_out:
            return f"{name} was ended after {self.seconds:.0f} s (timeout)"
        if self.returncode < 0:
            return f"{name} was ended by {signal.Signals(-self.returncode).name}"
        return f"{name} failed with exit status {self.returncode}"


class Process:
    """A running child in a session of its own; a context manager that never leaves it behind."""

    def __init__(
        self,
        argv: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: IO[bytes] | int | None = subprocess.DEVNULL,
        stdout: IO[bytes] | int | None = subprocess.DEVNULL,
        pass_fds: Sequence[int] = (),
        last: bool = False,
    ) -> None:
        """Start ``argv``. Raises InfrastructureError when there is no such program or the machine has no room for it.

        ``last``: even after ``kill_all``, for what brings another machine back.
        """
        self.argv = tuple(str(a) for a in argv)
        self.owner = _owner()
        if is_stopping() and not last:
            raise InfrastructureError(f"not starting {self.argv[0]}: stopping")
        self.started = time.monotonic()
        with _uninterrupted():
            self._popen = _popen(self.argv, cwd=cwd, env=env, stdin=stdin, stdout=stdout, pass_fds=pass_fds)
            with _live_lock:
                _live.add(self)
        if is_stopping() and not last:  # kill_all() may have run between the check above and the registration
            self.kill()

    @property
    def pid(self) -> int:
        """Process id, which is its process group's and session's too."""
        return self._popen.pid

    @property
    def stdout(self) -> IO[bytes]:
        """The read end, where the child was started with ``stdout=PIPE``."""
        if self._popen.stdout is None:
            raise ValueError("this child was not started with stdout=PIPE")
        return self._popen.stdout

    @property
    def seconds(self) -> float:
        """Wall time since the start."""
        return time.monotonic() - self.started

    def poll(self) -> int | None:
        """Exit status, or None while it runs."""
        return self._popen.poll()

    def wait(self, timeout: float | None = None) -> int | None:
        """Exit status, or None when ``timeout`` seconds pass first."""
        try:
            return self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def terminate(self) -> None:
        """Ask the whole process group to end (SIGTERM), and return at once."""
        if self._popen.poll() is None:
            self._signal(signal.SIGTERM)

    def kill(self, grace: float = TERM_GRACE) -> None:
        """End the whole process group: SIGTERM, then SIGKILL after ``grace`` seconds."""
        if self._popen.poll() is None and grace > 0:
            self._signal(signal.SIGTERM)
            self.wait(grace)
        self._signal(signal.SIGKILL)
        self._popen.wait()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._popen.poll() is None:
                self.kill()
            if self._popen.stdout is not None:
                self._popen.stdout.close()
        finally:
            with _live_lock:
                _live.discard(self)


def _popen(
    argv: tuple[str, ...],
    *,
    cwd: Path | None,
    env: Mapping[str, str] | None,
    stdin: IO[bytes] | int | None,
    stdout: IO[bytes] | int | None,
    pass_fds: Sequence[int],
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            argv,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )
    except FileNotFoundError as error:
        raise InfrastructureError(
            f"{argv[0]}: no such program", hint="./kpatch-ci doctor says what is missing"
        ) from error
    except OSError as error:
        raise InfrastructureError(f"cannot start {argv[0]}: {error.strerror}") from error


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until a child that was just forked is known to ``kill_all``."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python runs signal handlers in the main thread only
        return
    caught: list[tuple[int, FrameType | None]] = []
    handlers = {n: h for n in (signal.SIGINT, signal.SIGTERM) if callable(h := signal.getsignal(n))}
    for number in handlers:
        signal.signal(number, lambda n, frame: caught.append((n, frame)))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for number_caught, frame in caught:
        handlers[signal.Signals(number_caught)](number_caught, frame)


def kill_all() -> int:
    """End every child that still runs, refuse new ones, and return how many there were."""
    _stopping.set()
    with _live_lock:
        processes = list(_live)
    return _end(processes)


@contextlib.contextmanager
def owned(owner: str) -> Iterator[None]:
    """What this thread starts meanwhile is ``owner``'s: one of several whose work this process does."""
    before = _owner()
    _mine.owner = owner
    try:
        yield
    finally:
        _mine.owner = before


def kill_of(owner: str) -> int:
    """As ``kill_all``, for one owner's children; those of others, and of nobody, live on."""
    with _live_lock:
        _over.add(owner)
        processes = [process for process in _live if process.owner == owner]
    return _end(processes)


def _owner() -> str:
    return getattr(_mine, "owner", "")


def _end(processes: Sequence[Process]) -> int:
    for process in processes:
        process.terminate()
    end = time.monotonic() + 0.5  # one grace for all of them, not one each
    for process in processes:
        process.kill(grace=max(0.0, end - time.monotonic()))
    return len(processes)


def is_stopping() -> bool:
    """Whether ``kill_all`` was called, or ``kill_of`` for the owner of this thread's work."""
    return _stopping.is_set() or _owner() in _over


def check_stopping() -> None:
    """For work that is no child of ours and takes long: raises InfrastructureError once ``is_stopping``."""
    if is_stopping():
        raise InfrastructureError("stopping")


def go_on() -> None:
    """Take new children again after ``kill_all``: for a verb that gives up one run and begins another."""
    _stopping.clear()


def run(
    argv: Sequence[str | Path],
    *,
    timeout: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    stdin: bytes | None = None,
    last: bool = False,
) -> Completed:
    """Run a command to its end, or end it after ``timeout`` seconds; ``last``: even after ``kill_all``.

    What it prints goes to ``log`` when there is one, else it is returned. Raises InfrastructureError only when it cannot
    be started; how it ended is a value.
    """
    with _sink(log) as sink, _source(stdin) as source:
        with Process(argv, cwd=cwd, env=env, stdin=source, stdout=sink, last=last) as process:
            code = process.wait(timeout)
            timed_out = code is None
            if timed_out:
                process.kill()
                code = process.poll()
            seconds = process.seconds
        sink.flush()
        if log is None:
            sink.seek(0)
            output = sink.read().decode(errors="replace")
        else:
            output = tail(log)
    return Completed(process.argv, code if code is not None else -9, seconds, timed_out, output, log)


@contextlib.contextmanager
def _sink(log: Path | None) -> Iterator[IO[bytes]]:
    import tempfile  # noqa: PLC0415 (slow to import, seldom needed)

    if log is None:
        with tempfile.TemporaryFile() as stream:
            yield stream
    else:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as stream:
            yield stream


@contextlib.contextmanager
def _source(data: bytes | None) -> Iterator[IO[bytes] | int]:
    import tempfile  # noqa: PLC0415

    if data is None:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as stream:
        stream.write(data)
        stream.seek(0)
        yield stream


def tail(path: Path, lines: int = TAIL_LINES, limit: int = 64 * 1024) -> str:
    """Last ``lines`` lines of a file (of its last ``limit`` bytes); empty where there is no such file."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - limit))
            data = stream.read()
    except FileNotFoundError:
        return ""
    return "\n".join(data.decode(errors="replace").splitlines()[-lines:])
