# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel trees: a Debian release's source, a git repository with a ref, or a directory; each becomes a git tree.

    debian:6.1            linux-source-6.1 of the Debian suite that has it: the newest that was imported
    debian:6.1=6.1.140-1  that version, where it was imported before a newer one was
    PATH or PATH@REF      a git repository (its HEAD, or REF), or a plain directory
    URL@REF               a remote repository; only REF is fetched

Nothing is fetched or imported twice, and nothing is ever written into the user's own repository.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import git

from kpatch_ci.debian.apt import AptRoot, Archives, Package, extract
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.kernel.git import IDENTITY, git_errors, import_tar, kernel_release, make_bare, open_repo
from kpatch_ci.model.build import Tree
from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.process import PIPE, Process
from kpatch_ci.store.atomic import write_text
from kpatch_ci.store.cache import locked
from kpatch_ci.store.gitenv import ISOLATED

SUITES = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie"}
"""Debian release that carries a kernel version as its own; others are looked for in NEWER."""
NEWER = ("trixie-backports", "forky", "sid")
IMPORT_VERSION = 1
TREE = "tree.json"
"""Describes the newest version that was imported; each has a file of its own beside it."""
FETCH_TIMEOUT = 1800
"""Seconds that a fetch from a remote repository may take."""
_REMOTE = re.compile(r"^(https?|git|ssh|file)://|^[\w.-]+@[\w.-]+:")


def split_ref(spec: str) -> tuple[str, str]:
    """``PLACE@REF`` -> PLACE and REF (empty where there is none). A ref may hold slashes; ``user@host:path`` is no ref."""
    if Path(spec).expanduser().exists():
        return spec, ""
    place, at, ref = spec.rpartition("@")
    return (place, ref) if at and place and ":" not in ref else (spec, "")


def is_remote(spec: str) -> bool:
    """Whether a tree is named by a URL."""
    return bool(_REMOTE.match(spec))


