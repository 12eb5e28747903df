# SPDX-License-Identifier: GPL-2.0-or-later
"""A private index over a repository: patches become trees without a working tree, and nobody's checkout or index is touched."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

import git

from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.series.splice import splice
from kpatch_ci.store.gitenv import ALONE

TIMEOUT = 120.0
"""Seconds that one git command may take."""

_OFFSET = re.compile(r"^Hunk #\d+ succeeded at \d+ \(offset (-?\d+) lines?\)", re.MULTILINE)
_SETTINGS = {
    "apply.ignoreWhitespace": "no",
    "apply.whitespace": "nowarn",
    "core.autocrlf": "false",
    "core.quotePath": "false",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
}
"""What the repository's own configuration must not decide."""
_TYPES = ("blob", "tree", "commit")


@dataclass(frozen=True, slots=True)
class Applied:
    """What git apply did. ``said`` is its output."""

    ok: bool
    said: str

    @property
    def offsets(self) -> tuple[int, ...]:
        """Lines by which each hunk that moved was moved, in order."""
        return tuple(int(match) for match in _OFFSET.findall(self.said))


class PrivateIndex:
    """An index file in ``scratch`` that holds what matters of a tree; new objects go to the repository's store.

    A kernel's index is 8 MB, and every git command reads all of it. So this one holds only the paths that ``focus``
    names, and ``write`` puts what changed there back into the tree that was read. Raises InfrastructureError where the
    repository cannot be read or written.
    """

    def __init__(self, repo: Path, scratch: Path) -> None:
        try:
            self._repo = git.Repo(repo.resolve())
        except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
            raise InfrastructureError(
                f"no git repository at {repo}", hint="the tree has to be imported again: ./kpatch-ci clean trees"
            ) from error
        self._scratch = scratch
        self._git = git.Git(str(scratch))  # git apply leaves *.rej files where it runs
        self._git.update_environment(**_environment(Path(self._repo.git_dir), scratch))
        self._paths: tuple[str, ...] = ()
        self._base, self._held = "", ""
        self._kept: dict[str, str] = {}

    def __enter__(self) -> PrivateIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self._repo.close()

    def focus(self, paths: Iterable[str]) -> None:
        """Hold only these paths from the next ``read`` on (what of them is a directory with all that is in it)."""
        self._paths = tuple(dict.fromkeys(paths))
        self._kept.clear()

    def read(self, tree_id: str) -> None:
        """Make the index hold ``tree_id``; cheap where it did so before."""
        if tree_id not in self._kept:
            self.must("cat-file", "-e", f"{tree_id}^{{tree}}")
            self._kept[tree_id] = self._entries(tree_id)
        self._base, self._held = tree_id, self._kept[tree_id]
        (self._scratch / "index").unlink(missing_ok=True)
        self.must("update-index", "-z", "--index-info", stdin=self._held)

    def write(self) -> str:
        """Tree object of what the index holds, the paths outside the focus as in the tree that was read."""
        held = self.must("ls-files", "-s", "-z")
        before, after = _by_path(self._held), _by_path(held)
        changes = {path: after.get(path, "") for path in {*before, *after} if before.get(path) != after.get(path)}
        if changes:  # what the next patch of the series changes is put into this tree: a patch costs its own files only
            self._base = splice(self._base, changes, lambda *words, stdin="": self.must(*words, stdin=stdin))
            self._held = held
        return self._base

    def _entries(self, tree_id: str) -> str:
        """Lines for update-index: the focus, and files that stand where a path of it needs a directory."""
        if not self._paths:
            return ""
        above = {str(parent) for path in self._paths for parent in PurePosixPath(path).parents} - {"."}
        entries = self.must("ls-tree", "-r", "-z", tree_id, "--", *self._paths)
        if above:
            listed = self.must("ls-tree", "-z", tree_id, "--", *sorted(above)).split("\0")
            entries += "".join(f"{line}\0" for line in listed if line and " tree " not in line.partition("\t")[0])
        return entries

    def apply(self, diff: bytes, *options: str) -> Applied:
        """Apply a diff to the index, all of it or (``--3way`` aside) nothing. Offsets are allowed, fuzz never."""
        patch = self._scratch / "patch"
        patch.write_bytes(diff)
        code, _, said = self._run("apply", "--cached", "-v", "--whitespace=nowarn", *options, str(patch))
        return Applied(code == 0, said)

    def has_blobs(self, names: Iterable[str]) -> bool:
        """Whether every (abbreviated) blob id is in the repository."""
        return all(self.blobs(names).values())

    def blobs(self, names: Iterable[str]) -> dict[str, str]:
        """Full ids of (abbreviated) blob ids; empty for one that is not in the repository, or not the only one."""
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}
        asked = "".join(f"{name}^{{blob}}\n" for name in wanted)
        said = self.must("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
        found = (line.split(" ") for line in said.splitlines() if line)
        answers = [words[0] if words[1:] == ["blob"] else "" for words in found if words[0] != "dangling"]
        return dict(zip(wanted, answers, strict=False))

    def git(self, *words: str, timeout: float = TIMEOUT) -> str | None:
        """What a git command of another kind prints, None where it fails or takes longer than ``timeout`` seconds."""
        code, data, _ = self._run(*words, timeout=timeout)
        return data.decode("utf-8", "surrogateescape") if code == 0 else None

    def file(self, path: str, tree_id: str = "") -> bytes | None:
        """A file's bytes as the index has it, or as a tree has it, None where there is none."""
        code, data, _ = self._run("cat-file", "blob", f"{tree_id}:{path}" if tree_id else f":0:{path}")
        return data if code == 0 else None

    def changed_paths(self, old: str, new: str) -> tuple[str, ...]:
        """Paths that differ between two trees."""
        listed = self.must("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)
        return tuple(path for path in listed.split("\0") if path)

    @property
    def git_dir(self) -> Path:
        """The repository."""
        return Path(self._repo.git_dir)

    def must(self, *words: str, stdin: str = "") -> str:
        """What a git command prints. Raises InfrastructureError where it fails."""
        code, data, said = self._run(*words, stdin=stdin)
        if code != 0:
            raise InfrastructureError(
                f"git {words[0]} failed in {self._repo.git_dir}",
                log=said,
                hint="the repository must be complete and writable, and the disk not full",
            )
        return data.decode("utf-8", "surrogateescape")

    def _run(self, *words: str, stdin: str = "", timeout: float = TIMEOUT) -> tuple[int, bytes, str]:
        settings = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
        with tempfile.TemporaryFile(dir=self._scratch) as source:
            source.write(stdin.encode("utf-8", "surrogateescape"))
            source.seek(0)
            ended = self._git.execute(
                ["git", "--literal-pathspecs", *settings, *words],
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                istream=cast("BinaryIO", source),
                kill_after_timeout=timeout,
            )
        code, out, err = cast("tuple[int, str | bytes, str | bytes]", ended)
        return code, _bytes(out), _bytes(err).decode(errors="replace")


def _by_path(entries: str) -> dict[str, str]:
    """Path -> ``mode blob`` of the lines of ls-tree and of ls-files."""
    found = {}
    for line in filter(None, entries.split("\0")):
        words, _, path = line.partition("\t")
        mode, *middle = words.split(" ")
        found[path] = f"{mode} {middle[1] if middle[0] in _TYPES else middle[0]}"
    return found


def isolated(git_dir: Path) -> list[str]:
    """Beginning of a git command that no setting of a user or a repository has a say in, for use without a PrivateIndex."""
    environment = {**_environment(git_dir, git_dir), "GIT_WORK_TREE": str(git_dir)}
    variables = [f"{name}={value}" for name, value in environment.items() if name != "GIT_INDEX_FILE"]
    settings = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
    return ["env", *variables, "git", "--literal-pathspecs", *settings, "-c", "log.showSignature=false"]


def isolated_work(git_dir: Path | None, directory: Path | None) -> list[str]:
    """The same for a command that works in a working tree of ours. git's identity is pinned; nobody's hooks run."""
    environment = _environment(Path(), Path())
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        del environment[name]
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "kpatch-ci", f"GIT_{role}_EMAIL": "kpatch-ci@localhost"}
    cleared = [word for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE") for word in ("-u", name)]
    variables = [f"{name}={value}" for name, value in environment.items()]
    settings = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
    place = ["-C", str(directory)] if directory else ["--git-dir", str(git_dir)]
    return ["env", *cleared, *variables, "git", *place, *settings]


def _bytes(output: str | bytes) -> bytes:
    return output.encode("utf-8", "surrogateescape") if isinstance(output, str) else output


def _environment(git_dir: Path, scratch: Path) -> dict[str, str]:
    """git as it is without anybody's settings. The working tree is an empty directory, so no file there has a say either."""
    return {
        "GIT_DIR": str(git_dir),
        "GIT_WORK_TREE": str(scratch),
        "GIT_INDEX_FILE": str(scratch / "index"),
        **ALONE,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_CONFIG_COUNT": "0",
        "GIT_CONFIG_PARAMETERS": "",
        "GIT_TRACE": "0",
    }
