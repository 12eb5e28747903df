# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel trees from tars, repositories and directories; and the working trees that builds see."""

from __future__ import annotations

import io
import re
import tarfile
import time
from pathlib import Path

import git
import pytest

from kpatch_ci.debian.apt import Archives, Package
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.kernel import source
from kpatch_ci.kernel.checkout import OLD, checkout, checkout_movable, checkout_patched, differing_paths, move
from kpatch_ci.kernel.git import import_tar, kernel_release, make_bare
from kpatch_ci.kernel.source import TreeCache, split_ref
from kpatch_ci.model.errors import InfrastructureError, UserError

MAKEFILE = "# SPDX\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 9\nEXTRAVERSION =-rc1\nNAME = X\n"


def kernel_tar(version: str = "") -> io.BytesIO:
    """A small kernel's tar; ``version`` is in a file of it."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data, mode in (
            ("Makefile", MAKEFILE, 0o644),
            *([("version", version, 0o644)] if version else []),
            ("scripts/run it.sh", "#!\n", 0o755),
            ("kernel/a.c", "int a;\n", 0o644),
        ):
            member = tarfile.TarInfo(f"linux-6.1/{name}")
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data.encode()))
        link = tarfile.TarInfo("linux-6.1/link")
        link.type, link.linkname = tarfile.SYMTYPE, "kernel/a.c"
        archive.addfile(link)
    stream.seek(0)
    return stream


@pytest.fixture
def trees(tmp_path: Path) -> TreeCache:
    return TreeCache(tmp_path / "cache", ToolRoot(tmp_path, "trixie", "f", {}), Archives("file:/nowhere", None))


@pytest.fixture
def users_repo(tmp_path: Path) -> git.Repo:
    repo = git.Repo.init(tmp_path / "linux", initial_branch="master")
    for name, text in (("Makefile", MAKEFILE), ("kernel/a.c", "int a;\n"), ("kernel/b.c", "int b;\n")):
        path = tmp_path / "linux" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    repo.git.add("-A")
    repo.git.execute(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "base"])
    return repo


def test_the_same_tar_gives_the_same_commit_with_modes_and_links(tmp_path: Path) -> None:
    commits = [import_tar(make_bare(tmp_path / name), kernel_tar(), "linux-source 6.1.9-1") for name in ("a", "b")]
    assert commits[0] == commits[1]
    repo = git.Repo(tmp_path / "a")
    entries = {e.path: oct(e.mode) for e in repo.commit(commits[0]).tree.traverse() if e.type == "blob"}  # type: ignore[union-attr]
    assert entries == {
        "Makefile": "0o100644",
        "kernel/a.c": "0o100644",
        "link": "0o120000",
        "scripts/run it.sh": "0o100755",
    }
    assert kernel_release(repo, commits[0]) == "6.1.9-rc1"


def test_a_repository_is_borrowed_not_written_to(trees: TreeCache, users_repo: git.Repo) -> None:
    path = str(users_repo.working_dir)
    before = sorted(p for p in Path(users_repo.git_dir).rglob("*") if p.is_file())
    tree = trees.get(f"{path}@master")
    assert tree.tree_id == users_repo.head.commit.tree.hexsha
    assert tree.release == "6.1.9-rc1"
    assert sorted(p for p in Path(users_repo.git_dir).rglob("*") if p.is_file()) == before


def test_a_missing_ref_is_an_error_that_names_refs(trees: TreeCache, users_repo: git.Repo) -> None:
    with pytest.raises(UserError, match=r"no ref 'nope'.*such as master"):
        trees.get(f"{users_repo.working_dir}@nope")


@pytest.mark.parametrize("spec", ["debian:6", "debian:six", "/no/such/place"])
def test_a_tree_that_is_none_says_what_would_be(trees: TreeCache, spec: str) -> None:
    with pytest.raises(UserError, match="debian:"):
        trees.get(spec)


def test_a_repository_that_is_no_kernel_says_so(trees: TreeCache, tmp_path: Path) -> None:
    repo = git.Repo.init(tmp_path / "other")
    (tmp_path / "other/README").write_text("x")
    repo.git.add("-A")
    repo.git.execute(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"])
    with pytest.raises(UserError, match="no kernel tree"):
        trees.get(str(tmp_path / "other"))


def test_a_plain_directory_is_taken_as_it_is_now(trees: TreeCache, tmp_path: Path) -> None:
    place = tmp_path / "plain"
    place.mkdir()
    (place / "Makefile").write_text(MAKEFILE)
    first = trees.get(str(place))
    (place / "new.c").write_text("int n;\n")
    second = trees.get(str(place))
    assert first.tree_id != second.tree_id
    assert not (place / ".git").exists()


def test_a_patched_tree_shares_what_did_not_change_and_never_writes_through(
    trees: TreeCache, users_repo: git.Repo, tmp_path: Path
) -> None:
    root = Path(users_repo.working_dir)
    (root / "kernel/a.c").write_text("int patched;\n")
    (root / "kernel/b.c").unlink()
    (root / "kernel/c.c").write_text("int c;\n")
    users_repo.git.add("-A")
    users_repo.git.execute(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "patch"])
    tree = trees.get(f"{root}@HEAD~1")
    patched_id = users_repo.head.commit.tree.hexsha
    base = checkout(tmp_path / "cache", tree)
    patched = checkout_patched(tmp_path / "cache", tree, patched_id)
    assert (base / "kernel/a.c").read_text() == "int a;\n"
    assert (patched / "kernel/a.c").read_text() == "int patched;\n"
    assert not (patched / "kernel/b.c").exists()
    assert (base / "kernel/b.c").exists()
    assert (patched / "kernel/c.c").read_text() == "int c;\n"
    assert (patched / "Makefile").stat().st_ino == (base / "Makefile").stat().st_ino


def test_what_a_patch_changes_is_newer_than_the_objects_of_every_build(
    trees: TreeCache, users_repo: git.Repo, tmp_path: Path
) -> None:
    """A patched tree that one architecture made is older than the objects that another one starts from."""
    root = Path(users_repo.working_dir)
    (root / "kernel/a.c").write_text("int patched;\n")
    users_repo.git.execute(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-a", "-m", "patch"])
    tree = trees.get(f"{root}@HEAD~1")
    patched_id = users_repo.head.commit.tree.hexsha
    cache = tmp_path / "cache"
    checkout_patched(cache, tree, patched_id)
    object_file = tmp_path / "a.o"
    object_file.write_text("compiled from the baseline, later")
    patched = checkout_patched(cache, tree, patched_id)
    assert (patched / "kernel/a.c").stat().st_mtime_ns >= object_file.stat().st_mtime_ns
    assert (patched / "kernel/b.c").stat().st_mtime < object_file.stat().st_mtime - 3600, "unchanged: not rebuilt"


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("/no/such/linux@sched/core", ("/no/such/linux", "sched/core")),
        ("https://git.example/tip.git@sched/core", ("https://git.example/tip.git", "sched/core")),
        ("git@host:linux.git", ("git@host:linux.git", "")),
        ("git@host:linux.git@v6.1", ("git@host:linux.git", "v6.1")),
        ("/no/such/linux", ("/no/such/linux", "")),
    ],
)
def test_a_ref_may_hold_slashes_and_a_user_is_no_ref(spec: str, parts: tuple[str, str]) -> None:
    assert split_ref(spec) == parts


def test_a_changed_file_is_newer_than_the_objects_even_when_the_clock_went_back(
    trees: TreeCache, users_repo: git.Repo, tmp_path: Path
) -> None:
    root = Path(users_repo.working_dir)
    (root / "kernel/a.c").write_text("int patched;\n")
    users_repo.git.execute(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-a", "-m", "patch"])
    tree = trees.get(f"{root}@HEAD~1")
    in_future = 4_000_000_000.0
    patched = checkout_patched(tmp_path / "cache", tree, users_repo.head.commit.tree.hexsha, newer_than=in_future)
    assert (patched / "kernel/a.c").stat().st_mtime > in_future


def test_a_directory_that_becomes_a_link_deletes_nothing_where_the_link_leads(
    trees: TreeCache, users_repo: git.Repo, tmp_path: Path
) -> None:
    """kernel/ -> a place of the user's that has files of the same names."""
    root, victim = Path(users_repo.working_dir), tmp_path / "victim"
    victim.mkdir()
    for name in ("a.c", "b.c"):
        (victim / name).write_text("precious")
    users_repo.git.rm("-r", "-q", "kernel")
    (root / "kernel").symlink_to(victim)
    users_repo.git.add("-A")
    users_repo.git.execute(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "link"])
    tree = trees.get(f"{root}@HEAD~1")
    patched = checkout_patched(tmp_path / "cache", tree, users_repo.head.commit.tree.hexsha)
    assert (patched / "kernel").is_symlink()
    assert {p.name: p.read_text() for p in victim.iterdir()} == {"a.c": "precious", "b.c": "precious"}


