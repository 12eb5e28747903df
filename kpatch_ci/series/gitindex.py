# SPDX-License-Identifier: GPL-2.0-or-later
"""A private index over a repository: patches become trees without a working tree, and nobody's checkout or index is touched."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import git

from kpatch_ci.model.errors import InfrastructureError

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
    """An index file in ``scratch`` that holds a tree; new objects go to the repository's store.

    Raises InfrastructureError where the repository cannot be read or written.
    """

    def __init__(self, repo: Path, scratch: Path) -> None:
        try:
            self._repo = git.Repo(repo.resolve())
        except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
            raise InfrastructureError(
                f"no git repository at {repo}", hint="the tree has to be imported again: ./kpatch-ci clean trees"
            ) from error
        self._scratch = scratch
        self._git = self._repo.git
        self._git.update_environment(**_environment(Path(self._repo.git_dir), scratch))

    def __enter__(self) -> PrivateIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self._repo.close()

    def read(self, tree_id: str) -> None:
        """Make the index hold ``tree_id``."""
        self._must("read-tree", tree_id)

    def write(self) -> str:
        """Tree object of what the index holds."""
        return self._must("write-tree").strip()

    def apply(self, diff: bytes, *options: str) -> Applied:
        """Apply a diff to the index, all of it or (``--3way`` aside) nothing. Offsets are allowed, fuzz never."""
        patch = self._scratch / "patch"
        patch.write_bytes(diff)
        code, _, said = self._run("apply", "--cached", "-v", "--whitespace=nowarn", *options, str(patch))
        return Applied(code == 0, said)

    def has_blobs(self, names: tuple[str, ...]) -> bool:
        """Whether every (abbreviated) blob id is in the repository."""
        return all(self._run("cat-file", "-e", f"{name}^{{blob}}")[0] == 0 for name in names)

    def file(self, path: str) -> bytes | None:
        """A file's bytes as the index has it, None where it has none."""
        code, data, _ = self._run("cat-file", "blob", f":0:{path}")
        return data if code == 0 else None

    def changed_paths(self, old: str, new: str) -> tuple[str, ...]:
        """Paths that differ between two trees."""
        listed = self._must("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)
        return tuple(path for path in listed.split("\0") if path)

    def _must(self, *words: str) -> str:
        code, data, said = self._run(*words)
        if code != 0:
            raise InfrastructureError(
                f"git {words[0]} failed in {self._repo.git_dir}",
                log=said,
                hint="the repository must be complete and writable, and the disk not full",
            )
        return data.decode("utf-8", "surrogateescape")

    def _run(self, *words: str) -> tuple[int, bytes, str]:
        settings = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
        code, out, err = self._git.execute(
            ["git", *settings, *words],
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
            kill_after_timeout=TIMEOUT,
        )
        return code, _bytes(out), _bytes(err).decode(errors="replace")


def _bytes(output: str | bytes) -> bytes:
    return output.encode("utf-8", "surrogateescape") if isinstance(output, str) else output


def _environment(git_dir: Path, scratch: Path) -> dict[str, str]:
    """git as it is without anybody's settings. The working tree is an empty directory, so no file there has a say either."""
    return {
        "GIT_DIR": str(git_dir),
        "GIT_WORK_TREE": str(scratch),
        "GIT_INDEX_FILE": str(scratch / "index"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_CONFIG_COUNT": "0",
        "GIT_CONFIG_PARAMETERS": "",
        "GIT_TRACE": "0",
        "LC_ALL": "C",
    }
