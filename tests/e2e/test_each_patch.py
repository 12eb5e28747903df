# SPDX-License-Identifier: GPL-2.0-or-later
"""Real kernels after every patch: one that breaks one architecture only, and warnings that only look old or new."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import git
import pytest

from kpatch_ci.debian.apt import host_archives
from kpatch_ci.debian.toolroot import make_toolroot
from kpatch_ci.kernel.source import TreeCache
from kpatch_ci.store.cache import cache_root
from tests.e2e.conftest import PROJECT, Command

pytestmark = pytest.mark.e2e
FILE = "init/main.c"
BEFORE = "static void __init do_basic_setup(void)\n"
CALLER = "#ifdef CONFIG_ARM64\nstatic void __init __maybe_unused early_thing(void)\n{\n\tlate_thing();\n}\n#endif\n\n"
CALLEE = "static void __init __maybe_unused late_thing(void)\n{\n\tint unused;\n}\n\n"
GLOBAL = "int kpatch_ci_test_global;\nint kpatch_ci_test_function(void)\n{\n        return 1;\n}\n\n"
SUBJECTS = (
    "init: a warning",
    "init: a use before the declaration, on arm64",
    "init: declare it, with the old warning's words in another function",
    "init: neither static nor declared, and indented with blanks",
)


@pytest.fixture(scope="module")
def built(kpatch_ci: Command, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[tuple[str, str], Any]]:
    """`build --each --w1 --sparse --checkpatch` of four patches made here: (arch, arm) -> its row."""
    place = tmp_path_factory.mktemp("each")
    for name in ("kconfigs", "qemu"):
        (place / name).symlink_to(PROJECT / name)
    series = place / "patches" / "four"
    series.mkdir(parents=True)
    for number, text in enumerate(mails(), 1):
        (series / f"{number}.patch").write_text(text)
    (series / "series.yaml").write_text(
        "title: four\norigin: this test\nfiles: [1.patch, 2.patch, 3.patch, 4.patch]\nworkloads: [hackbench]\n"
    )
    text = (PROJECT / "pipeline.yaml").read_text()
    others = text[text.index("\nseries:") : text.index("\nmachines:")]
    (place / "pipeline.yaml").write_text(text.replace(others, "\nseries: [four]\n"))
    asked = ("--each", "--w1", "--sparse", "--checkpatch")
    done = kpatch_ci("build", "-c", place / "pipeline.yaml", *asked, "--json", "--output", place / "out")
    return done.code, {(row["arch"], row["arm"]): row for row in done.result}


def mails() -> list[str]:
    cache = cache_root()
    tree = TreeCache(cache, make_toolroot(cache, "trixie", host_archives()), host_archives()).get("debian:6.1")
    texts = [git.Repo(tree.repo).git.execute(["git", "show", f"{tree.tree_id}:{FILE}"], strip_newline_in_stdout=False)]
    for old, new in (
        (f"{BEFORE}{{\n", f"{BEFORE}{{\n\tint unused;\n\n"),
        (BEFORE, CALLER + BEFORE),
        (CALLER, CALLEE + CALLER),
        (CALLEE, GLOBAL + CALLEE),
    ):
        assert str(texts[-1]).count(old) == 1
        texts.append(str(texts[-1]).replace(old, new))
    return [mail(n, str(texts[n - 1]), str(texts[n])) for n in range(1, len(texts))]


def mail(number: int, before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{FILE}", f"b/{FILE}")
    subject = f"[PATCH {number}/{len(SUBJECTS)}] {SUBJECTS[number - 1]}"
    return (
        f"From: Test Author <test@example.org>\nSubject: {subject}\n\nFor the tests of kpatch-ci.\n\n"
        f"Signed-off-by: Test Author <test@example.org>\n---\n{''.join(lines)}"
    )


def test_the_patch_that_breaks_arm64_is_named_and_the_end_is_whole(built: Any) -> None:
    code, rows = built
    assert code == 1
    arm64, x86 = (rows[arch, "four"]["each"] for arch in ("arm64", "x86_64"))
    assert [p["status"] for p in arm64["patches"]] == ["passed", "failed", "passed", "passed"]
    assert arm64["first_break"] == 2
    assert arm64["reason"] == (
        f"not bisectable: patch 2/4 `{SUBJECTS[1]}` does not build on arm64; the series' end does"
    )
    assert "late_thing" in arm64["patches"][1]["errors"][0]["text"]
    assert Path(arm64["patches"][1]["log"]).is_file()
    assert x86["first_break"] is None
    assert rows["arm64", "four"]["status"] == rows["x86_64", "four"]["status"] == "passed"


@pytest.mark.parametrize("arch", ["arm64", "x86_64"])
def test_only_new_warnings_are_told_of_each_patch(built: Any, arch: str) -> None:
    _, rows = built
    told = [[(w["context"], w["text"]) for w in p["new_warnings"]] for p in rows[arch, "four"]["each"]["patches"]]
    assert told == [
        [("do_basic_setup", "unused variable 'unused'")],
        [],
        [("late_thing", "unused variable 'unused'")],
        [],
    ]


@pytest.mark.parametrize("arch", ["arm64", "x86_64"])
def test_checkers_tell_what_the_series_adds(built: Any, arch: str) -> None:
    _, rows = built
    checks = {c["checker"]: c for c in rows[arch, "four"]["checks"]}
    assert {name: c["status"] for name, c in checks.items()} == dict.fromkeys(("W=1", "sparse", "checkpatch"), "passed")
    assert [(f["path"], f["kind"]) for f in checks["W=1"]["findings"]] == [(FILE, "-Wmissing-prototypes")]
    assert {f["source"] for f in checks["sparse"]["findings"]} == {
        "int kpatch_ci_test_global;",
        "int kpatch_ci_test_function(void)",
    }
    indent = [f for f in checks["checkpatch"]["findings"] if f["kind"] == "CODE_INDENT"]
    assert [(f["patch"], f["path"], f["severity"]) for f in indent] == [(4, FILE, "error")]
