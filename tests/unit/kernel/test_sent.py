# SPDX-License-Identifier: GPL-2.0-or-later
"""Source that travels is, where it arrives, what a checkout would have made of git's trees."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import git
import pytest

from kpatch_ci.kernel.checkout import GIT, OLD, checkout, checkout_patched, source_place
from kpatch_ci.kernel.sent import (
    PACKED,
    SOURCE,
    SentTrees,
    has_source,
    pack_changes,
    pack_source,
    source_key,
    unpack_source,
)
from kpatch_ci.model.build import Tree
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.parcels import Incoming, parcel_of

BASE: Mapping[str, bytes] = {
    "Makefile": b"VERSION = 6\n",
    ".gitattributes": b"*.id export-subst\nsecret export-ignore\n",
    "kernel.id": b"$Format:%H$\n",
    "secret": b"git archive would leave it out\n",
    "lib/a.c": b"int a;\n",
    "lib/b.c": b"int b;\n",
    "scripts/run.sh": b"#!/bin/sh\n",
    "old/only.c": b"int o;\n",
    "data.bin": bytes(range(256)),
}


@pytest.fixture
def repo(tmp_path: Path) -> git.Repo:
    made = git.Repo.init(tmp_path / "linux")
    _write(made, BASE)
    root = Path(made.working_dir)
    (root / "scripts/run.sh").chmod(0o755)
    (root / "lib/link").symlink_to("../Makefile")
    (root / "include").symlink_to("lib")
    return made


def _write(repo: git.Repo, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = Path(repo.working_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _tree(repo: git.Repo) -> str:
    repo.git.add("-A", "-f")
    return str(repo.git.write_tree())


def base(repo: git.Repo) -> Tree:
    return Tree("t", "6.1", Path(repo.git_dir), "c", _tree(repo), "o")


def seen(root: Path) -> dict[str, Any]:
    """Everything below a directory: mode, contents or target."""
    found: dict[str, Any] = {}
    for place, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(place) / name
            what = path.readlink() if path.is_symlink() else b"" if path.is_dir() else path.read_bytes()
            mode = "link" if path.is_symlink() else oct(path.lstat().st_mode)
            found[str(path.relative_to(root))] = (mode, what)
    return found


def send(store: ArtifactStore, there: ArtifactStore, kind: str, key: str) -> None:
    parcel, incoming = parcel_of(store, kind, key), Incoming(there)
    place = store.place(kind, key)
    for sha in incoming.needed(parcel):
        name = next(n for n, one in parcel.manifest["files"].items() if one["sha256"] == sha)
        incoming.append(sha, 0, (place / name).read_bytes())
    incoming.admit(parcel)


def test_the_source_arrives_as_it_was_checked_out_and_its_packed_form_is_gone(repo: git.Repo, tmp_path: Path) -> None:
    tree, cache = base(repo), tmp_path / "here"
    store, there = ArtifactStore(cache / "store"), ArtifactStore(tmp_path / "there/store")
    packed = pack_source(cache, tree, store)
    send(store, there, SOURCE, packed.key)
    assert not has_source(tmp_path / "there", tree.tree_id)
    place = unpack_source(tmp_path / "there", there, tree.tree_id)
    assert place == source_place(tmp_path / "there", tree.tree_id)
    assert seen(place) == seen(checkout(cache, tree))
    assert (place / "kernel.id").read_bytes() == BASE["kernel.id"]
    assert {path.lstat().st_mtime for path in place.rglob("*")} == {OLD}
    assert there.get(SOURCE, packed.key) is None
    assert unpack_source(tmp_path / "there", there, tree.tree_id) == place, "it is there"
    assert [p.name for p in place.parent.iterdir() if p.suffix != ".lock"] == [place.name]


def test_two_machines_pack_the_same_bytes(repo: git.Repo, tmp_path: Path) -> None:
    tree = base(repo)
    packs = [pack_source(tmp_path / name, tree, ArtifactStore(tmp_path / name / "store")) for name in "ab"]
    assert packs[0].digests == packs[1].digests


def test_a_source_that_did_not_arrive_is_said(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="not here, or was damaged"):
        unpack_source(tmp_path, ArtifactStore(tmp_path / "store"), "t" * 40)
    assert not has_source(tmp_path, "t" * 40)


def _packed_by_hand(store: ArtifactStore, tree_id: str, fill: Callable[[tarfile.TarFile], None]) -> None:
    def write(place: Path) -> Mapping[str, Any]:
        with tarfile.open(place / PACKED, "w:gz") as archive:
            fill(archive)
        return {"tree_id": tree_id}

    store.put(SOURCE, source_key(tree_id), write)


def test_nothing_of_it_is_written_outside(tmp_path: Path) -> None:
    store, outside = ArtifactStore(tmp_path / "c/store"), tmp_path / "outside"
    outside.mkdir()

    def fill(archive: tarfile.TarFile) -> None:
        link = tarfile.TarInfo("way")
        link.type, link.linkname = tarfile.SYMTYPE, str(outside)
        archive.addfile(link)
        for name in ("../../../outside/one", "way/two", str(outside / "three")):
            member = tarfile.TarInfo(name)
            member.size = 4
            archive.addfile(member, io.BytesIO(b"evil"))

    _packed_by_hand(store, "t" * 40, fill)
    with pytest.raises(InfrastructureError, match="cannot unpack the kernel source"):
        unpack_source(tmp_path / "c", store, "t" * 40)
    assert not has_source(tmp_path / "c", "t" * 40)
    assert list(outside.iterdir()) == []


def test_a_patched_tree_is_made_of_its_changes_alone(repo: git.Repo, tmp_path: Path) -> None:
    tree, root = base(repo), Path(repo.working_dir)
    _write(repo, {"lib/a.c": b"int a, patched;\n", "new/deep/c.c": b"\0\xff"})
    (root / "scripts/run.sh").chmod(0o644)
    (root / "lib/b.c").unlink()
    (root / "old/only.c").unlink()
    (root / "old").rmdir()
    (root / "old").symlink_to("new")
    (root / "include").unlink()
    _write(repo, {"include/x.h": b"a directory now\n"})
    patched = _tree(repo)
    cache, there = tmp_path / "here", tmp_path / "there"
    store, far = ArtifactStore(cache / "store"), ArtifactStore(there / "store")
    changes = pack_changes(tree, patched, store)
    send(store, far, SOURCE, pack_source(cache, tree, store).key)
    send(store, far, changes.kind, changes.key)
    unpack_source(there, far, tree.tree_id)
    sent = SentTrees(far.get(changes.kind, changes.key))
    repo.close()
    nowhere = Tree("t", "6.1", Path("/nonexistent"), "c", tree.tree_id, "o")
    made = checkout_patched(there, nowhere, patched, trees=sent)
    assert seen(made) == seen(checkout_patched(cache, tree, patched))
    assert list(sent.changes(nowhere, tree.tree_id, patched)) == list(GIT.changes(tree, tree.tree_id, patched))
    assert sum(p.stat().st_size for p in changes.path.rglob("*")) < 3000, "the whole tree does not travel"


def test_changes_of_other_trees_and_outside_of_the_source_are_refused(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "store")
    tree = Tree("t", "6.1", tmp_path, "c", "a" * 40, "o")
    with pytest.raises(InfrastructureError, match="other changes were sent"):
        SentTrees(None).changes(tree, "a", "b")

    def fill(place: Path) -> Mapping[str, Any]:
        (place / "changes.json").write_text('[["lib/../../evil", "100644", "0"]]')
        return {"before": "a", "after": "b"}

    sent = SentTrees(store.put("changes", "f" * 64, fill))
    with pytest.raises(InfrastructureError, match="outside of the kernel source"):
        sent.changes(tree, "a", "b")
    with pytest.raises(InfrastructureError, match="other changes were sent"):
        sent.changes(tree, "a", "c")
