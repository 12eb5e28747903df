# SPDX-License-Identifier: GPL-2.0-or-later
"""Packages through an isolated apt root, against a fake apt."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from kpatch_ci.debian import apt
from kpatch_ci.debian.apt import AptRoot, Archives, Package, extract, host_archives, stanzas
from kpatch_ci.model.errors import InfrastructureError

if TYPE_CHECKING:
    from tests.conftest import FakeTool

ARCHIVES = Archives("https://archive.example/debian", "https://archive.example/debian-security")


def test_stanzas_are_told_apart_and_continuations_dropped() -> None:
    text = "Package: a\nVersion: 1:2-3\nDescription: short\n long\n .\n more\n\n\nPackage: b\nEmpty:\n\n"
    assert stanzas(text) == [
        {"Package": "a", "Version": "1:2-3", "Description": "short"},
        {"Package": "b", "Empty": ""},
    ]
    assert stanzas("") == []


def test_the_hosts_archives_are_read_from_apt(fake_tool: FakeTool) -> None:
    fake_tool(
        "apt-get",
        """[ "$*" = 'indextargets --format $(REPO_URI) $(RELEASE)' ] || exit 9
echo 'W: something else'
echo 'https://other.example/vendor stable'
echo 'https://archive.example/debian-security/ bookworm-security'
echo 'https://archive.example/debian/ bookworm'
echo 'https://archive.example/debian/ bookworm-updates'
echo 'https://second.example/debian/ bookworm'
echo 'https://second.example/debian-security/ bookworm-security'""",
    )
    assert host_archives() == ARCHIVES


def test_an_archive_without_security_updates_is_enough(fake_tool: FakeTool) -> None:
    fake_tool("apt-get", "echo 'file:/srv/debian/ trixie'")
    assert host_archives() == Archives("file:/srv/debian", None)


def test_no_archive_at_all_is_the_machines_fault(fake_tool: FakeTool) -> None:
    fake_tool("apt-get", "echo 'E: it is broken'; exit 100")
    with pytest.raises(InfrastructureError, match=r"names no Debian archive\nE: it is broken\nwhat to do: add one"):
        host_archives()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AptRoot:
    keyring = tmp_path / "keyring.gpg"
    keyring.write_text("")
    monkeypatch.setattr(apt, "KEYRING", keyring)
    return AptRoot(
        tmp_path / "root", arch="arm64", suites=("trixie", "trixie-updates", "trixie-security"), archives=ARCHIVES
    )


def test_an_apt_root_is_isolated_and_signed(root: AptRoot, fake_tool: FakeTool, tmp_path: Path) -> None:
    fake_tool("apt-get", f'echo "$@" > {tmp_path}/argv')
    root.update()
    assert (tmp_path / "argv").read_text() == f"-c {root.root}/apt.conf update --error-on=any\n"
    sources = (root.root / "sources.list").read_text().splitlines()
    assert sources == [
        f"deb [signed-by={tmp_path}/keyring.gpg] https://archive.example/debian trixie main",
        f"deb [signed-by={tmp_path}/keyring.gpg] https://archive.example/debian trixie-updates main",
        f"deb [signed-by={tmp_path}/keyring.gpg] https://archive.example/debian-security trixie-security main",
    ]
    conf = (root.root / "apt.conf").read_text()
    assert f'Dir::State::status "{root.root}/status";' in conf
    assert 'Dir::Etc::SourceParts "/dev/null";' in conf
    assert 'APT::Architectures { "arm64"; };' in conf
    assert (root.root / "status").read_text() == ""


def test_without_a_security_archive_that_suite_is_left_out(tmp_path: Path) -> None:
    root = AptRoot(tmp_path, arch="amd64", suites=("sid", "sid-security"), archives=Archives("file:/srv", None))
    assert [line.split()[-2] for line in root._source_lines()] == ["sid"]


def test_apts_own_words_are_kept_when_it_fails(root: AptRoot, fake_tool: FakeTool) -> None:
    fake_tool("apt-get", "echo 'E: no Release file'; exit 100")
    with pytest.raises(InfrastructureError, match=r"lists of trixie, trixie-updates, trixie-security\nE: no Release"):
        root.update()


def test_no_keyring_is_told_before_anything_is_fetched(
    root: AptRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apt, "KEYRING", tmp_path / "absent.gpg")
    with pytest.raises(InfrastructureError, match="debian-archive-keyring"):
        root.update()


def test_versions_are_those_of_matching_names_only(root: AptRoot, fake_tool: FakeTool) -> None:
    fake_tool(
        "apt-cache",
        """case "$3" in
pkgnames) printf 'linux-source-6.1\\nlinux-source\\nother\\n' ;;
show) [ "$*" = "-c $2 show --no-all-versions linux-source-6.1" ] || exit 9
      printf 'Package: linux-source-6.1\\nVersion: 6.1.140-1\\n\\n' ;;
