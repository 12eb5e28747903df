# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a host can do what this machine does: what our own code says of it, once it runs there."""

from __future__ import annotations

import platform

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.host.finding import Finding
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.hosts import Host
from kpatch_ci.pipeline.far.connect import Start, differing, join, over_ssh
from kpatch_ci.pipeline.far.frames import Header
from kpatch_ci.pipeline.worker import code_version

SHOWN = 12
"""Characters of a digest that a person compares."""


def look(host: Host, suite: str, tools: ToolRoot | None, *, begin: Start = over_ssh) -> list[Finding]:
    """Bring our code to life there, hear what it says, and end it. ``tools``: this machine's tool root, None where there is none."""
    try:
        joined = join(host, suite, begin=begin)
    except InfrastructureError as error:
        said = error.log.strip().splitlines()[-1:] if error.log else []
        return [Finding("worker", False, ": ".join([error.what, *said]), error.hint or "")]
    joined.link.close()
    return findings(host.name, joined.hello, suite, tools)


def findings(name: str, hello: Header, suite: str, tools: ToolRoot | None) -> list[Finding]:
    """What a host's greeting means."""
    found = [_worker(hello), _toolroot(name, hello, suite, tools)]
    if hello["machine"] != platform.machine():
        detail = f"{hello['machine']}, this machine {platform.machine()}: our tool root does not run there"
        found.append(Finding("machine", False, detail, f"a host for this machine's runs is {platform.machine()} too"))
    if hello["sandbox"]:
        first, _, rest = str(hello["sandbox"]).partition("\n")
        found.append(Finding("sandbox", False, first, rest.strip().splitlines()[-1].strip() if rest.strip() else ""))
    return found


def _worker(hello: Header) -> Finding:
    version = str(hello["code"])
    if version != code_version():
        detail = f"our code there is {version[:SHOWN]}, here {code_version()[:SHOWN]}"
        return Finding("worker", False, detail, f"remove {hello['cache']}/code there")
    return Finding("worker", True, f"our code {version[:SHOWN]}, as here, with python {hello['python']}")


def _toolroot(name: str, hello: Header, suite: str, tools: ToolRoot | None) -> Finding:
    there = hello["tools"]
    if tools is None:
        detail = f"{f'{there[:SHOWN]} there' if there else 'none there'}; none here to compare it with"
        return Finding("tool root", None, detail, "the first run makes it here")
    fix = f"kpatch-ci doctor --host {name} --fix"
    if not there:
        return Finding("tool root", False, f"none of Debian {suite} in {hello['cache']}", fix)
    if there != tools.fingerprint:
        what = differing(tools.versions, hello["versions"])
        return Finding("tool root", False, f"{there[:SHOWN]} there, {tools.fingerprint[:SHOWN]} here: {what}", fix)
    return Finding("tool root", True, f"{suite} {there[:SHOWN]}, as here: QEMU {tools.versions['qemu-system-x86']}")
