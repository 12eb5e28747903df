# SPDX-License-Identifier: GPL-2.0-or-later
"""A small kernel in a git repository of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import git
import pytest

from kpatch_ci.model.build import Tree
from kpatch_ci.model.series import Patch, Series

Files = Mapping[str, str]


class Lab:
    """Trees and the diffs between them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.repo = git.Repo.init(path)

    def tree(self, files: Files, release: str = "6.1.140") -> Tree:
        """A tree of these files, in the repository but in no commit."""
        self.repo.git.read_tree("--empty")
        for name, text in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
            self.repo.git.add("--force", name)
        tree_id = str(self.repo.git.write_tree())
        return Tree("lab", release, Path(self.repo.git_dir), "", tree_id, "made in a test")

    def commit(self, files: Files, subject: str, *parents: str, day: int = 1) -> str:
        """A commit of these files; ``day`` counts from the first of January 2020."""
        tree_id = self.tree(files).tree_id
        when = f"{1_577_836_800 + (day - 1) * 86_400} +0000"
        who = {"NAME": "Ada", "EMAIL": "ada@lamps.example", "DATE": when}
        identity = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
        words = [word for parent in parents for word in ("-p", parent)]
        with self.repo.git.custom_environment(**identity):
            return str(self.repo.git.commit_tree(tree_id, "-m", subject, *words))

    def at(self, commit: str, release: str = "6.1.140") -> Tree:
        """The tree of a commit."""
        tree_id = str(self.repo.git.rev_parse(f"{commit}^{{tree}}"))
        return Tree("lab", release, Path(self.repo.git_dir), commit, tree_id, "made in a test")

    def diff(self, old: Files, new: Files) -> bytes:
        """What git says is between two sets of files."""
        data = self.repo.git.diff(
            self.tree(old).tree_id, self.tree(new).tree_id, strip_newline_in_stdout=False, stdout_as_string=False
        )
        assert isinstance(data, bytes)
        return data

    def patch(self, old: Files, new: Files, subject: str = "lamp: Change it") -> Patch:
        """A patch that takes ``old`` to ``new``."""
        return make_patch(self.diff(old, new), subject)

    def text(self, tree_id: str | None, name: str) -> str:
        """A file of a tree."""
        return str(self.repo.git.cat_file("blob", f"{tree_id}:{name}", strip_newline_in_stdout=False))


def make_patch(diff: bytes, subject: str = "lamp: Change it") -> Patch:
    """A patch with this diff."""
    return Patch(
        source=f"{subject}.patch",
        subject=subject,
        prefix="[PATCH]",
        author="Ada Example",
        email="ada@lamps.example",
        message="",
        diff=diff,
        paths=("kernel/lamp.c",),
        digest=hashlib.sha256(diff).hexdigest(),
    )


def make_series(
    *patches: Patch, ports: Mapping[str, tuple[Patch, ...]] | None = None, members: tuple[Series, ...] = ()
) -> Series:
    """A series of these patches."""
    return Series("lamp", "title", "origin", patches, ports=ports or {}, members=members)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """An empty repository."""
    return Lab(tmp_path / "repo")


@pytest.fixture
def mails() -> Path:
    """Directory of the mails that were written for these tests."""
    return Path(__file__).parents[2] / "data" / "mails"


@pytest.fixture
def seeds() -> Path:
    """The project's own series folders."""
    return Path(__file__).parents[3] / "patches"
