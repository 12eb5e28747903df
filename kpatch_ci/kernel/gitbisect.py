# SPDX-License-Identifier: GPL-2.0-or-later
"""git bisect, in a bare repository of our own that borrows the objects: nobody's HEAD, refs or bisect state are touched.

Git picks the commits, handles merges, paths and skipped ranges, and says when it is done. Its state is made anew from our own
notes by whoever goes on with a bisection, so it does not matter in what state a killed process left it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import git

from kpatch_ci.kernel.git import make_bare
from kpatch_ci.model.bisect import Class, Commit
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.store.atomic import write_text
from kpatch_ci.store.gitenv import ISOLATED

READ_ONLY = {**ISOLATED, "GIT_NO_REPLACE_OBJECTS": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
_FORMAT = "%H%x00%T%x00%P%x00%an%x00%ae%x00%as%x00%s"
_ESTIMATE = re.compile(r"Bisecting: (\d+) revisions? left to test after this \(roughly (\d+) steps?\)")
_FIRST_BAD = re.compile(r"^([0-9a-f]{40,64}) is the first bad commit$", re.M)
_POSSIBLE = re.compile(r"^# possible first bad commit: \[([0-9a-f]{40,64})\]", re.M)
_MARK = re.compile(r"^git bisect (good|bad|skip) ((?:[0-9a-f]{7,64} ?)+)$")
_QUOTED = re.compile(r"^# (good|bad|skip): \[([0-9a-f]{40,64})\]")


@dataclass(frozen=True, slots=True)
class Next:
    """A commit to be tested. ``left`` and ``steps``: git's estimate of what comes after it; None for a merge base."""

    hash: str
    left: int | None = None
    steps: int | None = None

    @property
    def merge_base(self) -> bool:
        """Whether it is asked about because good is no ancestor of bad."""
        return self.steps is None


@dataclass(frozen=True, slots=True)
class Done:
    """Git has nothing more to ask. One ``first_bad``, or the ``candidates`` among which skipped commits hide it, or neither."""

    said: str
    first_bad: str = ""
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Range:
    """Two ends in a repository. ``count``: commits that bad has and good has not. ``ancestor``: whether good is one of bad."""

    good: str
    bad: str
    count: int
    ancestor: bool


def read_range(place: Path, good: str, bad: str, options: Sequence[str] = ()) -> Range:
    """Look at both ends, before any long work. ``options``: as `git rev-list` takes them (--first-parent, -- PATHS).

    Raises UserError: no repository, no such commit, equal ends, nothing in common, a history that is cut off between them.
    """
    repo = _open(place)
    with repo:
        ids = [_commit_id(repo, name, option, place) for name, option in ((good, "--good"), (bad, "--bad"))]
        if ids[0] == ids[1]:
            raise UserError(f"{good} and {bad} are the same commit {ids[0][:12]}", expected="two that differ")
        bases = _git(repo, "merge-base", "--all", *ids)[1].split()
        cut = _cut(repo, ids)
        if cut:
            raise UserError(
                f"{place} is a shallow clone: its history ends between {good} and {bad}, at {cut[:12]}",
                where="--tree",
                expected="all of the history between them: git fetch --unshallow",
            )
        if not bases:
            raise UserError(f"{good} and {bad} have no history in common", where=str(place), expected="good before bad")
        if ids[1] in bases:
            what = f"bad ({bad}) comes before good ({good})"
            raise UserError(what, expected="exchange them, if you look for what mended it")
        words = ("--first-parent",) if "--first-parent" in options else ()
        paths = options[options.index("--") :] if "--" in options else ()
        count = int(_git(repo, "rev-list", "--count", *words, ids[1], f"^{ids[0]}", *paths)[1])
    if not count:
        raise UserError(f"no commit of {good}..{bad} touches these paths", where="--path", expected="paths of the tree")
    return Range(ids[0], ids[1], count, ids[0] in bases)


def _open(place: Path) -> git.Repo:
    try:
        repo = git.Repo(place.expanduser())
    except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
        raise UserError(
            f"{place} is no git repository on this machine", where="--tree", expected="a clone that has both ends"
        ) from error
    repo.git.update_environment(**READ_ONLY)
    return repo


