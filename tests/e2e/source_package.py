# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel's Debian source package as a git repository: the upstream tree, and the tree that dpkg-source makes of it.

The package is that of the release itself, so the same until the next point release. Some 160 MB are fetched once (140 MB of
them the package, the rest apt's lists), verified by apt, and kept below ``<cache>/trees``.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import git

from kpatch_ci.debian.apt import AptRoot, Archives, SourcePackage, extract
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.kernel.git import import_tar, make_bare
from kpatch_ci.process import PIPE, Process, run
from kpatch_ci.store.atomic import write_text
from kpatch_ci.store.cache import locked
from kpatch_ci.store.gitenv import ISOLATED

SUITE = "bookworm"
LAYOUT = 1
"""Raise it when what is kept changes."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """An unpacked source package."""

    version: str
    repo: Path
    upstream: str
    """Commit of the tree in the upstream tarball."""
    made: str
    """Tree that dpkg-source makes, without its own ``debian`` and ``.pc``."""
    patches: Path
    """``debian.tar.xz``, with the quilt series in it."""


def corpus(cache: Path, tools: ToolRoot, archives: Archives) -> Corpus:
    """The package of ``SUITE``, fetched and imported where it is not in the cache."""
    place = cache / "trees" / f"source-linux-{SUITE}-{LAYOUT}"
    with locked(place):
        if not (place / "corpus.json").exists():
            shutil.rmtree(place, ignore_errors=True)
            _make(place, tools, archives)
        known = json.loads((place / "corpus.json").read_text())
    return Corpus(repo=place, patches=place / "debian.tar.xz", **known)


def _make(place: Path, tools: ToolRoot, archives: Archives) -> None:
    scratch = place.with_name(place.name + ".new")
    shutil.rmtree(scratch, ignore_errors=True)
    apt = AptRoot(scratch / "apt", arch="amd64", suites=(SUITE,), archives=archives, sources=True)
    try:
        apt.update()
        package = apt.source("linux", scratch / "package")
        extract([apt.download_only(name) for name in ("dpkg-dev", "libdpkg-perl")], scratch / "dpkg")
        repo = make_bare(place)
        upstream = _import(repo, next(path for path in package.files if ".orig." in path.name), tools)
        made = _unpacked(repo, package, scratch, tools)
        shutil.copy(next(path for path in package.files if ".debian." in path.name), place / "debian.tar.xz")
        known = {"version": package.version, "upstream": upstream, "made": made}
        write_text(place / "corpus.json", json.dumps(known, indent=1))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _import(repo: git.Repo, archive: Path, tools: ToolRoot) -> str:
    with Process(tools.argv(["xz", "-dc", archive], read=[archive]), stdout=PIPE) as process:
        commit = import_tar(repo, process.stdout, archive.name)
        assert process.wait(60) == 0
    return commit


def _unpacked(repo: git.Repo, package: SourcePackage, scratch: Path, tools: ToolRoot) -> str:
    """Let Debian's own dpkg-source unpack and patch the package in the sandbox, and return the tree of what it made."""
    (scratch / "out").mkdir()
    argv = tools.argv(
        ["perl", "/dpkg/usr/bin/dpkg-source", "--no-check", "-x", f"/package/{package.description.name}", "/out/linux"],
        mounts=[(scratch / "dpkg", "/dpkg"), (package.description.parent, "/package")],
        write_mounts=[(scratch / "out", "/out")],
        env={"PERL5LIB": "/dpkg/usr/share/perl5"},
    )
    done = run(argv, timeout=1800)
    assert done.ok, done.output
    work = scratch / "out" / "linux"
    for own in ("debian", ".pc"):
        shutil.rmtree(work / own)
    with repo.git.custom_environment(**ISOLATED, GIT_INDEX_FILE=str(scratch / "index")):
        # Fast: on top of the upstream tree's index, only what differs is written.
        repo.git.read_tree("refs/heads/import")
        repo.git.execute(
            ["git", f"--git-dir={repo.git_dir}", f"--work-tree={work}", "-C", str(work), "add", "-A", "-f", "."]
        )
        return str(repo.git.write_tree())
