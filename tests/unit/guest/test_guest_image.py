# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest image's parts that need no packages: its index, its archives, its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.guest import image
from kpatch_ci.guest.cpio import BLOCK, concatenate
from kpatch_ci.guest.events import events, find_event
from kpatch_ci.guest.image import find_image
from kpatch_ci.model.arch import ARM64, X86_64
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.store.artifacts import ArtifactStore

TOOLS = ToolRoot(Path("/nowhere"), "trixie", "tools-1", {})


def agent(folder: Path, text: str = "int main(void) { return 0; }\n") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "agent.c").write_text(text)
    return folder


def made(cache: Path, store: ArtifactStore, sources: Path) -> None:
    """An image as make_image leaves it."""

    def fill(place: Path) -> Mapping[str, Any]:
        (place / image.IMAGE).write_bytes(b"cpio")
        (place / image.SERIALISER).write_bytes(b"library")
        return {"arch": "arm64", "packages": {"dbench": "4.0"}}

    store.put(image.KIND, "cd" * 32, fill)
    index = image._index(cache, ARM64, image._spec(ARM64, TOOLS, sources))
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_text(json.dumps({"key": "cd" * 32}))


def test_an_image_that_was_made_is_found_without_asking_anyone(tmp_path: Path) -> None:
    store, sources = ArtifactStore(tmp_path / "store"), agent(tmp_path / "agent")
    assert find_image(ARM64, tmp_path, store, TOOLS, sources) is None
    made(tmp_path, store, sources)
    found = find_image(ARM64, tmp_path, store, TOOLS, sources)
    assert found is not None
    assert found.path.read_bytes() == b"cpio"
    assert found.packages == {"dbench": "4.0"}


def test_another_agent_architecture_or_tool_root_is_another_image(tmp_path: Path) -> None:
    store, sources = ArtifactStore(tmp_path / "store"), agent(tmp_path / "agent")
    made(tmp_path, store, sources)
    assert find_image(X86_64, tmp_path, store, TOOLS, sources) is None
    assert find_image(ARM64, tmp_path, store, ToolRoot(Path("/"), "trixie", "tools-2", {}), sources) is None
    (sources / "README.md").write_text("words do not matter")
    assert find_image(ARM64, tmp_path, store, TOOLS, sources) is not None
    agent(sources, "int main(void) { return 1; }\n")
    assert find_image(ARM64, tmp_path, store, TOOLS, sources) is None


def test_a_damaged_image_is_a_miss(tmp_path: Path) -> None:
    store, sources = ArtifactStore(tmp_path / "store"), agent(tmp_path / "agent")
    made(tmp_path, store, sources)
    (store.place(image.KIND, "cd" * 32) / image.IMAGE).write_bytes(b"CPIO")
    assert find_image(ARM64, tmp_path, store, TOOLS, sources) is None


def test_no_agent_is_named(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="no sources of the guest's agent"):
        find_image(ARM64, tmp_path, ArtifactStore(tmp_path), TOOLS, tmp_path)


def test_archives_are_joined_at_whole_blocks(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a" * (BLOCK + 1))
    (tmp_path / "b").write_bytes(b"b" * BLOCK)
    concatenate([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    data = (tmp_path / "out").read_bytes()
    assert data == b"a" * (BLOCK + 1) + bytes(BLOCK - 1) + b"b" * BLOCK


def test_a_line_that_was_cut_off_is_no_event() -> None:
    text = '{"event":"job","seed":1}\nnoise\n[1]\n{"event":"end","status":"ok"}\n{"event":"end","sta'
    assert [e["event"] for e in events(text)] == ["job", "end"]
    assert find_event(text, "end") == {"event": "end", "status": "ok"}
    assert find_event(text, "run") is None