def test_a_movable_tree_walks_and_only_what_differs_is_newer(
    trees: TreeCache, users_repo: git.Repo, tmp_path: Path
) -> None:
    """Also where the host's clock was set back since the objects were made: ``newer_than`` is in the future."""
    root = Path(users_repo.working_dir)
    tree = trees.get(str(root))

    def after(files: dict[str, str]) -> str:
        for name, text in files.items():
            (root / name).write_text(text)
        users_repo.git.add("-A")
        return str(users_repo.git.write_tree())

    one = after({"kernel/a.c": "int a1;\n"})
    (root / "kernel/b.c").unlink()
    two = after({"kernel/new.c": "int n;\n"})
    place = tmp_path / "cache/src/patched-walk"
    checkout_movable(tmp_path / "cache", tree, place)
    ahead = time.time() + 10_000
    assert move(tree, place, tree.tree_id, one, newer_than=ahead) == ("kernel/a.c",)
    assert (place / "kernel/a.c").read_text() == "int a1;\n"
    first = (place / "kernel/a.c").stat().st_mtime
    assert first > ahead
    assert (place / "kernel/b.c").stat().st_mtime == OLD
    assert set(move(tree, place, one, two, newer_than=first + 1)) == {"kernel/b.c", "kernel/new.c"}
    assert not (place / "kernel/b.c").exists()
    assert (place / "kernel/new.c").stat().st_mtime > first + 1
    assert (place / "kernel/a.c").stat().st_mtime == first, "not changed by this patch: the objects of it stay good"
    assert (checkout(tmp_path / "cache", tree) / "kernel/a.c").read_text() == "int a;\n"
    assert differing_paths(tree, one, two) == {"kernel/b.c", "kernel/new.c"}


