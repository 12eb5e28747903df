# SPDX-License-Identifier: GPL-2.0-or-later
"""Commits of a local repository as a series."""

from __future__ import annotations

from pathlib import Path

import git
import pytest

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.gitrange import read_range

WHO = {
    "GIT_AUTHOR_NAME": "Adä Example",
    "GIT_AUTHOR_EMAIL": "ada@lamps.example",
    "GIT_AUTHOR_DATE": "Mon, 5 Jan 2026 10:00:00 +0100",
    "GIT_COMMITTER_NAME": "Bob",
    "GIT_COMMITTER_EMAIL": "bob@lamps.example",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


@pytest.fixture
def repo(tmp_path: Path) -> git.Repo:
    """``v1`` and three commits of ``topic`` on it, HEAD on ``v1``; a configuration that would change every diff."""
    made = git.Repo.init(tmp_path / "r", initial_branch="main")
    made.git.update_environment(**WHO)
    commit(made, "base", {"kernel/lamp.c": "\n".join(f"\tline{i}();" for i in range(40)) + "\n"})
    made.git.tag("v1")
    made.git.checkout("-q", "-b", "topic")
    commit(made, "[lamps] lamp: A\nfolded subject\n\nWords.\n\nMore words.", {"kernel/lamp.c": "\tone();\n"})
    commit(made, "lamp: B", {"füße.c": "two();", "pic": "\0binary"})
    commit(made, "lamp: Nothing", {})
    made.git.checkout("-q", "main")
    for key, value in (("diff.noprefix", "true"), ("diff.external", "false"), ("core.quotePath", "false"), ("color.ui", "always"),
                       ("diff.renames", "copies"), ("diff.context", "0"), ("i18n.logOutputEncoding", "latin1")):  # fmt: skip
        made.git.config(key, value)
    return made


def commit(repo: git.Repo, message: str, files: dict[str, str]) -> str:
    """A commit of these files; its id."""
    for name, text in files.items():
        file = Path(repo.working_dir) / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        repo.git.add("-f", name)
    repo.git.commit("-q", "--allow-empty", "-m", message)
    return repo.head.commit.hexsha


@pytest.mark.parametrize("words", ["v1..topic", "topic", "main..topic", "..topic"])
def test_each_commit_of_a_range_or_branch_is_a_patch_and_gives_the_commits_tree(repo: git.Repo, words: str) -> None:
    place = Path(repo.working_dir)
    patches, account = read_range(place, words)
    assert [patch.subject for patch in patches] == ["[lamps] lamp: A folded subject", "lamp: B"]
    assert [(patch.author, patch.email, patch.date) for patch in patches] == [
        ("Adä Example", "ada@lamps.example", "Mon, 05 Jan 2026 10:00:00 +0100")
    ] * 2
    assert (patches[0].message, patches[0].prefix) == ("Words.\n\nMore words.", "")
    assert patches[1].paths == ("füße.c", "pic")
    base = repo.commit("v1").hexsha
    assert (patches[0].base_commit, account.base_commit, patches[1].base_commit) == (base, base, "")
    assert [patch.message_id for patch in patches] == [repo.commit("topic~2").hexsha, repo.commit("topic~1").hexsha]
    assert [(one.subject, one.reason) for one in account.left_out] == [("lamp: Nothing", "changes nothing")]
    assert account.notes == (f"2 commit(s) of {words} in {place}, on {base[:12]}",)
    repo.git.read_tree(base)
    for patch in patches:
        (place / "diff").write_bytes(patch.diff)
        repo.git.apply("--cached", "diff")
    assert repo.git.write_tree() == repo.commit("topic").tree.hexsha


def test_a_range_is_read_from_a_directory_below_the_repositorys_root(repo: git.Repo) -> None:
    assert len(read_range(Path(repo.working_dir) / "kernel", "v1..topic")[0]) == 2


def test_the_first_commit_of_a_repository_has_no_base(repo: git.Repo) -> None:
    repo.git.checkout("-q", "--orphan", "new")
    first = commit(repo, "first", {"a": "a\n"})
    patches, account = read_range(Path(repo.working_dir), f"main..{first}")
    assert (len(patches), account.base_commit) == (1, "")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("v1..missing", "no commit missing"),
        ("v1...topic", "symmetric difference"),
        ("topic..v1", r"no commit in topic\.\.v1"),
        ("main", r"no commit in HEAD\.\.main"),
        ("topic~1..topic", "change nothing"),
        ("--all", "no commit --all"),
        ("--output=x..topic", "no commit --output=x"),
        ("v1:kernel..topic", "no commit v1:kernel"),
    ],
)
def test_what_is_no_range_of_patches_is_said(repo: git.Repo, words: str, what: str) -> None:
    with pytest.raises(UserError, match=what) as caught:
        read_range(Path(repo.working_dir), words)
    assert caught.value.where == repo.working_dir
    assert caught.value.expected
    assert not (Path(repo.working_dir) / "x..topic").exists()


def test_merges_are_refused_by_name(repo: git.Repo) -> None:
    commit(repo, "on main", {"other.c": "x\n"})
    repo.git.merge("-q", "--no-ff", "-m", "merge", "topic")
    with pytest.raises(UserError, match=f"merges in v1..main: {repo.head.commit.hexsha[:12]}"):
        read_range(Path(repo.working_dir), "v1..main")


def test_no_repository_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no git repository"):
        read_range(tmp_path, "a..b")
    with pytest.raises(UserError, match="no git repository"):
        read_range(tmp_path / "missing", "a..b")