class TreeCache:
    """Kernel trees below ``<cache>/trees``, by what they were asked as."""

    def __init__(self, cache: Path, tools: ToolRoot, archives: Archives) -> None:
        self.root = cache / "trees"
        self.tools = tools
        self.archives = archives

    def will_fetch(self, spec: str) -> bool:
        """Whether ``get`` will take a while: a Debian tree that is not here yet, or a remote one."""
        if spec.startswith("debian:"):
            version, _, package = spec.removeprefix("debian:").partition("=")
            return not package and _read(self._debian_place(version) / TREE) is None
        return bool(_REMOTE.match(spec))

    def _debian_place(self, version: str) -> Path:
        return self.root / f"debian-{version}-{IMPORT_VERSION}"

    def get(self, spec: str) -> Tree:
        """The tree that ``spec`` names. Raises UserError (no such thing) or InfrastructureError (cannot fetch it)."""
        if spec.startswith("debian:"):
            return self._debian(spec)
        where, ref = split_ref(spec)
        if _REMOTE.match(spec):
            with git_errors(f"get {spec}"):
                return self._remote(spec, where, ref or "HEAD")
        path = Path(where).expanduser().absolute()
        if not path.is_dir():
            raise UserError(
                f"no such tree: {spec}", where="tree", expected="debian:X.Y, a git repository[@ref], or a directory"
            )
        if (path / ".git").exists() or (path / "objects").is_dir():
            with git_errors(f"read {spec}"):
                return self._local(spec, path, ref or "HEAD")
        with git_errors(f"import {spec}"):
            return self._directory(spec, path)

    def _debian(self, spec: str) -> Tree:
        version, _, package = spec.removeprefix("debian:").partition("=")
        place = self._checked_place(spec, version)
        with locked(place):
            if package:
                return self._older(spec, place, package)
            known = _read(place / TREE)
            if known:
                return known
            shutil.rmtree(place, ignore_errors=True)
            with self._offered(place, version) as apt:
                return self._import(place, spec, apt.download_only(f"linux-source-{version}"))

    def _checked_place(self, spec: str, version: str) -> Path:
        if not re.fullmatch(r"\d+\.\d+", version):
            raise UserError(f"'{spec}' names no kernel version", where="tree", expected="such as debian:6.1")
        return self._debian_place(version)

    def refresh(self, spec: str) -> Tree:
        """The tree that ``spec`` names at its tip *now*: for a Debian tree the archive is asked for a newer package.

        The older tree stays: ``debian:6.1=VERSION`` names it. Raises as ``get`` does.
        """
        offered = self.newer(spec)
        if not offered:
            return self.get(spec)
        version = spec.removeprefix("debian:")
        place = self._debian_place(version)
        with locked(place):
            known = _read(place / TREE)
            if known is None or _version_of(known) == offered:  # another process was quicker
                return known or self.get(spec)
            _write(place / _kept(_version_of(known)), known)
            with self._offered(place, version) as apt:
                return self._import(place, spec, apt.download_only(f"linux-source-{version}"))

    def newer(self, spec: str) -> str:
        """Version of the package that the archive has and we have not; empty where ours is the newest or was never fetched,
        and for trees that are looked at anew each time.
        """
        version = spec.removeprefix("debian:")
        if not spec.startswith("debian:") or "=" in version:
            return ""
        place = self._checked_place(spec, version)
        known = _read(place / TREE)
        if known is None:
            return ""
        with locked(place), self._offered(place, version) as apt:
            offered = apt.versions(re.escape(f"linux-source-{version}"))[f"linux-source-{version}"]
        return "" if offered == _version_of(known) else offered

    def _older(self, spec: str, place: Path, package: str) -> Tree:
        found = {_version_of(tree): tree for tree in (_read(path) for path in place.glob("*.json")) if tree}
        if package not in found:
            what = f"{spec} is not here: Debian keeps the newest version alone, and this one was not imported before"
            expected = f"one of {', '.join(sorted(found))}" if found else "debian:X.Y, which fetches the newest"
            raise UserError(what, where="tree", expected=expected)
        return replace(found[package], label=spec)

    @contextmanager
    def _offered(self, place: Path, version: str) -> Iterator[AptRoot]:
        """An apt root whose lists are those of now. Raises UserError where the archive has no such kernel."""
        suite = SUITES.get(version)
        suites = (suite, f"{suite}-security") if suite else NEWER
        apt = AptRoot(place.with_name(place.name + ".apt"), arch="amd64", suites=suites, archives=self.archives)
        apt.forget()  # what a killed run downloaded may be of another day
        try:
            apt.update()
            self._check_offered(apt, version)
            yield apt
        finally:
            apt.forget()

    def _check_offered(self, apt: AptRoot, version: str) -> None:
        offered = apt.versions(r"linux-source-\d+\.\d+")
        if f"linux-source-{version}" not in offered:
            there = ", ".join(sorted({*(n.removeprefix("linux-source-") for n in offered), *SUITES}))
            raise UserError(f"Debian packages no linux {version}", where="tree", expected=f"one of {there}")

    def _import(self, place: Path, spec: str, package: Package) -> Tree:
        unpacked = place.with_name(place.name + ".deb")
        try:
            extract([package], unpacked)
            archive = next((unpacked / "usr/src").glob("linux-source-*.tar.xz"), None)
            if archive is None:
                raise InfrastructureError(f"{package.path.name} holds no linux-source tar")
            repo = make_bare(place)
            commit = self._import_xz(repo, archive, f"linux-source {package.version}")
        finally:
            shutil.rmtree(unpacked, ignore_errors=True)
        repo.git.update_ref(f"refs/kpatch-ci/{digest(package.version)[:12]}", commit)
        origin = f"{package.name} {package.version}, sha256 {package.sha256}"
        tree = _describe(repo, spec, commit, origin)
        _write(place / _kept(package.version), tree)
        return _write(place / TREE, tree)

    def _import_xz(self, repo: git.Repo, archive: Path, message: str) -> str:
        argv = self.tools.argv(["xz", "-dc", archive], read=[archive])
        with Process(argv, stdout=PIPE) as process:
            commit = import_tar(repo, process.stdout, message)
            if process.wait(60) != 0:
                raise InfrastructureError(f"xz cannot unpack {archive.name}")
        return commit

    def _local(self, spec: str, path: Path, ref: str) -> Tree:
        """Borrow the objects of a repository on this machine; what is written goes to our own."""
        theirs = open_repo(path)
        try:
            commit = str(theirs.git.rev_parse("--verify", f"{ref}^{{commit}}"))
        except git.GitCommandError as error:
            said = str(error.stderr).strip().strip("'").removeprefix("stderr: ").strip("'")
            what = f"{path} has no ref '{ref}' (git: {said})"
            raise UserError(what, where="tree", expected=_some_refs(theirs)) from error
        place = self.root / f"git-{digest(str(theirs.common_dir))[:12]}"
        with locked(place):
            repo = make_bare(place)
            objects = Path(theirs.common_dir).absolute() / "objects"
            write_text(Path(repo.git_dir) / "objects/info/alternates", f"{objects}\n")
            shallow = _copy_shallow(theirs, Path(repo.git_dir))
        notes = [*_uncommitted(theirs, commit)]
        if shallow:
            notes.append("a shallow clone: older commits are not here, and a base among them cannot be found")
        if any((objects / "pack").glob("*.promisor")):
            notes.append("a partial clone: files whose contents are not here cannot be read")
        return replace(_describe(repo, spec, commit, f"{ref} = {commit}"), notes=tuple(notes))

    def _remote(self, spec: str, url: str, ref: str) -> Tree:
        place = self.root / f"remote-{digest(url)[:12]}"
        with locked(place):
            repo = make_bare(place)
            try:
                target = f"{ref}:refs/kpatch-ci/{digest(ref)[:12]}"
                repo.git.fetch("--depth=1", "--no-tags", "--force", url, target, kill_after_timeout=FETCH_TIMEOUT)
            except git.GitCommandError as error:
                raise InfrastructureError(f"cannot fetch '{ref}' from {url}", log=str(error.stderr).strip()) from error
            commit = str(repo.git.rev_parse(f"refs/kpatch-ci/{digest(ref)[:12]}^{{commit}}"))
        return _describe(repo, spec, commit, f"{url} {ref} = {commit}")

    def _directory(self, spec: str, path: Path) -> Tree:
        """Import a plain directory as it is now; git's index in the cache makes the next time quick."""
        place = self.root / f"dir-{digest(str(path))[:12]}"
        with locked(place):
            repo = make_bare(place)
            index = {"GIT_INDEX_FILE": str(place / "directory-index")}
            with repo.git.custom_environment(**ISOLATED, **IDENTITY, **index):
                repo.git.execute(
                    ["git", f"--git-dir={place}", f"--work-tree={path}", "-C", str(path), "add", "-A", "-f", "."]
                )
                tree_id = str(repo.git.write_tree())
                commit = str(repo.git.commit_tree(tree_id, "-m", f"directory {path.name}"))
        return _describe(repo, spec, commit, f"directory as of its content, tree {tree_id}")


