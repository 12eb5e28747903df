# SPDX-License-Identifier: GPL-2.0-or-later
"""Git repositories of kernel trees: made, filled and read without the user's git configuration having a say."""

from __future__ import annotations

import os
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import git

from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.store.gitenv import ISOLATED

_WHEN = "@0 +0000"
_WHO = "kpatch-ci <kpatch-ci@localhost> 0 +0000"
IDENTITY = {
    "GIT_AUTHOR_NAME": "kpatch-ci",
    "GIT_AUTHOR_EMAIL": "kpatch-ci@localhost",
    "GIT_AUTHOR_DATE": _WHEN,
    "GIT_COMMITTER_NAME": "kpatch-ci",
    "GIT_COMMITTER_EMAIL": "kpatch-ci@localhost",
    "GIT_COMMITTER_DATE": _WHEN,
}


@contextmanager
def git_errors(what: str) -> Iterator[None]:
    """Turn what git says when it fails into an InfrastructureError."""
    try:
        yield
    except git.GitCommandError as error:
        said = str(error.stderr).strip()
        full = "No space left" in said
        raise InfrastructureError(
            f"git cannot {what}", log=said, hint="free some disk space" if full else None
        ) from error


def open_repo(path: Path) -> git.Repo:
    """A repository, isolated from the user's configuration. Raises InfrastructureError when there is none."""
    try:
        repo = git.Repo(path)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
        raise InfrastructureError(f"{path} is no git repository") from error
    repo.git.update_environment(**ISOLATED)
    return repo


def make_bare(path: Path) -> git.Repo:
    """A new (or the old) bare repository at ``path``, tuned for one large import."""
    for lock in ("config.lock", "shallow.lock", "packed-refs.lock", "directory-index.lock"):
        (path / lock).unlink(missing_ok=True)  # a killed run's: whoever makes a repository holds its place's lock
    repo = git.Repo.init(path, mkdir=True, bare=True)
    settings = {("gc", "auto"): "0", ("pack", "compression"): "1", ("core", "looseCompression"): "1"}
    with repo.config_reader("repository") as known:
        missing = {key: value for key, value in settings.items() if str(known.get_value(*key, default="")) != value}
    if missing:
        with repo.config_writer() as config:
            for (section, option), value in missing.items():
                config.set_value(section, option, value)
    repo.git.update_environment(**ISOLATED, **IDENTITY)
    return repo


def kernel_release(repo: git.Repo, commit: str, where: str = "") -> str:
    """Kernel version from the tree's Makefile. Raises UserError, which names ``where``, when it has none."""
    where = where or str(repo.git_dir)
    try:
        text = repo.git.show(f"{commit}:Makefile")
    except git.GitCommandError as error:
        raise UserError(f"{commit[:12]} has no Makefile: this is no kernel tree", where=where) from error
    fields = {}
    for line in text.splitlines()[:20]:
        name, equals, value = line.partition("=")
        if equals:
            fields[name.strip()] = value.strip()
    if "VERSION" not in fields or "PATCHLEVEL" not in fields:
        raise UserError("the Makefile names no kernel version: this is no kernel tree", where=where)
    release = ".".join(fields[k] for k in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if fields.get(k))
    return f"{release}{fields.get('EXTRAVERSION', '')}"


def import_tar(repo: git.Repo, stream: IO[bytes], message: str) -> str:
    """Commit a tar stream's files (its first directory is dropped) and return the commit; one pack, no working tree.

    Author and date are pinned, so that the same tar gives the same commit everywhere.
    """
    read_end, write_end = os.pipe()
    failure: list[BaseException] = []

    def feed() -> None:
        try:
            with os.fdopen(write_end, "wb", buffering=1 << 20) as out:
                for chunk in _fast_import(stream, message):
                    out.write(chunk)
        except BaseException as error:  # handed to the caller's thread below
            failure.append(error)

    writer = threading.Thread(target=feed, daemon=True)
    writer.start()
    try:
        with os.fdopen(read_end, "rb") as source:
            repo.git.execute(["git", "fast-import", "--quiet", "--force"], istream=source)
    except git.GitCommandError as error:
        writer.join()
        cause = failure[0] if failure else error
        raise InfrastructureError("cannot import the kernel source into git", log=str(cause)) from cause
    writer.join()
    if failure:
        raise InfrastructureError("cannot read the kernel source", log=str(failure[0])) from failure[0]
    return str(repo.git.rev_parse("refs/heads/import"))


def _fast_import(stream: IO[bytes], message: str) -> Iterator[bytes]:
    text = message.encode()
    yield b"commit refs/heads/import\nauthor %s\ncommitter %s\n" % (_WHO.encode(), _WHO.encode())
    yield b"data %d\n%s\n" % (len(text), text)
    yield b"deleteall\n"
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            _, _, name = member.name.partition("/")
            if not name:
                continue
            path = b'"%s"' % name.encode().replace(b"\\", b"\\\\").replace(b'"', b'\\"')
            if member.issym():
                target = member.linkname.encode()
                yield b"M 120000 inline %s\ndata %d\n%s\n" % (path, len(target), target)
            elif member.isfile():
                source = archive.extractfile(member)
                data = source.read() if source else b""
                mode = b"100755" if member.mode & 0o100 else b"100644"
                yield b"M %s inline %s\ndata %d\n" % (mode, path, len(data))
                yield data
                yield b"\n"
