# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel working tree holds beyond a commit, as one patch: edits, new files, and commits since.

The user's repository is only read. The index is a copy of theirs, so that only files that changed are hashed, and new
objects go to our own repository, which borrows theirs.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import git

from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.series import Patch
from kpatch_ci.series.diff import find_diff
from kpatch_ci.series.gitrange import DIFF
from kpatch_ci.series.letter import split_lines
from kpatch_ci.store.gitenv import ISOLATED

TIMEOUT = 120.0
"""Seconds that one git command may take."""
SUBJECT = "changes of the working tree"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A working tree at one moment. ``patch`` is what it changes in the base; None where that is nothing."""

    tree_id: str
    patch: Patch | None


class WorkingTree:
    """``work`` as it is from time to time, against ``base`` (a commit). ``ours``: a bare repository that borrows its objects.

    Raises UserError where ``work`` is no working tree.
    """

    def __init__(self, work: Path, ours: Path, base: str) -> None:
        try:
            opened = git.Repo(work, search_parent_directories=True)
        except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
            raise UserError("no git working tree", where=str(work), expected="a kernel's git working tree") from error
        with opened:
            if opened.working_tree_dir is None:
                raise UserError(
                    "a bare repository has no files to edit", where=str(work), expected="a kernel's git working tree"
                )
            self.work = Path(opened.working_tree_dir)
            self._index = Path(opened.git_dir) / "index"
            self._exclude = Path(opened.common_dir) / "info" / "exclude"
        self._ours, self._base = ours, base

    def snapshot(self) -> Snapshot:
        """The working tree now. Raises InfrastructureError where git fails, as with a file that cannot be read."""
        with (
            tempfile.TemporaryDirectory(prefix="kpatch-ci-index-") as scratch,
            git.Repo(self._ours) as repo,
        ):
            index = Path(scratch) / "index"
            if self._index.exists():
                shutil.copy2(self._index, index)
            repo.git.update_environment(**ISOLATED, GIT_INDEX_FILE=str(index), GIT_ATTR_NOSYSTEM="1")
            self._git(repo, f"--work-tree={self.work}", "-C", str(self.work), "add", "-A", ".")
            tree_id = self._git(repo, "write-tree").decode().strip()
            diff = self._git(repo, *DIFF, f"{self._base}^{{tree}}", tree_id)
        return Snapshot(tree_id, self._patch(diff) if diff else None)

    def _git(self, repo: git.Repo, *words: str) -> bytes:
        settings = ("core.fsmonitor=false", "core.quotePath=true", f"core.excludesFile={self._exclude}")
        argv = ["git", f"--git-dir={self._ours}", *(word for one in settings for word in ("-c", one)), *words]
        try:
            said = repo.git.execute(
                argv, stdout_as_string=False, strip_newline_in_stdout=False, kill_after_timeout=TIMEOUT
            )
        except git.GitCommandError as error:
            raise InfrastructureError(f"git cannot read {self.work}", log=str(error.stderr).strip()) from error
        return said if isinstance(said, bytes) else said.encode("utf-8", "surrogateescape")

    def _patch(self, diff: bytes) -> Patch:
        found = find_diff(split_lines(diff), lambda line: f"{self.work}:{line + 1}", 1)
        data = found.data if found else b""
        return Patch(
            source=str(self.work),
            subject=SUBJECT,
            prefix="",
            author="",
            email="",
            message="",
            diff=data,
            paths=found.paths if found else (),
            digest=hashlib.sha256(data).hexdigest(),
            base_commit=self._base,
        )
