# SPDX-License-Identifier: GPL-2.0-or-later
"""What a host's greeting means, in the words of `doctor`."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.host.finding import Finding
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.hosts import Host, Login
from kpatch_ci.pipeline.far import look
from kpatch_ci.pipeline.far.connect import StartedPipe
from kpatch_ci.pipeline.worker import code_version

VERSIONS = {"qemu-system-x86": "1:10.0.2", "gcc": "4:14.2"}
TOOLS = ToolRoot(Path("/cache/tools/x"), "trixie", "f" * 64, VERSIONS)
HELLO = {
    "code": code_version(), "machine": platform.machine(), "python": "3.13.5", "cache": "/var/work", "tools": "f" * 64,
    "versions": VERSIONS, "sandbox": "",
}  # fmt: skip


def findings(here: ToolRoot | None = TOOLS, **changes: Any) -> dict[str, Finding]:
    return {one.name: one for one in look.findings("big-one", {**HELLO, **changes}, "trixie", here)}


def test_a_host_that_is_as_we_are() -> None:
    found = findings()
    assert {one.ok for one in found.values()} == {True}
    assert found["worker"].detail == f"our code {code_version()[:12]}, as here, with python 3.13.5"
    assert found["tool root"].detail == "trixie ffffffffffff, as here: QEMU 1:10.0.2"


def test_another_tool_root_is_told_by_both_fingerprints_and_what_differs() -> None:
    one = findings(tools="e" * 64, versions={**VERSIONS, "gcc": "4:12"})["tool root"]
    assert one.ok is False
    assert one.detail == "eeeeeeeeeeee there, ffffffffffff here: gcc 4:12 there, 4:14.2 here"
    assert one.fix == "kpatch-ci doctor --host big-one --fix"


def test_no_tool_root_is_missing_there_but_not_here() -> None:
    assert findings(tools=None, versions={})["tool root"].ok is False
    here = findings(here=None)["tool root"]
    assert (here.ok, here.detail) == (None, "ffffffffffff there; none here to compare it with")


def test_code_of_another_version_another_machine_and_a_sandbox_that_fails_are_faults() -> None:
    found = findings(code="0" * 64, machine="riscv64", sandbox="cannot enter it\nlog\nwhat to do: sudo sysctl x=1")
    assert found["worker"].detail == f"our code there is 000000000000, here {code_version()[:12]}"
    assert found["worker"].fix == "remove /var/work/code there"
    assert found["machine"].detail.startswith(f"riscv64, this machine {platform.machine()}")
    assert (found["sandbox"].detail, found["sandbox"].fix) == ("cannot enter it", "what to do: sudo sysctl x=1")
    assert {found[name].ok for name in ("worker", "machine", "sandbox")} == {False}


def test_a_worker_that_does_not_start_is_a_finding() -> None:
    def begin(host: Host, command: str) -> StartedPipe:
        raise InfrastructureError(
            "cannot start a command there: closed", hint="look", log="sh: 1: python3: not found\n"
        )

    (one,) = look.look(Host("big-one", Login("x")), "trixie", TOOLS, begin=begin)
    assert (one.name, one.ok, one.fix) == ("worker", False, "look")
    assert one.detail == "cannot start a command there: closed: sh: 1: python3: not found"
