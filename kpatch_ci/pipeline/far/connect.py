# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts become places: each is logged in to, given our code, asked what it is, and refused where it is not as we are."""

from __future__ import annotations

import base64
import platform
import shlex
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.host import ssh
from kpatch_ci.host.finding import BUILD_ROOM
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.hosts import Host
from kpatch_ci.pipeline.calls import Limits
from kpatch_ci.pipeline.far import start
from kpatch_ci.pipeline.far.bundle import bundle
from kpatch_ci.pipeline.far.carrier import LinkCarrier
from kpatch_ci.pipeline.far.frames import Cut, Frames, Header, Pipe
from kpatch_ci.pipeline.far.link import Link
from kpatch_ci.pipeline.far.sending import Sender
from kpatch_ci.pipeline.farplace import FarPlace
from kpatch_ci.pipeline.places import BUILD, GUEST_KINDS
from kpatch_ci.pipeline.supply import Supply
from kpatch_ci.pipeline.worker import code_version

HANDSHAKE = 30.0
"""Seconds in which each step until the other end is ready must get on."""
LEAST_FREE = 1 << 30
"""Bytes: kernels, and a snapshot of each boot."""
KINDS = {"guest": GUEST_KINDS, "build": frozenset({BUILD})}


class StartedPipe(Pipe, Protocol):
    """A pipe to a command that was started."""

    def patient(self) -> None:
        """No timeout from here on."""

    def said(self) -> str:
        """What it wrote on its standard error since the last time."""


Start = Callable[[Host, str], StartedPipe]
"""Start a shell command on a host. Raises InfrastructureError."""


def over_ssh(host: Host, command: str) -> StartedPipe:
    """Start a command over SSH."""
    ssh.require_key(host.login, host.name)
    made = ssh.connection(host.login)
    ssh.open_connection(made, host.name)
    return ssh.ChannelPipe(made, command, HANDSHAKE)


@dataclass(frozen=True, slots=True)
class Joined:
    """A host that is ready to be asked, and what it said of itself."""

    host: Host
    link: Link
    pipe: StartedPipe
    hello: Header


def start_command(host: Host, suite: str) -> str:
    """What the host's shell is told to run."""
    text = base64.b64encode(zlib.compress(Path(start.__file__).read_bytes(), 9)).decode()
    code = f"import base64,zlib;exec(zlib.decompress(base64.b64decode('{text}')))"
    return f"exec python3 -ISc {shlex.quote(code)} {shlex.join([host.work, bundle().digest, suite])}"


def join(host: Host, suite: str, *, begin: Start = over_ssh) -> Joined:
    """Log in, and bring our code to life there. Raises InfrastructureError that names the host."""
    pipe = begin(host, start_command(host, suite))
    frames = Frames(pipe)
    try:
        hello = _greeted(frames)
    except Cut as error:
        said = " ".join(part for part in (pipe.said().strip(), str(error)) if part)
        pipe.close()
        what = f"{host.name}: our worker does not start there"
        raise InfrastructureError(
            what, log=said, hint=f"it needs python3 >= 3.11: `kpatch-ci doctor --host {host.name}`"
        ) from error
    if hello.get("problem"):
        pipe.close()
        raise InfrastructureError(f"{host.name}: {hello['problem']}")
    pipe.patient()
    return Joined(host, Link(host.name, frames), pipe, hello)


def _greeted(frames: Frames) -> Header:
    frames.skip_to_mark()
    first = _header(frames)
    python = tuple(first["python"])
    if python[:2] < start.OLDEST:
        return {"problem": f"its python3 is {'.'.join(map(str, python))}, and 3.11 is needed"}
    if not first["code"]:
        frames.send({"op": "code"}, bundle().data)
        problem = _header(frames)
        if problem["problem"]:
            return problem
    while (hello := _header(frames)).get("op") != "hello":
        pass
    return hello


def _header(frames: Frames) -> Header:
    frame = frames.receive()
    if frame is None:
        raise Cut("it ended before it was ready")
    return frame[0]


def faults(joined: Joined, tools: ToolRoot) -> str:
    """Why a host cannot do what this machine does, with what differs; empty where it can."""
    name, hello = joined.host.name, joined.hello
    found = _unlike(name, hello, joined.host.uses)
    if found:
        return found
    fix = f"`kpatch-ci doctor --host {name} --fix` brings it up"
    if not hello["tools"]:
        return f"{name} has no tool root of Debian {hello['suite']} in {hello['cache']}: {fix}"
    if hello["tools"] != tools.fingerprint:
        return f"{name} has another tool root: {differing(tools.versions, hello['versions'])}; {fix}"
    if hello["sandbox"]:
        return f"{name}: {hello['sandbox']}"
    return ""


def _unlike(name: str, hello: Header, uses: Collection[str]) -> str:
    """What no tool root mends."""
    if hello["code"] != code_version():
        return f"{name} runs another version of kpatch-ci than this machine, though it was sent this one"
    if hello["machine"] != platform.machine():
        return f"{name} is {hello['machine']}, this machine {platform.machine()}: our tool root does not run there"
    building = BUILD in uses and not hello["sources"]
    wanted, why = (LEAST_FREE + BUILD_ROOM, " to build kernels") if building else (LEAST_FREE, "")
    if hello["free"] < wanted:
        have = f"{name} has {hello['free'] / 1e9:.1f} GB free where {hello['cache']} is"
        return f"{have}, {wanted / 1e9:.0f} GB at least is needed{why}"
    return ""


def differing(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """The first packages whose versions differ, QEMU before others; in words."""
    names = [
        n
        for n in sorted({*here, *there}, key=lambda n: (not n.startswith("qemu-system"), n))
        if here.get(n) != there.get(n)
    ]
    shown = [f"{n} {there.get(n, 'absent')} there, {here.get(n, 'absent')} here" for n in names[:3]]
    return ", ".join(shown) + (f", and {len(names) - 3} more packages" if len(names) > 3 else "")


def place_of(joined: Joined, supply: Supply, limits: Limits) -> FarPlace:
    """The place that a joined host is."""
    host = joined.host
    store = supply.store
    carrier = LinkCarrier(joined.link, Sender(joined.link, store), store, joined.pipe.said)
    kinds = frozenset(kind for use in host.uses for kind in KINDS[use])
    slots, builds = host.slots or int(joined.hello["cores"]), supply if BUILD in kinds else None
    return FarPlace(host.name, slots, kinds, carrier, limits, builds, set(joined.hello["objects"]))


def open_hosts(
    hosts: Sequence[Host], supply: Supply, limits: Limits, *, begin: Start = over_ssh
) -> tuple[FarPlace, ...]:
    """All of them, side by side. Raises InfrastructureError that says what is wrong with each that cannot be used."""
    if not hosts:
        return ()
    tools = supply.tools
    bundle()  # made once, not in each thread

    def one(host: Host) -> Joined | InfrastructureError:
        try:
            joined = join(host, tools.suite, begin=begin)
        except InfrastructureError as error:
            return error
        wrong = faults(joined, tools)
        if wrong:
            joined.link.close()
            return InfrastructureError(wrong)
        return joined

    with ThreadPoolExecutor(len(hosts), thread_name_prefix="join") as pool:
        found = list(pool.map(one, hosts))
    errors = [one for one in found if isinstance(one, InfrastructureError)]
    ready = [one for one in found if isinstance(one, Joined)]
    if errors:
        for joined in ready:
            joined.link.close()
        hint = "or run without: --on here, or --on with the hosts that are well"
        raise InfrastructureError("\n".join(str(error) for error in errors), hint=hint)
    return tuple(place_of(joined, supply, limits) for joined in ready)