def test_a_walk_over_a_link_and_back_deletes_nothing_where_the_link_led(
    trees: TreeCache, users_repo: git.Repo, tmp_path: Path
) -> None:
    root, victim = Path(users_repo.working_dir), tmp_path / "victim"
    victim.mkdir()
    (victim / "a.c").write_text("precious")
    tree = trees.get(str(root))
    users_repo.git.rm("-r", "-q", "kernel")
    (root / "kernel").symlink_to(victim)
    users_repo.git.add("-A")
    linked = str(users_repo.git.write_tree())
    place = tmp_path / "cache/src/patched-walk"
    checkout_movable(tmp_path / "cache", tree, place)
    move(tree, place, tree.tree_id, linked, newer_than=0.0)
    assert (place / "kernel").is_symlink()
    move(tree, place, linked, tree.tree_id, newer_than=0.0)
    assert (place / "kernel/a.c").read_text() == "int a;\n"
    assert not (place / "kernel").is_symlink()
    assert (victim / "a.c").read_text() == "precious"


class FakeApt:
    """An archive that has one linux-source; ``version`` moves."""

    version = "6.1.1-1"
    looks = 0

    def __init__(self, root: Path, **_: object) -> None:
        self.root = root

    def update(self) -> None:
        FakeApt.looks += 1

    def forget(self) -> None:
        """Nothing to forget."""

    def versions(self, pattern: str) -> dict[str, str]:
        return {"linux-source-6.1": self.version} if re.fullmatch(pattern, "linux-source-6.1") else {}

    def download_only(self, name: str) -> Package:
        return Package(name, self.version, "all", "5" * 64, self.root / f"{name}.deb")


