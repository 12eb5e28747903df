# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's monitor: take a snapshot (wait until the guest pauses itself, save it, end QEMU), or ask for the accelerator."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from qemu.qmp import EventListener, QMPClient, QMPError

from kpatch_ci.model.errors import InfrastructureError

COMMAND_TIMEOUT = 30.0
SAVE_TIMEOUT = 300.0
END_TIMEOUT = 5.0
POLL = 0.05

_PAUSED = "STOP"
"""The agent lets a watchdog expire when it is ready; -action watchdog=pause stops the guest right there."""
_CAPABILITIES = ("mapped-ram", "events")

T = TypeVar("T")
Check = Callable[[], str | None]
"""Says why a guest is to be given up, or None."""


def save_when_paused(channel: socket.socket, uri: str, *, check: Check, ready: Check) -> str | None:
    """Save the guest to ``uri`` once it has paused, and quit QEMU. None when that was done, else the reason why not.

    ``check`` is asked every POLL seconds while the guest runs, ``ready`` once it has paused: what they return ends it.
    Raises InfrastructureError when QEMU does not answer or cannot save.
    """
    return asyncio.run(_save_when_paused(channel, uri, check, ready))


def uses_kvm(channel: socket.socket, *, check: Check) -> bool | str:
    """Whether QEMU runs its guest on KVM, or what ``check`` says first. It is asked once, and the monitor left then.

    Raises InfrastructureError when QEMU does not answer.
    """
    return asyncio.run(_uses_kvm(channel, check))


async def _uses_kvm(channel: socket.socket, check: Check) -> bool | str:
    async def ask(client: QMPClient) -> bool | str:
        reason = await _checked(client.connect(channel), check)
        if reason:
            return reason
        told: Any = await _command(client, "query-kvm", {})
        return bool(told["enabled"])

    return await _with_monitor(ask, check)


async def _save_when_paused(channel: socket.socket, uri: str, check: Check, ready: Check) -> str | None:
    listener = EventListener((_PAUSED, "SHUTDOWN", "MIGRATION"))

    async def save(client: QMPClient) -> str | None:
        with client.listen(listener):  # from the start: the guest may pause as soon as the monitor is there
            reason = await _checked(client.connect(channel), check)
            reason = reason or await _until_paused(listener, check) or ready()
            if reason is None:
                await _save(client, listener, uri, check)
                await _in_time(client.execute("quit"), COMMAND_TIMEOUT, "quit")
            return reason

    return await _with_monitor(save, check)


async def _with_monitor(use: Callable[[QMPClient], Awaitable[T]], check: Check) -> T | str:
    """The result of ``use``, or what ``check`` says once QEMU has hung up. Raises InfrastructureError where it says nothing."""
    logging.getLogger("qemu.qmp").setLevel(logging.CRITICAL)  # it logs what it raises as well
    client = QMPClient()
    try:
        return await use(client)
    except (QMPError, AssertionError) as error:  # it asserts that nobody hangs up right after the greeting
        reason = await _last_word(check)
        if reason:
            return reason
        raise InfrastructureError(f"QEMU's monitor does not answer: {error}") from error
    finally:
        await _disconnect(client)


async def _last_word(check: Check) -> str | None:
    """What ``check`` says once QEMU has really ended, which is a moment after it hung up."""
    for _ in range(round(END_TIMEOUT / POLL)):
        reason = check()
        if reason:
            return reason
        await asyncio.sleep(POLL)
    return None


async def _checked(work: Coroutine[Any, Any, T], check: Check) -> T | str:
    """The result of ``work``, or what ``check`` says first."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=POLL)
            reason = None if task.done() else check()
            if reason:
                return reason
        return task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _until_paused(listener: EventListener, check: Check) -> str | None:
    event = await _checked(listener.get(), check)
    if isinstance(event, str):
        return event
    return None if event["event"] == _PAUSED else check() or "the guest ended before it was ready"


async def _save(client: QMPClient, listener: EventListener, uri: str, check: Check) -> None:
    wanted = [{"capability": name, "state": True} for name in _CAPABILITIES]
    await _command(client, "migrate-set-capabilities", {"capabilities": wanted})
    await _command(client, "migrate", {"uri": uri})
    state = ""
    while state not in ("completed", "failed"):
        event = await _in_time(_checked(listener.get(), check), SAVE_TIMEOUT, "save the guest")
        if isinstance(event, str):
            raise InfrastructureError(f"QEMU could not save the guest: {event}")
        data: Any = event.get("data", {})
        state = str(data.get("status", ""))
    if state == "failed":
        told: Any = await _command(client, "query-migrate", {})
        raise InfrastructureError(
            f"QEMU could not save the guest: {told.get('error-desc', 'no reason given')}",
            hint="is there space left on the disk that holds the cache?",
        )


async def _command(client: QMPClient, name: str, arguments: dict[str, object]) -> object:
    return await _in_time(client.execute(name, arguments), COMMAND_TIMEOUT, name)


async def _in_time(work: Awaitable[T], seconds: float, what: str) -> T:
    try:
        return await asyncio.wait_for(work, seconds)
    except TimeoutError as error:
        raise InfrastructureError(f"QEMU did not {what} within {seconds:.0f} s") from error


async def _disconnect(client: QMPClient) -> None:
    """Whatever the connection's end was, it has been reported already."""
    with contextlib.suppress(QMPError, OSError, EOFError, TimeoutError, AssertionError):
        await asyncio.wait_for(client.disconnect(), COMMAND_TIMEOUT)
