# SPDX-License-Identifier: GPL-2.0-or-later
"""The modelled cost of a context switch: two processes on one CPU take that much longer a switch, and no more."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.config.load import Selection, load_config
from kpatch_ci.guest.image import make_image
from kpatch_ci.guest.machine import load_machine
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.machine import Machine
from kpatch_ci.model.series import BASELINE
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.session import Session, open_session
from kpatch_ci.pipeline.stages import Stages
from tests.e2e.conftest import PROJECT

pytestmark = pytest.mark.e2e

ROUNDS = 5000
PING = f"i=0; while [ $i -lt {ROUNDS} ]; do echo >&3; read y <&4; i=$((i+1)); done"
PONG = f"i=0; while [ $i -lt {ROUNDS} ]; do read y <&3; echo >&4; i=$((i+1)); done"
FIFOS = "exec 3<>/tmp/a 4<>/tmp/b"
BUSYBOX = "/usr/bin/busybox"
JOB = "".join(
    "\t".join(fields) + "\n"
    for fields in (
        ("seed", "1"),
        ("timeout", "60"),
        ("prep", BUSYBOX, "mkfifo", "/tmp/a", "/tmp/b"),
        ("run", BUSYBOX, "taskset", "2", BUSYBOX, "sh", "-c", f"{FIFOS}; ({PONG}) & {PING}; wait"),
    )
)


def _ping_pong(session: Session, machine: Machine, logs: Path) -> tuple[int, int, dict[str, Any]]:
    """Virtual ns and context switches of the job, and what the guest said of its cost."""
    own = replace(session, config=replace(session.config, machines=(machine,)))
    stages = Stages(own, own.builder(), own.guests())
    build = stages.builder.build(stages.request(machine.arch, BASELINE, own.tree.tree_id), logs)
    arch = ARCHES[machine.arch]
    image = make_image(arch, own.cache, own.store, own.tools, archives=own.archives, agent_sources=own.agent_sources)
    boot = stages.guests.boot(build, image, machine, 1, logs)
    assert boot.status is Status.PASSED, boot.reason
    raw = stages.guests.replicate(boot, build, image, machine, JOB, logs=logs, name=machine.name)
    assert raw.status is Status.PASSED, raw.reason
    events = {event["event"]: event for event in map(json.loads, raw.text.splitlines())}
    return events["run"]["elapsed_ns"], events["counters"]["delta"]["context_switches"], dict(boot.facts)


@pytest.mark.parametrize("name", ["arm64-6+2-switchcost", "x86_64-8-switchcost"])
def test_a_switch_takes_as_much_longer_as_the_machine_file_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "kpatch_ci.pipeline.session.use_cache", lambda _: None
    )  # a mark that lasts as long as the tests
    costly = load_machine(PROJECT / "qemu" / f"{name}.yaml")
    config = load_config(PROJECT / "pipeline.yaml", Selection(arches=(costly.arch,), profile="fixed"))
    session = open_session(config, jobs=2, logs=tmp_path, say=print)
    plain, _, facts = _ping_pong(session, config.machines[0], tmp_path)
    assert "switch_cost" not in facts
    slowed, switches, facts = _ping_pong(session, costly, tmp_path)
    assert facts["switch_cost"]["cost_ns"] == costly.context_switch_cost_ns == 2000
    assert switches >= 2 * ROUNDS
    assert (slowed - plain) / switches == pytest.approx(2000, rel=0.03)
