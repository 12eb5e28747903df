# SPDX-License-Identifier: GPL-2.0-or-later
"""``hosts:`` of pipeline.yaml, and which of them a command uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import pydantic

from kpatch_ci.config.entries import choices
from kpatch_ci.host.ssh import TARGET
from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.hosts import DEFAULT_WORK, Host, Login
from kpatch_ci.store.yamlmodel import Lines, Strict

HERE = "here"
"""This machine, where hosts are named."""
NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


def _target(value: str) -> str:
    if TARGET.fullmatch(value) is None:
        raise ValueError("[USER@]HOST[:PORT]")
    return value


class HostFile(Strict):
    """One machine. What it does not say is as ~/.ssh/config has it. There is no key for a password, and there will be none."""

    address: Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9][\w.:-]*$")]
    user: Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9_][\w.-]*$")] | None = None
    port: Annotated[int, pydantic.Field(ge=1, le=65535)] | None = None
    key: str | None = None
    """File of a private key; below the pipeline file's directory unless it starts with / or ~."""
    jump: Annotated[str, pydantic.AfterValidator(_target)] | None = None
    work: Annotated[str, pydantic.Field(pattern=r"^[~/]")] = DEFAULT_WORK
    """Directory there, at least 2 GB, and 3 GB more where it builds: tools, kernels, snapshots, source."""
    slots: Annotated[int, pydantic.Field(ge=1, le=1024)] | None = None
    """Stages at once; as many as it has CPUs unless said."""
    uses: Annotated[tuple[Literal["build", "guest"], ...], pydantic.Field(alias="for", min_length=1)] = ("guest",)
    """What it does: kernel builds, boots and replicates."""


def read_hosts(found: Mapping[str, HostFile], root: Path, lines: Lines) -> tuple[Host, ...]:
    """The file's hosts. Raises UserErrors."""
    errors = [
        UserError(f"hosts: '{name}' cannot be a host's name", where=lines.where(("hosts", name)), expected=f"a word, and not '{HERE}'")
        for name in found
        if name == HERE or not NAME.fullmatch(name)
    ]  # fmt: skip
    if errors:
        raise UserErrors(errors)
    return tuple(_host(name, one, root) for name, one in found.items())


def _host(name: str, one: HostFile, root: Path) -> Host:
    key = root / Path(one.key).expanduser() if one.key else None
    login = Login(one.address, one.user, one.port, key, one.jump)
    return Host(name, login, one.work, one.slots, frozenset(one.uses))


def choose_hosts(hosts: Sequence[Host], wanted: Iterable[str] | None) -> tuple[tuple[Host, ...], bool]:
    """The hosts that are used, and whether this machine does what they can do, too. All of both unless some are named.

    Raises UserError.
    """
    known = [HERE, *(host.name for host in hosts)]
    names = known if wanted is None else list(dict.fromkeys(wanted))
    for name in names:
        if name not in known:
            raise UserError(
                f"no host '{name}'", where="--on", expected=f"of `hosts:` in pipeline.yaml: {choices(name, known)}"
            )
    chosen = tuple(host for host in hosts if host.name in names)
    for host in chosen:
        if host.login.key is not None and not host.login.key.is_file():
            raise UserError(
                f"no key file {host.login.key}",
                where=f"hosts: {host.name}",
                expected="a private key's file, or none: your agent's keys",
            )
    return chosen, HERE in names
