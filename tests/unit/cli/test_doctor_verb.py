# SPDX-License-Identifier: GPL-2.0-or-later
"""``doctor``: its table, its JSON, its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.cli import doctor_host
from kpatch_ci.cli.main import main
from kpatch_ci.debian import toolroot
from kpatch_ci.guest import kvm
from kpatch_ci.host import doctor, remote
from kpatch_ci.host.finding import Finding
from kpatch_ci.model.hosts import Host, Login

PROJECT = Path(__file__).resolve().parents[3]
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


HOSTS = """
hosts:
  big-one: {address: runner.example, user: kpci, work: /srv/kpci}
"""


@pytest.fixture
def pipeline_file(tmp_path: Path) -> Path:
    for name in ("patches", "kconfigs", "qemu"):
        (tmp_path / name).symlink_to(PROJECT / name)
    (tmp_path / "pipeline.yaml").write_text((PROJECT / "pipeline.yaml").read_text() + HOSTS)
    return tmp_path / "pipeline.yaml"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was done to hosts, in order."""
    done: list[Any] = []

    def examine(host: Host, suite: str) -> list[Finding]:
        done.append(("examine", host, suite))
        return GOOD

    monkeypatch.setattr(doctor_host, "examine", examine)

    def examine_any(target: str) -> list[Finding]:
        done.append(("remote", target))
        return GOOD

    monkeypatch.setattr(doctor_host, "fix", lambda host, *_: done.append(("fix", host)))
    monkeypatch.setattr(remote, "examine", examine_any)
    return done


def test_a_machine_of_hosts_is_meant_by_its_name(pipeline_file: Path, seen: list[Any]) -> None:
    assert main(["doctor", "--host", "big-one", "-c", str(pipeline_file)]) == 0
    host = Host("big-one", Login("runner.example", "kpci"), "/srv/kpci")
    assert seen == [("examine", host, "trixie")]


def test_fix_is_before_the_examination(pipeline_file: Path, seen: list[Any]) -> None:
    assert main(["doctor", "--host", "big-one", "--fix", "-c", str(pipeline_file)]) == 0
    assert [what for what, *_ in seen] == ["fix", "examine"]


def test_any_machine_can_be_brought_up(seen: list[Any]) -> None:
    assert main(["doctor", "--host", "me@runner.example:2222", "--fix"]) == 0
    assert seen[0] == ("fix", Host("me@runner.example:2222", Login("runner.example", "me", 2222)))


def test_a_name_that_is_not_among_hosts_is_an_address(pipeline_file: Path, seen: list[Any]) -> None:
    assert main(["doctor", "--host", "other", "-c", str(pipeline_file)]) == 0
    assert seen == [("remote", "other")]


def test_an_address_with_a_user_needs_no_file(tmp_path: Path, seen: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipeline.yaml").write_text("series: 7")
    assert main(["doctor", "--host", "me@other"]) == 0
    assert main(["doctor", "--host", "big-one"]) == 2, "it might be a name of the file, which has faults"
    assert seen == [("remote", "me@other")]


def test_a_file_that_was_named_must_be_good(tmp_path: Path, seen: list[Any]) -> None:
    assert main(["doctor", "--host", "big-one", "-c", str(tmp_path / "none.yaml")]) == 2
    assert seen == []


def test_fix_is_not_for_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--fix"]) == 2
    assert "--host" in capsys.readouterr().err
