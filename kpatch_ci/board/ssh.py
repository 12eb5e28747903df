# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands on a board over SSH. Host keys are checked, no password is known or asked for, and every command has a time limit.

The limit holds at both ends: here the channel is given up, and there `timeout` ends what was started.
"""

from __future__ import annotations

import contextlib
import logging
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from kpatch_ci import process
from kpatch_ci.model.board import Login
from kpatch_ci.model.errors import InfrastructureError

POLL = 0.05
GRACE = 5.0
"""Seconds that this end waits longer than the other."""
CHUNK = 1 << 15
LOOK = 1.0
"""Seconds between two looks at what else might say that nothing will come."""
KEEPALIVE = 15
"""Seconds between two words to a silent board: one that was reset says so then."""
BEGINS = "kpatch-ci-begins"
"""What a command's output begins after: a login shell's own files may print something first."""
PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


class SilentError(Exception):
    """Nobody answers there, or the connection broke: not yet, not any more. Never leaves this package."""


class BrokenError(SilentError):
    """The connection broke: who was there may be there still."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a remote command ended."""

    code: int
    output: str
    """What it printed on stdout."""
    errors: str

    @property
    def ok(self) -> bool:
        """Exit status 0."""
        return self.code == 0

    def explain(self) -> str:
        """Its last words, or its exit status."""
        last = [line.strip() for line in (self.errors or self.output).splitlines() if line.strip()]
        return last[-1][:300] if last else f"exit status {self.code}"


Watch = Callable[[], str | None]
"""Why nothing more will come, where that is known."""


class Shell(Protocol):
    """An open connection."""

    def run(
        self, script: str, *, timeout: float, stdin: bytes = b"", last: bool = False, watch: Watch | None = None
    ) -> Answer:
        """Run a POSIX shell script as root. Raises SilentError when the connection breaks, time is up, or ``watch`` says why.

        ``last``: even after Ctrl-C, for what brings the board back.
        """

    def close(self) -> None:
        """Hang up."""


Connect = Callable[[Login, float], Shell]
"""Log in within so many seconds. Raises SilentError where nobody answers, InfrastructureError where one is not let in."""


def connect(login: Login, timeout: float) -> Shell:
    """See Connect."""
    import paramiko  # noqa: PLC0415 (takes long to import)

    # it logs every refused connection with its traceback, and a board that boots refuses many
    logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)
    made = _connection(login, timeout)
    name = f"board {login}"
    try:
        made.open()
    except paramiko.BadHostKeyException as error:
        _close(made)
        what = f"{name} shows another host key than known_hosts has ({error.key.get_name()}): it is not spoken to"
        hint = f"is it the right board? If its key was changed on purpose: ssh-keygen -R '{_known_as(login)}', then log in once"
        raise InfrastructureError(what, hint=hint) from error
    except (paramiko.AuthenticationException, paramiko.PasswordRequiredException) as error:
        _close(made)
        if "timeout" in str(error).lower():  # a board that is slow says neither yes nor no
            raise SilentError(str(error)) from error
        raise InfrastructureError(f"{name} does not let you in with a key: {error}", hint=_hint(login)) from error
    except paramiko.SSHException as error:
        _close(made)
        if "not found in known_hosts" in str(error):
            raise InfrastructureError(f"the host key of {name} is not known: {error}", hint=_hint(login)) from error
        raise SilentError(str(error)) from error
    except (OSError, EOFError) as error:
        _close(made)
        raise SilentError(getattr(error, "strerror", None) or str(error) or type(error).__name__) from error
    return _Shell(made, login)


def _known_as(login: Login) -> str:
    return login.address if login.port == 22 else f"[{login.address}]:{login.port}"


def _hint(login: Login) -> str:
    parts = [
        "ssh",
        "-p",
        str(login.port),
        *(["-i", login.key] if login.key else []),
        *(["-J", login.jump] if login.jump else []),
    ]
    if login.known_hosts:
        parts += ["-o", f"UserKnownHostsFile={login.known_hosts}"]
    return f"`{shlex.join([*parts, f'{login.user}@{login.address}', 'true'])}` must work without a question"


def _connection(login: Login, timeout: float) -> Any:
    import fabric  # noqa: PLC0415
    import paramiko  # noqa: PLC0415

    options: dict[str, Any] = {"banner_timeout": timeout, "auth_timeout": timeout}
    if login.key:
        options |= {"key_filename": login.key, "allow_agent": False, "look_for_keys": False}
    gateway = None
    if login.jump:
        gateway = fabric.Connection(login.jump, connect_timeout=timeout, forward_agent=False)
        _only_known(gateway, None, paramiko)
    made = fabric.Connection(
        login.address,
        user=login.user,
        port=login.port,
        gateway=gateway,
        connect_timeout=max(1, round(timeout)),
        forward_agent=False,
        connect_kwargs=options,
    )
    _only_known(made, login.known_hosts, paramiko)
    return made