def _commit_id(repo: git.Repo, name: str, option: str, place: Path) -> str:
    code, out = _git(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if code or not out.strip():
        raise UserError(f"no commit {name} in {place}", where=option, expected="a branch, tag or hash of it")
    return out.strip()


def _cut(repo: git.Repo, ids: Sequence[str]) -> str:
    """A commit between the ends at which a shallow clone stops; empty where there is none."""
    listed = Path(repo.common_dir) / "shallow"
    if not listed.is_file():
        return ""
    ends = set(listed.read_text().split())
    between = _git(repo, "rev-list", ids[1], f"^{ids[0]}")[1].split()
    return next((one for one in between if one in ends), "")


def _git(repo: git.Repo, *words: str) -> tuple[int, str]:
    code, out, _ = repo.git.execute(["git", *words], with_extended_output=True, with_exceptions=False)
    return int(code), str(out)


class GitBisect:
    """One bisection of ``objects``' commits, with git's state below ``place``. Not for two threads."""

    def __init__(self, place: Path, objects: Path, options: Sequence[str] = ()) -> None:
        self._options = tuple(options)
        own = place / "repo.git"
        shutil.rmtree(own, ignore_errors=True)
        self._repo = make_bare(own)
        self._repo.git.update_environment(GIT_NO_REPLACE_OBJECTS="1")
        write_text(own / "objects/info/alternates", f"{objects.absolute() / 'objects'}\n")
        if (objects / "shallow").is_file():
            write_text(own / "shallow", (objects / "shallow").read_text())
        self._own = own

    def start(self, good: str, bad: str) -> Next | Done:
        """Begin. Raises InfrastructureError where git cannot."""
        write_text(self._own / "HEAD", f"{bad}\n")  # git bisect wants one that exists
        before = self._options.index("--") if "--" in self._options else len(self._options)
        return self._told("start", *self._options[:before], bad, good, *self._options[before:])

    def mark(self, commit: str, cls: Class) -> Next | Done:
        """Tell git what a commit is; what is next."""
        return self._told(str(cls), commit)

    def log(self) -> str:
        """As `git bisect log` gives it."""
        return _git(self._repo, "bisect", "log")[1] + "\n"

    def commit(self, name: str) -> Commit:
        """What git knows of a commit."""
        code, out = _git(self._repo, "show", "-s", "--no-show-signature", f"--format={_FORMAT}", name)
        fields = out.split("\0")
        if code or len(fields) != 7:
            raise InfrastructureError(f"git cannot read commit {name}", log=out, hint="git fsck says what is damaged")
        return Commit(fields[0], fields[1], tuple(fields[2].split()), *fields[3:])

    def files(self, commit: Commit) -> tuple[str, ...]:
        """Files that a commit changes, against its first parent."""
        argv = ("diff-tree", "-r", "-z", "--no-commit-id", "--name-only", "--root")
        ends = (commit.parents[0], commit.hash) if commit.parents else (commit.hash,)
        return tuple(filter(None, _git(self._repo, *argv, *ends)[1].split("\0")))

    def _told(self, *words: str) -> Next | Done:
        code, out, err = self._repo.git.execute(
            ["git", "bisect", *words], with_extended_output=True, with_exceptions=False
        )
        said = f"{out}\n{err}".strip()
        found = _FIRST_BAD.search(said)
        if found:
            return Done(said, first_bad=found[1])
        if "only 'skip'ped commits left" in said:
            return Done(said, candidates=tuple(_POSSIBLE.findall(self.log())))
        if re.search(r"^The merge base \S+ is bad", said, re.M):
            return Done(said)
        estimate = _ESTIMATE.search(said)
        if estimate is None and "a merge base must be tested" not in said:
            raise InfrastructureError(f"git bisect {words[0]} failed (exit status {code})", log=said)
        asked = (self._own / "BISECT_HEAD").read_text().strip()
        return Next(asked, int(estimate[1]), int(estimate[2])) if estimate else Next(asked)


def read_log(text: str, where: str) -> dict[str, Class]:
    """Marks of a git bisect log, commit -> class, its two ends among them. Raises UserError for a text that is none."""
    marks: dict[str, Class] = {}
    started = False
    for line in text.splitlines():
        started = started or line.startswith("git bisect start")
        if quoted := _QUOTED.match(line):
            marks[quoted[2]] = Class(quoted[1])
        elif mark := _MARK.match(line.strip()):
            marks.update(dict.fromkeys(mark[2].split(), Class(mark[1])))
    if not started:
        raise UserError("no log of git bisect", where=where, expected="what `git bisect log` prints")
    return marks