esac""",
    )
    assert root.versions(r"linux-source-[\d.]+") == {"linux-source-6.1": "6.1.140-1"}
    assert root.versions("nothing") == {}


def test_downloaded_packages_are_described_and_hashed(
    root: AptRoot, fake_tool: FakeTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = root.root / "cache/archives"
    place.mkdir(parents=True)
    get = fake_tool("apt-get", f'for p in make gcc; do printf "$p" > {place}/$p.deb; done')
    fake_tool("dpkg-deb", 'n=$(basename "$2" .deb); printf "Package: $n\\nVersion: 1\\nArchitecture: arm64\\n"')
    monkeypatch.setattr(apt, "_ENV", {**apt._ENV, "PATH": f"{get.parent}:{apt._ENV['PATH']}"})
    found = root.download(["make"])
    assert [(p.name, p.version, p.arch, p.path.name) for p in found] == [
        ("gcc", "1", "arm64", "gcc.deb"),
        ("make", "1", "arm64", "make.deb"),
    ]
    assert (
        found[1].sha256 == "5cae7a2ebdf4bb1f2c7e5ba8b5d1ff5d5b0a0e0e8ee0f8ef3cbfc1ab1b1f3c2e"
        or len(found[1].sha256) == 64
    )


def test_a_package_that_is_not_there_is_told_with_its_suite(
    root: AptRoot, fake_tool: FakeTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = fake_tool("apt-get", "echo 'E: Unable to locate package nope'; exit 100")
    monkeypatch.setattr(apt, "_ENV", {**apt._ENV, "PATH": f"{get.parent}:{apt._ENV['PATH']}"})
    with pytest.raises(InfrastructureError, match=r"cannot install nope \(arm64, trixie, [\s\S]*Unable to locate"):
        root.download(["nope"])


SIGNED = """-----BEGIN PGP SIGNED MESSAGE-----
Hash: SHA256

Format: 3.0 (quilt)
Source: linux
Version: 6.1.140-1
Files:
 0 1 linux_6.1.140.orig.tar.xz
-----BEGIN PGP SIGNATURE-----

x
-----END PGP SIGNATURE-----"""


@pytest.fixture
def sources(tmp_path: Path, root: AptRoot) -> AptRoot:
    return AptRoot(tmp_path / "sources", arch="amd64", suites=("trixie",), archives=ARCHIVES, sources=True)


def test_sources_are_fetched_only_where_they_are_asked_for(sources: AptRoot, tmp_path: Path) -> None:
    assert sources._source_lines() == [
        f"deb [signed-by={tmp_path}/keyring.gpg] https://archive.example/debian trixie main",
        f"deb-src [signed-by={tmp_path}/keyring.gpg] https://archive.example/debian trixie main",
    ]


def test_a_source_package_is_its_description_and_the_files_beside_it(
    sources: AptRoot, fake_tool: FakeTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "signed").write_text(SIGNED)
    get = fake_tool(
        "apt-get",
        f"""[ "$*" = "-c {sources.root}/apt.conf source --download-only --only-source -q linux" ] || exit 9
cp {tmp_path}/signed linux_6.1.140-1.dsc; touch linux_6.1.140.orig.tar.xz linux_6.1.140-1.debian.tar.xz""",
    )
    monkeypatch.setattr(apt, "_ENV", {**apt._ENV, "PATH": f"{get.parent}:{apt._ENV['PATH']}"})
    found = sources.source("linux", tmp_path / "into")
    assert (found.version, found.description) == ("6.1.140-1", tmp_path / "into/linux_6.1.140-1.dsc")
    assert [path.name for path in found.files] == ["linux_6.1.140-1.debian.tar.xz", "linux_6.1.140.orig.tar.xz"]


def test_a_source_package_that_cannot_be_had_is_told_in_apts_words(
    sources: AptRoot, fake_tool: FakeTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = fake_tool("apt-get", "echo 'E: Unable to find a source package for nope'; exit 100")
    monkeypatch.setattr(apt, "_ENV", {**apt._ENV, "PATH": f"{get.parent}:{apt._ENV['PATH']}"})
    with pytest.raises(InfrastructureError, match=r"cannot fetch the source of nope \(amd64, trixie\)[\s\S]*Unable"):
        sources.source("nope", tmp_path / "into")


def test_a_full_disk_is_told_as_that_and_not_as_tars_last_words(
    fake_tool: FakeTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_tool("dpkg-deb", "echo 'tar: ./usr/bin/x: Cannot write: No space left on device'; exit 2")
    package = Package("gcc", "14", "amd64", "0" * 64, tmp_path / "gcc.deb")
    with pytest.raises(InfrastructureError, match=r"cannot unpack gcc\.deb"):
        extract([package], tmp_path / "root")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(InfrastructureError, match="no space left on the disk that holds"):
        extract([package], tmp_path / "root")