@pytest.fixture
def archive(trees: TreeCache, monkeypatch: pytest.MonkeyPatch) -> TreeCache:
    """Trees whose archive is FakeApt, and whose packages hold the tar of above with the version in a file."""

    def unpack(packages: list[Package], into: Path) -> None:
        (into / "usr/src").mkdir(parents=True)
        (into / "usr/src/linux-source-6.1.tar.xz").write_text("xz")

    def read_tar(repo: git.Repo, _: Path, message: str) -> str:
        return import_tar(repo, kernel_tar(message), message)

    monkeypatch.setattr(source, "AptRoot", FakeApt)
    monkeypatch.setattr(source, "extract", unpack)
    monkeypatch.setattr(trees, "_import_xz", read_tar)
    monkeypatch.setattr(FakeApt, "version", "6.1.1-1")
    monkeypatch.setattr(FakeApt, "looks", 0)
    return trees


def test_a_debian_tree_moves_only_when_it_is_refreshed_and_keeps_the_old_one(
    archive: TreeCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = archive.get("debian:6.1")
    assert archive.newer("debian:6.1") == ""
    assert archive.refresh("debian:6.1") == old
    monkeypatch.setattr(FakeApt, "version", "6.1.2-1")
    assert archive.get("debian:6.1") == old
    assert archive.newer("debian:6.1") == "6.1.2-1"
    new = archive.refresh("debian:6.1")
    assert (new.tree_id != old.tree_id, new.label) == (True, "debian:6.1")
    assert "linux-source-6.1 6.1.2-1," in new.origin
    assert archive.get("debian:6.1") == new
    kept = archive.get("debian:6.1=6.1.1-1")
    assert (kept.tree_id, kept.commit, kept.label) == (old.tree_id, old.commit, "debian:6.1=6.1.1-1")
    assert archive.get("debian:6.1=6.1.2-1").tree_id == new.tree_id
    repo = git.Repo(new.repo)
    assert repo.git.show(f"{old.commit}:version") == "linux-source 6.1.1-1"
    assert repo.git.rev_list("--parents", "-1", new.commit) == new.commit  # no history is made up
    repo.git.gc("--prune=now", "--quiet")  # both are held by a ref
    assert repo.git.cat_file("-t", old.commit) == "commit"
    with pytest.raises(UserError, match=r"debian:6.1=6.1.0-1 is not here.*one of 6.1.1-1, 6.1.2-1"):
        archive.get("debian:6.1=6.1.0-1")


def test_a_refresh_that_fails_leaves_the_tree_as_it_was(archive: TreeCache, monkeypatch: pytest.MonkeyPatch) -> None:
    old = archive.get("debian:6.1")
    monkeypatch.setattr(FakeApt, "version", "6.1.2-1")

    def broken(*_: object) -> str:
        raise InfrastructureError("xz cannot unpack it")

    with monkeypatch.context() as patched:
        patched.setattr(archive, "_import_xz", broken)
        with pytest.raises(InfrastructureError):
            archive.refresh("debian:6.1")
    assert archive.get("debian:6.1") == old
    assert "6.1.2-1" in archive.refresh("debian:6.1").origin


def test_a_git_tree_is_refreshed_by_looking(trees: TreeCache, users_repo: git.Repo) -> None:
    spec = f"{users_repo.working_dir}@master"
    assert trees.newer(spec) == ""
    before = trees.refresh(spec)
    (Path(users_repo.working_dir) / "kernel/a.c").write_text("int c;\n")
    users_repo.git.execute(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "more"])
    assert trees.refresh(spec).tree_id != before.tree_id
