# SPDX-License-Identifier: GPL-2.0-or-later
"""A working tree as a patch: everything that differs from the base, and nothing written into the user's repository."""

from __future__ import annotations

import hashlib
from pathlib import Path

import git
import pytest

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.uncommitted import WorkingTree


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "linux"
    repo = git.Repo.init(place)
    (place / "kernel").mkdir()
    (place / "kernel/fair.c").write_text("int a;\nint b;\n")
    (place / "kernel/rt.c").write_text("int rt;\n")
    (place / ".gitignore").write_text("*.o\n")
    _commit(repo, "base")
    return place


def _commit(repo: git.Repo, message: str) -> str:
    repo.git.add("-A")
    repo.git.execute(["git", "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-q", "-m", message])
    return str(repo.head.commit.hexsha)


def _watched(work: Path, base: str = "HEAD") -> WorkingTree:
    ours = work.parent / "ours"
    git.Repo.init(ours, bare=True)
    (ours / "objects/info/alternates").write_text(f"{work / '.git/objects'}\n")
    return WorkingTree(work, ours, str(git.Repo(work).git.rev_parse(base)))


def _state(work: Path) -> dict[str, str]:
    inside = (path for path in sorted((work / ".git").rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in inside}


def test_a_tree_as_committed_changes_nothing(work: Path) -> None:
    snapshot = _watched(work).snapshot()
    assert snapshot.patch is None
    assert snapshot.tree_id == git.Repo(work).head.commit.tree.hexsha


def test_edits_new_files_and_deletions_are_one_patch(work: Path) -> None:
    tree = _watched(work)
    (work / "kernel/fair.c").write_text("int a;\nint c;\n")
    (work / "kernel/new.c").write_text("int new;\n")
    (work / "kernel/rt.c").unlink()
    (work / "kernel/fair.o").write_bytes(b"\x7fELF")
    found = tree.snapshot().patch
    assert found is not None
    assert set(found.paths) == {"kernel/fair.c", "kernel/new.c", "kernel/rt.c"}, "an ignored object is not part of it"
    assert b"-int b;\n+int c;\n" in found.diff
    assert found.base_commit == git.Repo(work).head.commit.hexsha


def test_the_patch_makes_the_tree_that_was_seen(work: Path, tmp_path: Path) -> None:
    tree = _watched(work)
    (work / "kernel/fair.c").write_text("int a;\nint c;\n")
    (work / "kernel/blob.bin").write_bytes(bytes(range(256)))
    (work / "kernel/rt.c").chmod(0o755)
    snapshot = tree.snapshot()
    assert snapshot.patch is not None
    other = git.Repo.clone_from(str(work), tmp_path / "other")
    (tmp_path / "p.diff").write_bytes(snapshot.patch.diff)
    other.git.apply("--index", str(tmp_path / "p.diff"))
    assert other.git.write_tree() == snapshot.tree_id


def test_commits_since_the_base_and_what_is_staged_count(work: Path) -> None:
    tree = _watched(work)
    repo = git.Repo(work)
    (work / "kernel/fair.c").write_text("int committed;\n")
    _commit(repo, "later")
    (work / "kernel/rt.c").write_text("int staged;\n")
    repo.git.add("kernel/rt.c")
    found = tree.snapshot().patch
    assert found is not None
    assert set(found.paths) == {"kernel/fair.c", "kernel/rt.c"}


def test_nothing_is_written_into_the_users_repository(work: Path) -> None:
    tree = _watched(work)
    (work / "kernel/fair.c").write_text("int a;\nint c;\n")
    before = _state(work)
    tree.snapshot()
    assert _state(work) == before


def test_a_file_that_was_touched_but_not_changed_is_the_same_tree(work: Path) -> None:
    tree = _watched(work)
    before = tree.snapshot().tree_id
    (work / "kernel/fair.c").write_text("int a;\nint b;\n")
    assert tree.snapshot().tree_id == before


def test_no_working_tree_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no git working tree"):
        WorkingTree(tmp_path, tmp_path, "HEAD")
    git.Repo.init(tmp_path / "bare.git", bare=True)
    with pytest.raises(UserError, match="bare repository has no files to edit"):
        WorkingTree(tmp_path / "bare.git", tmp_path, "HEAD")
