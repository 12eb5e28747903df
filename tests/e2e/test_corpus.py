# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches that nobody here wrote: the quilt series of a kernel's Debian source package, against git and against dpkg-source."""

from __future__ import annotations

import lzma
import tarfile
from pathlib import Path

import git
import pytest

from kpatch_ci.debian.apt import host_archives
from kpatch_ci.debian.toolroot import make_toolroot
from kpatch_ci.model.series import Patch
from kpatch_ci.process import run
from kpatch_ci.series.dates import git_date
from kpatch_ci.series.intake import read_series
from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import Command
from tests.e2e.source_package import Corpus, corpus

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def linux() -> Corpus:
    return corpus(cache_root(), make_toolroot(cache_root(), "trixie", host_archives()), host_archives())


def named(linux: Corpus, series: str) -> dict[str, bytes]:
    """Name -> bytes of the patches that a series file of the package names, read without our code."""
    with lzma.open(linux.patches) as packed, tarfile.open(fileobj=packed) as archive:
        folder = series.rpartition("/")[0]
        listed = archive.extractfile(series)
        assert listed is not None
        lines = [line.split("#")[0].strip() for line in listed.read().decode().splitlines()]
        found = {}
        for name in filter(None, lines):
            file = archive.extractfile(f"{folder}/{name}")
            assert file is not None
            found[name] = file.read()
        return found


def words_by_git(mail: bytes, place: Path) -> tuple[str, str, str, str, str]:
    """Author, address, subject, date and text as git mailinfo reads them."""
    said = run(["git", "mailinfo", "-u", place / "text", place / "patch"], stdin=mail, timeout=60)
    assert said.ok, said.output
    fields = dict(line.split(": ", 1) for line in said.output.splitlines() if ": " in line)
    text = (place / "text").read_text().strip("\n").rstrip()
    author, address, subject, date = (fields.get(key, "") for key in ("Author", "Email", "Subject", "Date"))
    return author, address, subject, git_date(date), text


def words(patch: Patch) -> tuple[str, str, str, str, str]:
    text = patch.message.strip("\n").rstrip()
    return patch.author, patch.email, patch.subject, git_date(patch.date), text


@pytest.mark.parametrize("series", ["debian/patches/series", "debian/patches-rt/series"])
def test_every_patch_is_read_with_the_words_that_git_reads(linux: Corpus, series: str, tmp_path: Path) -> None:
    """Other than git we read a DEP-3 Description, so a patch without a From is left out of the comparison."""
    wanted = named(linux, series)
    package = tmp_path / "package"
    package.mkdir()
    unpacked = run(["tar", "-C", package, "-xJf", linux.patches], timeout=60)  # Debian 12's tarfile knows no filter
    assert unpacked.ok, unpacked.output
    patches, account = read_series([package / Path(series).parent])
    assert len(patches) == len(wanted) > 70
    assert account.notes == ()
    assert [one for one in account.left_out if one.reason != "not named in the series file"] == []
    compared = 0
    for patch, (name, mail) in zip(patches, wanted.items(), strict=True):
        assert patch.source.endswith(name)
        assert patch.author
        assert patch.subject
        by_git = words_by_git(mail, tmp_path)
        if by_git[0]:
            compared += 1
            assert words(patch) == by_git, name
    assert compared >= len(wanted) - 3


def test_the_series_becomes_the_tree_of_dpkg_source_and_a_commit_a_patch(linux: Corpus, kpatch_ci: Command) -> None:
    where = f"{linux.repo}@{linux.upstream}"
    done = kpatch_ci("check", linux.patches, "-t", where, "--base-time", "0", "--branch", "corpus", "--json")
    assert done.code == 0
    (row,) = done.result
    names = list(named(linux, "debian/patches/series"))
    assert [patch["source"].partition("debian/patches/")[2] for patch in row["patches"]] == names
    assert {(patch["status"], patch["method"]) for patch in row["patches"]} == {("passed", "as-mailed")}
    assert row["tree_id"] == linux.made
    commits = row["branch"]["commits"]
    assert len(commits) == len(names)
    repo = git.Repo(linux.repo)
    repo.git.fetch(_place(done.stderr), "corpus")
    log = repo.git.log("--reverse", "--format=%H|%an|%s", f"{linux.upstream}..FETCH_HEAD").split("\n")
    assert log == [
        f"{commit}|{told['author']}|{told['subject']}" for commit, told in zip(commits, row["taken"], strict=True)
    ]
    assert repo.git.rev_parse("FETCH_HEAD^{tree}") == linux.made


def _place(stderr: str) -> str:
    """The repository that `check --branch` says to fetch from."""
    (line,) = [line for line in stderr.splitlines() if "to have it: git fetch " in line]
    return line.split()[-2]
