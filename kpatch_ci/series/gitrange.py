# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches from a local git repository: the commits of a range or of a branch, read without the user's git configuration."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path

import git

from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.series import Intake, LeftOut, Patch
from kpatch_ci.series.diff import find_diff
from kpatch_ci.series.letter import split_lines
from kpatch_ci.store.gitenv import ISOLATED

TIMEOUT = 120.0
"""Seconds that one git command may take."""
MAX_COMMITS = 2000
_EXPECTED = "a range such as v6.1..topic, or a branch, of the repository that --repo (or -t) names"
DIFF = (
    "diff-tree", "-p", "-r", "--root", "--binary", "--full-index", "--find-renames", "--no-ext-diff", "--no-textconv", "--no-color",
    "--src-prefix=a/", "--dst-prefix=b/", "--no-commit-id", "--end-of-options",
)  # fmt: skip


def read_range(repo: Path, words: str) -> tuple[tuple[Patch, ...], Intake]:
    """A patch for each commit of ``FROM..TO`` (of a branch: those that HEAD has not), oldest first.

    Raises UserError where there is no such range, it is empty or has a merge in it, InfrastructureError where the
    repository cannot be read.
    """
    try:
        opened = git.Repo(repo.expanduser(), search_parent_directories=True)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
        raise UserError("no git repository", where=str(repo), expected="the repository that has the range") from error
    with opened:
        opened.git.update_environment(**_environment())
        commits, base = _commits(opened, words, repo)
        patches = [_patch(opened, commit, repo) for commit in commits]
    taken = tuple(patch for patch in patches if patch.diff)
    if not taken:
        raise UserError(f"the commits of {words} change nothing", where=str(repo), expected=_EXPECTED)
    left = tuple(LeftOut(patch.source, patch.subject, "changes nothing") for patch in patches if not patch.diff)
    taken = (replace(taken[0], base_commit=base), *taken[1:])
    note = f"{len(taken)} commit(s) of {words} in {repo}" + (f", on {base[:12]}" if base else "")
    account = Intake(tuple(patch.source for patch in taken), left, (note,), base_commit=base)
    return taken, account


def _commits(repo: git.Repo, words: str, where: Path) -> tuple[list[git.Commit], str]:
    names = words if ".." in words else f"HEAD..{words}"
    if "..." in words:
        raise UserError(f"{words} is a symmetric difference", where=str(where), expected=_EXPECTED)
    for end in filter(None, names.split("..")):
        if _git(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{end}^{{commit}}")[0]:
            raise UserError(f"no commit {end}", where=str(where), expected=_EXPECTED)
    code, out = _git(
        repo, "rev-list", "--reverse", "--topo-order", f"--max-count={MAX_COMMITS + 1}", "--end-of-options", names
    )
    if code:
        raise InfrastructureError(f"git cannot list {words} in {where}", log=out, hint="git fsck says what is damaged")
    ids = out.split()
    if not ids:
        raise UserError(f"no commit in {names}", where=str(where), expected=_EXPECTED)
    if len(ids) > MAX_COMMITS:
        raise UserError(f"more than {MAX_COMMITS} commits in {names}", where=str(where), expected="the commits to test")
    commits = [repo.commit(name) for name in ids]
    merges = [commit.hexsha[:12] for commit in commits if len(commit.parents) > 1]
    if merges:
        raise UserError(
            f"merges in {names}: {', '.join(merges[:5])}",
            where=str(where),
            expected="a line of commits (git rebase makes one)",
        )
    for older, newer in pairwise(commits):
        if newer.parents and newer.parents[0].hexsha != older.hexsha:
            raise UserError(
                f"{newer.hexsha[:12]} does not follow on {older.hexsha[:12]}",
                where=str(where),
                expected="one line of commits",
            )
    return commits, commits[0].parents[0].hexsha if commits[0].parents else ""


def _patch(repo: git.Repo, commit: git.Commit, where: Path) -> Patch:
    code, data = _git_bytes(repo, *DIFF, commit.hexsha)
    if code:
        raise InfrastructureError(f"git cannot show {commit.hexsha} in {where}", hint="git fsck says what is damaged")
    source = f"{where}@{commit.hexsha[:12]}"
    found = find_diff(split_lines(data), lambda line: f"{source}:{line + 1}", 1) if data else None
    text = commit.message if isinstance(commit.message, str) else commit.message.decode(errors="replace")
    subject, _, message = text.strip("\n").partition("\n\n")
    return Patch(
        source=source,
        subject=" ".join(subject.split()),
        prefix="",
        author=commit.author.name or "",
        email=commit.author.email or "",
        message=message.strip("\n"),
        diff=found.data if found else b"",
        paths=found.paths if found else (),
        digest=hashlib.sha256(found.data if found else b"").hexdigest(),
        message_id=commit.hexsha,
        date=format_datetime(commit.authored_datetime),
    )


def _git(repo: git.Repo, *words: str) -> tuple[int, str]:
    code, data = _git_bytes(repo, *words)
    return code, data.decode(errors="replace")


def _git_bytes(repo: git.Repo, *words: str) -> tuple[int, bytes]:
    code, out, err = repo.git.execute(
        ["git", "-c", "core.quotePath=true", "-c", "diff.suppressBlankEmpty=false", *words],
        with_extended_output=True,
        with_exceptions=False,
        stdout_as_string=False,
        strip_newline_in_stdout=False,
        kill_after_timeout=TIMEOUT,
    )
    data = out if isinstance(out, bytes) else out.encode("utf-8", "surrogateescape")
    return code, data or (err.encode() if isinstance(err, str) else err)


def _environment() -> dict[str, str]:
    return {
        **ISOLATED,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_EXTERNAL_DIFF": "",
        "GIT_DIFF_OPTS": "",
        "GIT_NO_LAZY_FETCH": "1",
    }
