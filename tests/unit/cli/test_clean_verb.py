# SPDX-License-Identifier: GPL-2.0-or-later
"""``clean``: shows by default, deletes what is named, and never what is in use."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import click
import pytest

from kpatch_ci.cli import clean
from kpatch_ci.cli.main import main
from kpatch_ci.store.cache import IN_USE, locked


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "cache"
    monkeypatch.setenv("KPATCH_CI_CACHE", str(root))
    for name in ("store/build/ab/key/image", "store/snapshot/cd/key/state", "trees/repo.git/pack", "stray/file"):
        path = root / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * 10_000)
    return root


def kinds(root: Path) -> list[str]:
    return sorted(p.name for p in (*root.iterdir(), *root.glob("store/*")) if p.name not in ("store", IN_USE))


ALL = ["build", "snapshot", "stray", "trees"]


def test_without_arguments_nothing_is_deleted(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean"]) == 0
    assert kinds(cache) == ALL
    out = capsys.readouterr().out
    assert [line.split()[2] for line in out.splitlines()[1:]] == ["snapshot", "build", "trees", "other"]


def test_yes_alone_deletes_nothing(cache: Path) -> None:
    assert main(["clean", "--yes"]) == 0
    assert kinds(cache) == ALL


def test_a_kind_is_deleted_and_nothing_else(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", "--kind", "build", "--kind", "trees", "--yes"]) == 0
    assert kinds(cache) == ["snapshot", "stray"]
    assert "deleted build, trees" in capsys.readouterr().err


def test_all_is_all(cache: Path) -> None:
    assert main(["clean", "--all", "--yes"]) == 0
    assert kinds(cache) == []


def test_a_no_keeps_everything(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no(*_: object, **__: object) -> None:
        raise click.Abort

    monkeypatch.setattr(click, "confirm", no)
    assert main(["clean", "--all"]) == 2
    assert kinds(cache) == ALL


def test_what_another_process_is_at_work_in_is_kept(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked(cache / "store" / "build" / "ab" / "key"):
        assert main(["clean", "--kind", "build", "--yes"]) == 3
    assert "another kpatch-ci is at work in build" in capsys.readouterr().err
    assert kinds(cache) == ALL
    assert main(["clean", "--kind", "build", "--yes"]) == 0


def test_an_unknown_kind_is_a_usage_error(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", "--kind", "bild"]) == 2
    assert "snapshot" in capsys.readouterr().err


def test_json_tells_sizes_and_never_asks(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["deleted"] == []
    assert document["bytes"]["build"] >= 10_000
    assert main(["clean", "--json", "--all"]) == 2
    assert kinds(cache) == ALL


def test_an_empty_cache_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPATCH_CI_CACHE", str(tmp_path / "absent"))
    assert main(["clean"]) == 0
    assert main(["clean", "--all", "--yes"]) == 0
    assert not (tmp_path / "absent").exists()


def test_a_hard_link_counts_once(cache: Path) -> None:
    before = clean.sizes(cache)["trees"]
    os.link(cache / "trees" / "repo.git" / "pack", cache / "trees" / "repo.git" / "again")
    assert clean.sizes(cache)["trees"] == before


def test_a_read_only_directory_is_deleted_too_and_links_are_not_followed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    sealed = cache / "trees" / "sealed"
    sealed.mkdir()
    (sealed / "link").symlink_to(outside)
    sealed.chmod(0o500)
    real = shutil.rmtree
    refused: list[Path] = []

    def rmtree(path: Path) -> None:
        if not refused:  # root is never refused
            refused.append(path)
            raise PermissionError
        assert (path / "sealed").stat().st_mode & 0o700 == 0o700
        real(path)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    assert main(["clean", "--kind", "trees", "--yes"]) == 0
    assert "trees" not in kinds(cache)
    assert outside.stat().st_mode & 0o777 == 0o755


def test_all_but_the_history(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = cache / "state" / "history" / "history.sqlite3"
    history.parent.mkdir(parents=True)
    history.write_bytes(b"x" * 10_000)
    (cache / "state" / "stages.json").write_text("{}")
    assert main(["clean", "--all", "--yes"]) == 0
    assert [p.relative_to(cache) for p in cache.rglob("*") if p.is_file() and p.name != IN_USE] == [
        history.relative_to(cache)
    ]
    assert "history" not in capsys.readouterr().err
    assert main(["clean", "--kind", "history", "--yes"]) == 0
    assert not history.parent.exists()
