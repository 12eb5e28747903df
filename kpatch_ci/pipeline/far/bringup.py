# SPDX-License-Identifier: GPL-2.0-or-later
"""Brings a host up: it gets this machine's tool root, byte for byte."""

from __future__ import annotations

import time
from collections.abc import Callable

from kpatch_ci.debian import transport
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.hosts import Host
from kpatch_ci.pipeline.far.connect import Joined, Start, faults, join, over_ssh
from kpatch_ci.pipeline.far.sending import Sender
from kpatch_ci.pipeline.places import PlaceLost
from kpatch_ci.store.artifacts import ArtifactStore

LOOK_TIMEOUT = 300.0
UNPACK_TIMEOUT = 1200.0
SAY_EVERY = 10.0
"""Seconds between two lines about a long transfer."""
Say = Callable[[str], None]


def bring_up(host: Host, tools: ToolRoot, store: ArtifactStore, say: Say, *, begin: Start = over_ssh) -> None:
    """See to it that the host can do what this machine does. Killed in the middle, it goes on where it was.

    Says what it does. Raises InfrastructureError where the host cannot be brought up, with what is in the way.
    """
    joined = join(host, tools.suite, begin=begin)
    try:
        if _alike(joined, tools):
            say(f"{host.name} has our tool root, byte for byte")
        else:
            _send_tools(joined, tools, store, say)
    except PlaceLost as error:
        raise InfrastructureError(
            f"{host.name} was lost: {error}", hint="the same command goes on where it stopped"
        ) from error
    finally:
        joined.link.close()
    again = join(host, tools.suite, begin=begin)
    again.link.close()
    wrong = faults(again, tools)
    if wrong:
        raise InfrastructureError(wrong)
    say(f"{host.name} is ready: {host.slots or again.hello['cores']} slots")


def _alike(joined: Joined, tools: ToolRoot) -> bool:
    """Whether its tool root is ours; where versions are the same, contents are compared."""
    if joined.hello["tools"] != tools.fingerprint:
        return False
    there = joined.link.ask({"op": "tools"}, timeout=LOOK_TIMEOUT)[0]["contents"]
    return bool(there == transport.contents_digest(tools.path.resolve()))


def _send_tools(joined: Joined, tools: ToolRoot, store: ArtifactStore, say: Say) -> None:
    name = joined.host.name
    say(f"{name}: packing the tool root (850 MB)")
    packed = transport.pack(tools, store)
    said = time.monotonic()

    def progress(there: int, whole: int) -> None:
        nonlocal said
        if time.monotonic() - said > SAY_EVERY:
            said = time.monotonic()
            say(f"{name}: {there / 1e6:.0f} of {whole / 1e6:.0f} MB")

    size = (packed.path / transport.PACKED).stat().st_size
    say(f"{name}: sending it ({size / 1e6:.0f} MB)")
    Sender(joined.link, store).send((transport.KIND, packed.key), progress)
    say(f"{name}: unpacking and verifying it")
    joined.link.ask({"op": "unpack", "key": packed.key}, timeout=UNPACK_TIMEOUT)
    store.drop(transport.KIND, packed.key)
