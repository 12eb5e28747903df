# SPDX-License-Identifier: GPL-2.0-or-later
"""``hosts:`` of pipeline.yaml: what it may say, and which of them a command uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.config.hosts import choose_hosts, read_hosts
from kpatch_ci.config.load import Selection, load_config
from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.hosts import Host, Login
from kpatch_ci.store.yamlmodel import Lines

ROOT = Path(__file__).resolve().parents[3]
HOSTS = (Host("a", Login("a.example")), Host("b", Login("b.example")))


def project(tmp_path: Path, hosts: str) -> Path:
    for name in ("patches", "kconfigs", "qemu"):
        (tmp_path / name).symlink_to(ROOT / name)
    path = tmp_path / "pipeline.yaml"
    path.write_text((ROOT / "pipeline.yaml").read_text() + "\nhosts:\n" + hosts)
    return path


def test_all_that_can_be_said_of_a_host(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("key")
    path = project(
        tmp_path,
        "  a: {address: 10.0.0.7, user: ci, port: 2222, key: id, jump: me@gate:22, "
        "work: /srv/k, slots: 3, for: [guest]}\n"
        "  b: {address: b.example}\n"
        "  c: {address: c.example, for: [build, guest]}\n",
    )
    config = load_config(path)
    one, two, three = config.hosts
    assert one == Host(
        "a", Login("10.0.0.7", "ci", 2222, tmp_path / "id", "me@gate:22"), "/srv/k", 3, frozenset({"guest"})
    )
    assert two == Host("b", Login("b.example"))
    assert (two.uses, three.uses) == (frozenset({"guest"}), frozenset({"build", "guest"}))
    assert config.spare_here is False


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{address: x, password: secret}", r"unknown key 'hosts.a.password'.*for"),
        ("{user: x}", "'hosts.a.address' is missing"),
        ("{address: -oProxyCommand=x}", "hosts.a.address"),
        ("{address: x, jump: a b}", r"hosts.a.jump: \[USER@\]HOST\[:PORT\]"),
        ("{address: x, work: relative}", "hosts.a.work"),
        ("{address: x, slots: 0}", "hosts.a.slots"),
        ("{address: x, for: [coffee]}", "hosts.a.for"),
        ("{address: x, for: []}", "hosts.a.for"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_refused_with_its_line(tmp_path: Path, line: str, words: str) -> None:
    path = project(tmp_path, f"  a: {line}\n")
    number = len(path.read_text().splitlines())
    with pytest.raises(UserErrors, match=rf"pipeline.yaml:{number}: .*{words}"):
        load_config(path)


def test_here_is_this_machine_s_name_and_no_host_s(tmp_path: Path) -> None:
    with pytest.raises(UserErrors, match="'here' cannot be a host's name"):
        load_config(project(tmp_path, "  here: {address: x}\n"))


@pytest.mark.parametrize(
    ("wanted", "names", "here"),
    [(None, ["a", "b"], True), (("b",), ["b"], False), (("here",), [], True), (("b", "here", "b"), ["b"], True)],
)
def test_which_hosts_are_used(wanted: tuple[str, ...] | None, names: list[str], here: bool) -> None:
    chosen, here_too = choose_hosts(HOSTS, wanted)
    assert ([host.name for host in chosen], here_too) == (names, here)


def test_a_host_that_is_not_in_the_file_is_refused() -> None:
    with pytest.raises(UserError, match=r"--on: no host 'c'.*here.*a.*b"):
        choose_hosts(HOSTS, ("c",))


def test_a_key_that_is_not_there_matters_only_where_the_host_is_used(tmp_path: Path) -> None:
    path = project(tmp_path, "  a: {address: x, key: nowhere}\n")
    assert load_config(path, Selection(on=("here",))).hosts == ()
    for on in (("a",), None):
        with pytest.raises(UserError, match=r"hosts: a: no key file .*nowhere"):
            load_config(path, Selection(on=on))


def test_no_hosts_is_what_most_have() -> None:
    config = load_config(ROOT / "pipeline.yaml")
    assert (config.hosts, config.spare_here) == ((), False)
    assert read_hosts({}, ROOT, Lines("x", None)) == ()
