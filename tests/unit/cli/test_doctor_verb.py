# SPDX-License-Identifier: GPL-2.0-or-later
"""``doctor``: its table, its JSON, its exit code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kpatch_ci.cli.main import main
from kpatch_ci.debian import toolroot
from kpatch_ci.guest import kvm
from kpatch_ci.host import doctor, remote
from kpatch_ci.host.finding import Finding

GOOD = [Finding("git", True, "2.47.2"), Finding("kvm", None, "no /dev/kvm")]
BAD = [*GOOD, Finding("bubblewrap", False, "no bwrap here", "sudo apt-get install -y bubblewrap")]


def found(monkeypatch: pytest.MonkeyPatch, findings: list[Finding]) -> None:
    monkeypatch.setattr(doctor, "examine", lambda *_, **__: findings)


def test_a_machine_that_lacks_nothing_is_0(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found(monkeypatch, GOOD)
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out.splitlines() == ["ok      git  2.47.2", "-       kvm  no /dev/kvm"]


def test_what_is_missing_is_3_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, BAD)
    assert main(["doctor"]) == 3
    last = capsys.readouterr().out.splitlines()[-2:]
    assert last[0].split() == ["MISSING", "bubblewrap", "no", "bwrap", "here"]
    assert last[1].strip() == "-> sudo apt-get install -y bubblewrap"


def test_json_is_one_document(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found(monkeypatch, BAD)
    assert main(["doctor", "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["host"] == "localhost"
    assert [f["ok"] for f in document["findings"]] == [True, None, False]


def test_another_host_is_asked_over_ssh(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[Any] = []

    def examine(target: str) -> list[Finding]:
        asked.append(target)
        return GOOD

    monkeypatch.setattr(remote, "examine", examine)
    assert main(["doctor", "--host", "user@runner.example", "--json"]) == 0
    assert asked == ["user@runner.example"]
    assert json.loads(capsys.readouterr().out)["host"] == "user@runner.example"


def test_kvm_is_tried_only_with_the_tool_roots_qemu(monkeypatch: pytest.MonkeyPatch) -> None:
    probes: list[Any] = []

    def examine(*_: object, probe: Any) -> list[Finding]:
        probes.append(probe and probe())
        return GOOD

    monkeypatch.setattr(doctor, "examine", examine)
    monkeypatch.setattr(toolroot, "find_toolroot", lambda *_: None)
    main(["doctor"])
    monkeypatch.setattr(toolroot, "find_toolroot", lambda *_: "the tool root")
    monkeypatch.setattr(kvm, "probe_kvm", lambda tools, timeout: (tools, timeout < doctor.DEADLINE))
    main(["doctor"])
    assert probes == [None, ("the tool root", True)]
