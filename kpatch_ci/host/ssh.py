# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections to other machines over SSH. Host keys are checked, at every hop; no password is asked for, kept or sent."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path
from typing import Any

from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.hosts import Login

CONNECT_TIMEOUT = 8
KEEPALIVE = 5
"""Seconds between packets that keep firewalls from forgetting an idle connection."""
SYSTEM_KNOWN = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
_PART = r"[A-Za-z0-9][\w.-]*"
TARGET = re.compile(rf"(?:(?P<user>[A-Za-z0-9_][\w.-]*)@)?(?P<address>{_PART})(?::(?P<port>\d+))?")


def parse_target(text: str, where: str) -> Login:
    """``[USER@]HOST[:PORT]``. Raises UserError."""
    found = TARGET.fullmatch(text)
    if found is None:
        raise UserError(f"no host: {text}", where=where, expected="[USER@]HOST[:PORT]")
    return Login(found["address"], found["user"], int(found["port"]) if found["port"] else None)


def connection(login: Login) -> Any:
    """A fabric Connection, not open yet, that refuses unknown host keys and knows no password. ~/.ssh/config is read."""
    import fabric  # noqa: PLC0415 (paramiko takes long to import)

    options: dict[str, Any] = {"banner_timeout": CONNECT_TIMEOUT, "auth_timeout": CONNECT_TIMEOUT}
    if login.key is not None:
        options["key_filename"] = str(login.key.expanduser())
    gateway = connection(_jump(login)) if login.jump else None
    made = fabric.Connection(
        login.address,
        user=login.user,
        port=login.port,
        gateway=gateway,
        connect_timeout=CONNECT_TIMEOUT,
        forward_agent=False,
        connect_kwargs=options,
    )
    hop = made
    while hop is not None and not isinstance(
        hop, str
    ):  # fabric makes the jumps of ~/.ssh/config itself, and trusts them
        _check_keys(hop)
        hop = hop.gateway
    return made


def _jump(login: Login) -> Login:
    assert login.jump is not None  # noqa: S101 (what calls this)
    target = parse_target(login.jump, "jump")
    return Login(target.address, target.user, target.port, login.key)


def _check_keys(made: Any) -> None:
    import paramiko  # noqa: PLC0415

    client = made.client
    client.load_system_host_keys()
    named = made.ssh_config.get("userknownhostsfile", "").split()
    for name in (*SYSTEM_KNOWN, *named):
        with contextlib.suppress(OSError):
            client.load_system_host_keys(str(Path(name).expanduser()))
    client.set_missing_host_key_policy(paramiko.RejectPolicy())


def require_key(login: Login, name: str) -> None:
    """Raises InfrastructureError where the key's file is not there: paramiko would try others, and say that those are not let in."""
    if login.key is not None and not login.key.expanduser().is_file():
        raise InfrastructureError(
            f"{name}: no key file {login.key}",
            hint="`key:` is a private key's file; without it your agent's keys are tried",
        )


def open_connection(made: Any, name: str) -> None:
    """Log in. Raises InfrastructureError that says what is in the way, and what to do."""
    import paramiko  # noqa: PLC0415

    ssh = ssh_command(made)
    hint = f"`{ssh} true` must work without a question: a key in your agent, the host in known_hosts"
    try:
        made.open()
        made.transport.set_keepalive(KEEPALIVE)
    except paramiko.BadHostKeyException as error:
        what = f"{name} shows another host key than the one in known_hosts: it is another machine, or somebody is in between"
        fix = f"if it was installed anew: `ssh-keygen -R {shlex.quote(error.hostname)}`, then `{ssh} true`, comparing its key"
        raise InfrastructureError(what, hint=fix) from error
    except paramiko.PasswordRequiredException as error:
        what = f"the key for {name} has a passphrase, and is in no agent"
        raise InfrastructureError(what, hint="eval $(ssh-agent) && ssh-add") from error
    except paramiko.AuthenticationException as error:
        raise InfrastructureError(f"{name} does not let you in with a key: {error}", hint=hint) from error
    except paramiko.SSHException as error:
        if "not found in known_hosts" in str(error):
            fix = f"`{ssh} true` once, and compare the key that it shows with the machine's own"
            raise InfrastructureError(f"{name}: its host key is not in known_hosts", hint=fix) from error
        raise InfrastructureError(f"cannot talk to {name}: {error}", hint=hint) from error
    except (OSError, EOFError) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InfrastructureError(f"cannot reach {name}: {said}", hint=hint) from error


def ssh_command(made: Any) -> str:
    """What a person types to get there."""
    parts = ["ssh"]
    if getattr(made, "port", 22) not in (None, 22):
        parts += ["-p", str(made.port)]
    gateway = getattr(made, "gateway", None)
    if gateway is not None and not isinstance(gateway, str):
        parts += ["-J", f"{gateway.user}@{gateway.host}:{gateway.port}"]
    user = getattr(made, "user", None)
    return shlex.join([*parts, f"{user}@{made.host}" if user else str(made.host)])


class ChannelPipe:
    """A remote command's standard input and output. See Pipe, which it is one of."""

    def __init__(self, made: Any, command: str, timeout: float) -> None:
        """Start ``command``. Raises InfrastructureError."""
        import paramiko  # noqa: PLC0415

        self._made = made
        self._said = b""
        try:
            self._channel = made.transport.open_session(timeout=timeout)
            self._channel.settimeout(timeout)
            self._channel.exec_command(command)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise InfrastructureError(f"cannot start a command there: {str(error) or type(error).__name__}") from error

    def patient(self) -> None:
        """From here on reads and writes wait as long as it takes: whoever watches closes the pipe."""
        self._channel.settimeout(None)

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes; none at the end."""
        data: bytes = self._channel.recv(size)
        self._listen()
        return data

    def write(self, data: bytes) -> None:
        """All of it."""
        self._channel.sendall(data)

    def said(self) -> str:
        """The last 4 KiB of what the command has written on its standard error."""
        self._listen()
        return self._said.decode(errors="replace")

    def _listen(self) -> None:
        """Both streams share one window: what is left unread on the one would in the end stop the other."""
        while self._channel.recv_stderr_ready():
            self._said = (self._said + self._channel.recv_stderr(64 * 1024))[-4096:]

    def close(self) -> None:
        """End the command's input, and the connection."""
        with contextlib.suppress(Exception):
            self._channel.close()
        with contextlib.suppress(Exception):
            self._made.close()
