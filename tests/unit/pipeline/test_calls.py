# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls and answers survive JSON, leave paths behind, and what is of another version is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kpatch_ci.guest.files import machine_slice
from kpatch_ci.guest.guests import RawRun
from kpatch_ci.guest.image import GuestImage
from kpatch_ci.guest.machine import load_machine
from kpatch_ci.kernel.kconfig import Requested
from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult, ConfigMiss, Tree
from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.calls import (
    BootAnswer,
    BootCall,
    BuildAnswer,
    BuildCall,
    Limits,
    Module,
    ReplicateAnswer,
    ReplicateCall,
    decode,
    encode,
    kind_of,
    placed,
    refs,
    stripped_build,
    stripped_image,
)
from kpatch_ci.store.artifacts import ArtifactStore

MACHINES = sorted((Path(__file__).resolve().parents[3] / "qemu").glob("*.yaml"))
BUILD = BuildResult(Status.PASSED, "patched", "arm64", "t" * 40, "k" * 64, 12.5, 6, False, artifact=Path("/here/build"))
IMAGE = GuestImage("arm64", Path("/here/image"), "d" * 64, {"dbench": "4.0-2"}, "i" * 64, Path("/here/so"), "p" * 64)
LIMITS = Limits(60.0, 120.0, 30.0)


def through(value: object, kind: type) -> object:
    return decode(kind, json.loads(json.dumps(encode(value))))  # type: ignore[arg-type]


@pytest.mark.parametrize("path", MACHINES, ids=lambda p: p.stem)
def test_a_machine_is_the_same_after_the_trip(path: Path) -> None:
    machine = load_machine(path)
    call = BootCall(stripped_build(BUILD), stripped_image(IMAGE), machine, 7, LIMITS)
    back = through(call, BootCall)
    assert back == call
    assert isinstance(back, BootCall)
    assert digest(machine_slice(back.machine)) == digest(machine_slice(machine))


def test_a_replicate_s_call_and_both_answers_survive() -> None:
    boot = BootResult(Status.PASSED, "patched", "arm64", "m", 3, "b" * 64, 1.25, False, facts={"cpus": [0, 1], "n": {}})
    call = ReplicateCall(
        boot, stripped_build(BUILD), stripped_image(IMAGE), load_machine(MACHINES[0]), "run\tdd\n", "n", LIMITS
    )
    assert through(call, ReplicateCall) == call
    answer = ReplicateAnswer(RawRun(Status.FAILED, '{"event": "end"}\n', 0.5, "it panicked", "tail"), "console\n")
    assert through(answer, ReplicateAnswer) == answer
    assert through(BootAnswer(boot, ""), BootAnswer) == BootAnswer(boot, "")


def test_a_build_s_call_and_its_answer_survive() -> None:
    tree = Tree("debian:6.1", "6.1.140", Path("/nonexistent"), "c" * 40, "a" * 40, "linux-source", ("a note",))
    config = (Requested("XFS_FS", "y", "xfs.config:3"), Requested("LOCALVERSION", '"-x"', "base.config:1"))
    module = Module("cpufreq", (("Kbuild", "obj-m := x.o\n"), ("x.c", 'char *s = "\\n";\t/* ü */\n')))
    call = BuildCall("k" * 64, "s", "arm64", tree, "b" * 40, config, (module,), 4, 3600.0)
    assert through(call, BuildCall) == call
    assert [kind_of(one) for one in (call, replace(call, tree_id="a" * 40))] == ["build", "build"]
    assert len(refs(call)) == 2
    assert len(refs(replace(call, tree_id="a" * 40))) == 1
    missed = replace(BUILD, status=Status.FAILED, artifact=None, misses=(ConfigMiss("A", "y", "n", "", "f:1"),))
    assert through(BuildAnswer(missed, "log"), BuildAnswer) == BuildAnswer(missed, "log")


def test_no_path_of_this_machine_travels_and_there_the_store_s_own_are_put_in(tmp_path: Path) -> None:
    call = BootCall(stripped_build(BUILD), stripped_image(IMAGE), load_machine(MACHINES[0]), 7, LIMITS)
    assert "/here" not in json.dumps(encode(call))
    assert refs(call) == (("build", "k" * 64), ("guest-image", "i" * 64))
    there = placed(call, ArtifactStore(tmp_path))
    assert there.build.artifact == tmp_path / "build/kk" / ("k" * 64)
    assert there.image.path == tmp_path / "guest-image/ii" / ("i" * 64) / "image.cpio"
    assert there.image.preload == tmp_path / "guest-image/ii" / ("i" * 64) / "qemuserial.so"
    assert replace(there, build=call.build, image=call.image) == call


def test_what_another_version_sends_is_refused_with_what_is_wrong() -> None:
    text = encode(BootAnswer(BootResult(Status.PASSED, "a", "arm64", "m", 3, "b", 1.0, False), ""))
    with pytest.raises(InfrastructureError, match=r"a BootAnswer that cannot be read.*consoles"):
        decode(BootAnswer, {**text, "consoles": ""})
    with pytest.raises(InfrastructureError, match="a BootAnswer that cannot be read"):
        decode(BootAnswer, {"boot": "yes"})
