# SPDX-License-Identifier: GPL-2.0-or-later
"""A tree that builds like a kernel, in a second: configuration, image and modules, nothing in them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import git

from kpatch_ci.kernel.git import IDENTITY, make_bare
from kpatch_ci.model.build import Tree
from kpatch_ci.store.gitenv import ISOLATED

MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 1
SUBLEVEL = 9
.PHONY: allnoconfig Image modules vmlinux
allnoconfig:
	cp $(KCONFIG_ALLCONFIG) $(O)/.config
vmlinux Image:
	mkdir -p $(O)/arch/arm64/boot $(O)/include/config
	cat $(CURDIR)/code > $(O)/vmlinux
	cp $(O)/vmlinux $(O)/arch/arm64/boot/Image
	echo 0 T start > $(O)/System.map
	echo 6.1.9 > $(O)/include/config/kernel.release
modules:
	touch $(O)/modules.order
"""


def fake_kernel(place: Path, *versions: Mapping[str, str]) -> tuple[Tree, tuple[str, ...]]:
    """The tree, and git tree ids with each version's files changed in it."""
    repo = make_bare(place)
    base = {"Makefile": MAKEFILE, "code": "code\n"}
    ids = tuple(_tree(repo, {**base, **files}) for files in ({}, *versions))
    commit = str(repo.git.commit_tree(ids[0], "-m", "base"))
    return Tree("fake", "6.1.9", place, commit, ids[0], "made by a test"), ids[1:]


def _tree(repo: git.Repo, files: Mapping[str, str]) -> str:
    with tempfile.TemporaryDirectory() as work:
        for name, text in files.items():
            path = Path(work) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        with repo.git.custom_environment(**ISOLATED, **IDENTITY, GIT_INDEX_FILE=f"{work}/.index"):
            where = [f"--git-dir={repo.git_dir}", f"--work-tree={work}"]
            repo.git.execute(["git", *where, "-C", work, "add", "-f", *files])
            return str(repo.git.write_tree())
