# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of many git trees, each built from the objects of the one before it."""

from __future__ import annotations

from dataclasses import replace

from kpatch_ci.kernel.build import BuildRequest
from kpatch_ci.kernel.walk import KIND, Walk
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.build import Tree
from kpatch_ci.model.status import Status
from tests.unit.kernel.conftest import Files, Lab

START = {"kernel/a.c": "fn a\n", "kernel/b.c": "fn b\n", "lib/c.c": "include lib/all.h\n", "lib/all.h": "fn h\n"}
HEADER = {"lib/all.h": "fn h\n# 1\n"}
ONE = {"kernel/b.c": "fn b\n# 2\n"}
BROKEN = {"kernel/b.c": "fn b\nerror no such thing\n"}


def requests(lab: Lab, *steps: Files) -> tuple[BuildRequest, list[BuildRequest]]:
    """The baseline's, and one for each tree after it."""
    ids = [lab.tree(files) for files in (START, *steps)]
    tree = Tree("t", "6.1.9", lab.place / "linux" / ".git", "c", ids[0], "o")
    base = BuildRequest("baseline", ARCHES["arm64"], tree, ids[0], {})
    return base, [replace(base, arm=f"c{n}", tree_id=one) for n, one in enumerate(ids[1:], 1)]


def test_each_is_built_from_the_one_before_it(lab: Lab) -> None:
    base, steps = requests(lab, HEADER, ONE, {"kernel/b.c": "fn b\n# 3\n"})
    logs = lab.place / "logs"
    with Walk(lab.builder, base, "w") as walk:
        assert walk.build(base, logs).objects == 3, "a.c, b.c and c.c"
        assert [walk.build(one, logs).objects for one in steps] == [1, 1, 1]
        back = walk.build(replace(base, arm="again"), logs)
        assert back.cached
        assert [walk.build(one, logs).cached for one in steps] == [True] * 3
    assert not list((lab.builder.cache / "out").glob("patched-*/")), "it leaves no objects behind"


def test_the_image_is_the_one_that_a_run_builds(lab: Lab) -> None:
    base, steps = requests(lab, HEADER, ONE)
    logs = lab.place / "logs"
    with Walk(lab.builder, base, "w") as walk:
        walk.build(base, logs)
        made = [walk.build(one, logs) for one in steps]
        assert all(lab.builder.find(one) is None for one in steps), "a run does not take what knows no baseline"
    for one, walked in zip(steps, made, strict=True):
        assert lab.builder.store.get(KIND, one.key(lab.builder.tools)) is not None
        by_run = lab.builder.build(one, logs)
        assert not by_run.cached
        assert by_run.kernel_digest == walked.kernel_digest
        assert by_run.config_digest == walked.config_digest
        assert walked.compiled == {}
        assert walked.differing is None
    assert made[0].kernel_digest != made[1].kernel_digest


def test_what_a_run_has_built_is_taken(lab: Lab) -> None:
    base, steps = requests(lab, ONE)
    logs = lab.place / "logs"
    lab.builder.build(base, logs)
    by_run = lab.builder.build(steps[0], logs)
    with Walk(lab.builder, base, "w") as walk:
        assert walk.build(steps[0], logs).kernel_digest == by_run.kernel_digest
    assert lab.builder.store.get(KIND, steps[0].key(lab.builder.tools)) is None


def test_after_a_kernel_that_does_not_build_the_next_one_does(lab: Lab) -> None:
    base, steps = requests(lab, BROKEN, ONE)
    logs = lab.place / "logs"
    with Walk(lab.builder, base, "w") as walk:
        walk.build(base, logs)
        bad, good = (walk.build(one, logs) for one in steps)
    assert bad.status is Status.FAILED
    assert bad.reason == "make failed with exit status 2"
    assert "no such thing" in bad.log_tail
    assert bad.log
    assert "no such thing" in bad.log.read_text()
    assert good.status is Status.PASSED
    assert good.objects >= 1
    assert lab.builder.store.get(KIND, steps[0].key(lab.builder.tools)) is None, "what failed is tried again"