def _only_known(made: Any, known_hosts: str | None, paramiko: Any) -> None:
    if known_hosts:
        made.client.load_host_keys(known_hosts)
        made.client._host_keys_filename = None
    else:
        made.client.load_system_host_keys()
    made.client.set_missing_host_key_policy(paramiko.RejectPolicy())


def _close(made: Any) -> None:
    with contextlib.suppress(Exception):
        made.close()
    with contextlib.suppress(Exception):
        if made.gateway:
            made.gateway.close()


class _Shell:
    """A connection of fabric's, whose channels are polled: so a broken line or Ctrl-C is noticed at once."""

    def __init__(self, made: Any, login: Login) -> None:
        self._made, self._login = made, login
        made.client.get_transport().set_keepalive(KEEPALIVE)

    def run(
        self, script: str, *, timeout: float, stdin: bytes = b"", last: bool = False, watch: Watch | None = None
    ) -> Answer:
        import paramiko  # noqa: PLC0415

        # SSH_CONNECTION is lost on the way through sudo, and is wanted by who asks for the board's address.
        inner = f'export PATH={PATH} LC_ALL=C KPCI_CONNECTION="$1"; echo {BEGINS}; {script}'
        bounded = f'timeout {max(1, round(timeout))} sh -c {shlex.quote(inner)} sh "$SSH_CONNECTION"'
        # A kernel under test knows the user as root, and has no sudo.
        root = "" if self._login.user == "root" else '$([ "$(id -u)" = 0 ] || echo sudo -n) '
        try:
            channel = self._made.client.get_transport().open_session(timeout=timeout)
            try:
                channel.settimeout(timeout)
                channel.exec_command(f"sh -c {shlex.quote(f'PATH={PATH}; export PATH; exec {root}{bounded}')}")
                end = time.monotonic() + timeout + GRACE
                return _Talk(channel, memoryview(stdin), end, last, watch).answer()
            finally:
                channel.close()
        except (paramiko.SSHException, OSError, EOFError, AttributeError) as error:
            raise BrokenError(str(error) or type(error).__name__) from error

    def close(self) -> None:
        _close(self._made)


@dataclass(slots=True)
class _Talk:
    """Feeding a command and hearing it out."""

    channel: Any
    stdin: memoryview
    deadline: float
    last: bool
    watch: Watch | None
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    _shut: bool = False
    _ended: float = 0.0
    _looked: float = 0.0

    def answer(self) -> Answer:
        """How it ended; raises SilentError where that will not be known."""
        while True:
            now = time.monotonic()
            over, closed = self._over(now), self.channel.closed  # before the last look: what came until then is heard
            moved = self._move()
            if over and not moved:
                return self._end()
            if closed and not moved:
                raise BrokenError("the connection broke")
            self._give_up(now)
            if not moved:
                time.sleep(POLL)

    def _over(self, now: float) -> bool:
        """Whether it has ended and said all. What it left behind may hold its output open: that gets a second."""
        if not self.channel.exit_status_ready():
            return False
        self._ended = self._ended or now
        return bool(self.channel.eof_received) or now - self._ended > 1

    def _move(self) -> bool:
        """Whether anything went either way."""
        moved = False
        if self.channel.recv_ready():
            self.out += self.channel.recv(CHUNK)
            moved = True
        if self.channel.recv_stderr_ready():
            self.err += self.channel.recv_stderr(CHUNK)
            moved = True
        if self.stdin and self.channel.send_ready():
            self.stdin = self.stdin[self.channel.send(self.stdin[:CHUNK]) :]
            moved = True
        if not self.stdin and not self._shut:
            self.channel.shutdown_write()
            self._shut = True
        return moved

    def _give_up(self, now: float) -> None:
        if not self.last:
            process.check_stopping()
        if now > self.deadline:
            raise SilentError("no answer in time")
        if self.watch and now > self._looked + LOOK:
            self._looked = now
            lost = self.watch()
            if lost:
                raise SilentError(lost)

    def _end(self) -> Answer:
        code = int(self.channel.recv_exit_status())
        if code < 0:
            raise BrokenError("the connection broke")
        before, begins, output = self.out.decode(errors="replace").partition(f"{BEGINS}\n")
        return Answer(code, output if begins else before, self.err.decode(errors="replace"))
