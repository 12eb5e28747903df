# SPDX-License-Identifier: GPL-2.0-or-later
"""What a build after a patch costs: from the baseline's objects, and from those of the patch before.

    python -m tests.bench.each_step [ARCH [HEADER]]

Three trees, each with one line more in init/main.c, the first with one line more in HEADER too (default: none). Both ways build
them in turn. Wall time: on an idle machine, or the two beside each other under the same load.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from kpatch_ci.config.load import Selection, load_config
from kpatch_ci.kernel.build import Builder, BuildRequest
from kpatch_ci.kernel.chain import open_chain
from kpatch_ci.kernel.diagnostics import objects_compiled
from kpatch_ci.kernel.git import open_repo
from kpatch_ci.kernel.kconfig import read_fragments
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.build import Tree
from kpatch_ci.pipeline.session import open_session
from kpatch_ci.store.gitenv import ISOLATED

PROJECT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Print objects and seconds of each build."""
    arch, header = sys.argv[1] if sys.argv[1:] else "arm64", sys.argv[2] if sys.argv[2:] else ""
    config = load_config(PROJECT / "pipeline.yaml", Selection(arches=(arch,)))
    with tempfile.TemporaryDirectory(prefix="kpatch-ci-bench-") as scratch:
        session = open_session(config, jobs=2, logs=Path(scratch), say=print)
        fragments = read_fragments(config.fragments(arch), session.tree.release)
        request = BuildRequest("baseline", ARCHES[arch], session.tree, session.tree.tree_id, fragments)
        builder = session.builder()
        builder.build(request, Path(scratch))
        first = [trees(session.tree, Path(scratch), header, n) for n in (1, 2, 3)]
        began = time.monotonic()
        with open_chain(builder, request, f"bench-{arch}") as chain:
            show("a copy of the objects and a working tree", 0, began)
            for tree_id in first:
                began = time.monotonic()
                step = chain.step(tree_id)
                show("from the patch before", objects_compiled(step.log), began)
        for tree_id in first:
            began = time.monotonic()
            build = from_baseline(builder, replace(request, arm="bench", tree_id=tree_id), Path(scratch))
            show("from the baseline", build, began)


def from_baseline(builder: Builder, request: BuildRequest, logs: Path) -> int:
    """As ``Builder.build`` does it, and the artifact is dropped: the next time it is measured again."""
    built = builder.build(request, logs)
    builder.store.drop("build", built.key)
    return built.objects


def trees(tree: Tree, scratch: Path, header: str, count: int) -> str:
    """Git tree with ``count`` comment lines more in init/main.c, and one in ``header``."""
    repo = open_repo(tree.repo)
    with repo.git.custom_environment(**ISOLATED, GIT_INDEX_FILE=str(scratch / "index")):
        repo.git.read_tree(tree.tree_id)
        for name, lines in (("init/main.c", count), (header, 1)):
            if name:
                text = repo.odb.stream(bytes.fromhex(str(repo.git.rev_parse(f"{tree.tree_id}:{name}")))).read()
                (scratch / "file").write_bytes(text + b"/* bench */\n" * lines)
                blob = repo.git.hash_object("-w", str(scratch / "file"))
                repo.git.update_index("--cacheinfo", f"100644,{blob},{name}")
        return str(repo.git.write_tree())


def show(what: str, objects: int, began: float) -> None:
    """One line of figures."""
    print(f"{what}: {objects} objects, {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
