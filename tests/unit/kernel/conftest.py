# SPDX-License-Identifier: GPL-2.0-or-later
"""A series on a small tree, built by a make that compiles no kernel (tests/fakes/kbuild.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import git
import pytest

from kpatch_ci.kernel.build import Builder, BuildRequest
from kpatch_ci.kernel.each import Walk, build_each
from kpatch_ci.kernel.lint import Pair
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.build import Tree
from kpatch_ci.model.each import EachResult
from kpatch_ci.model.series import AppliedPatch, ApplyMethod
from kpatch_ci.model.status import Status
from kpatch_ci.store.artifacts import ArtifactStore
from tests.fakes.kbuild import FakeKbuildRoot

Files = Mapping[str, str]


@dataclass
class Lab:
    """A repository, a builder, and series made of what each patch changes (an empty text: the file is gone)."""

    place: Path
    repo: git.Repo
    builder: Builder

    def tree(self, files: Files) -> str:
        """The git tree of the working tree with ``files`` written."""
        root = Path(self.repo.working_dir)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
            if not text:
                (root / name).unlink()
        self.repo.git.add("-A")
        return str(self.repo.git.write_tree())

    def walk(self, start: Files, *patches: Files, base: Files | None = None, arch: str = "arm64") -> Walk:
        """Baseline (and baseline patch, if any) and end are built; what lies between is not."""
        tree_id = self.tree(start)
        tree = Tree("t", "6.1.9", Path(self.repo.git_dir), "c", tree_id, "o")
        below = self.tree(base) if base else tree_id
        trees = [self.tree(files) for files in patches]
        request = BuildRequest("s", ARCHES[arch], tree, trees[-1], {})
        logs = self.place / "logs"
        baseline = self.builder.build(replace(request, arm="baseline", tree_id=tree_id), logs)
        before = self.builder.build(replace(request, arm="below", tree_id=below), logs) if base else baseline
        applied = [
            AppliedPatch(f"patch {n}", f"{n}.patch", Status.PASSED, ApplyMethod.AS_MAILED, (), t)
            for n, t in enumerate(trees, 1)
        ]
        return Walk(request, baseline, before, self.builder.build(request, logs), applied)

    def each(self, walk: Walk) -> EachResult:
        """Built after every patch."""
        return build_each(self.builder, walk, self.place / "logs")

    def pair(self, start: Files, patch: Files) -> Pair:
        """Baseline and patched, built."""
        walk = self.walk(start, patch)
        return Pair(walk.request, walk.before, walk.end)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    repo = git.Repo.init(tmp_path / "linux")
    cache = tmp_path / "cache"
    tools = FakeKbuildRoot(tmp_path, "trixie", "f", {})
    return Lab(tmp_path, repo, Builder(cache, ArtifactStore(cache / "store"), tools, jobs=1, timeout=60))