def _copy_shallow(theirs: git.Repo, ours: Path) -> bool:
    """Where a shallow clone's history ends: without that, git looks for commits that are not there."""
    listed = Path(theirs.common_dir) / "shallow"
    try:
        write_text(ours / "shallow", listed.read_text())
    except FileNotFoundError:
        (ours / "shallow").unlink(missing_ok=True)
        return False
    return True


def _uncommitted(repo: git.Repo, commit: str) -> Iterator[str]:
    """Changes of a working tree whose commit is taken: they are not tested, and that is said."""
    if repo.bare or str(repo.git.rev_parse("HEAD")) != commit:
        return
    with repo.git.custom_environment(GIT_OPTIONAL_LOCKS="0"):
        argv = ["git", "-c", "core.fsmonitor=false", "status", "--porcelain", "-uno", "--ignore-submodules"]
        changed = [line[3:] for line in str(repo.git.execute(argv, strip_newline_in_stdout=False)).splitlines()]
    if changed:
        few = ", ".join(changed[:3]) + (", ..." if len(changed) > 3 else "")
        yield f"{len(changed)} uncommitted changes are not taken ({few}): what is tested is the commit"


def _some_refs(repo: git.Repo) -> str:
    names = [head.name for head in repo.heads][:5] + [tag.name for tag in repo.tags][-5:]
    return f"such as {', '.join(names)}" if names else "it has no branch or tag"


def _describe(repo: git.Repo, label: str, commit: str, origin: str) -> Tree:
    tree_id = str(repo.git.rev_parse(f"{commit}^{{tree}}"))
    return Tree(label, kernel_release(repo, commit, label), Path(repo.git_dir), commit, tree_id, origin)


def _kept(version: str) -> str:
    return f"version-{digest(version)[:12]}.json"


def _write(path: Path, tree: Tree) -> Tree:
    write_text(path, json.dumps({**asdict(tree), "repo": None}, indent=1))
    return tree


def _read(path: Path) -> Tree | None:
    try:
        fields = json.loads(path.read_text())
        return Tree(**{**fields, "repo": path.parent, "notes": tuple(fields.get("notes", ()))})
    except (OSError, ValueError, TypeError):
        return None


def _version_of(tree: Tree) -> str:
    """Of the package that a Debian tree was made of."""
    return tree.origin.partition(",")[0].rpartition(" ")[2]
