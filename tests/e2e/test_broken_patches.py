# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches that do not apply, build or boot: results that say why, never exceptions, never "tested"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import MAILS, PROJECT, Command, arches

pytestmark = pytest.mark.e2e
NARROW = ("--quick", "--arch", "arm64", "--workload", "hackbench", "--seeds", "1", "--json")


def try_mail(kpatch_ci: Command, mail: Path, tmp_path: Path) -> tuple[int, Any]:
    done = kpatch_ci("try", mail, *NARROW, "--output", tmp_path / "out")
    return done.code, arches(done.result)["arm64"]


def test_a_mail_for_another_tree_is_a_failed_series_with_the_hunks(kpatch_ci: Command, tmp_path: Path) -> None:
    code, part = try_mail(kpatch_ci, PROJECT / "patches/stack-workqueue/original.txt", tmp_path)
    assert code == 1
    assert part["status"] == "failed"
    assert part["apply"]["status"] == "failed"
    hunks = [h for p in part["apply"]["patches"] for h in p["failures"]]
    assert {h["path"] for h in hunks} == {"kernel/sched/fair.c", "kernel/sched/features.h"}
    assert all(h["wanted"] and h["found"] for h in hunks)
    assert part["comparisons"] == []


def test_a_patch_that_does_not_compile_fails_with_the_compilers_words(kpatch_ci: Command, tmp_path: Path) -> None:
    code, part = try_mail(kpatch_ci, MAILS / "6.1-does-not-build.patch", tmp_path)
    assert code == 1
    patched = part["build"]["patched"]
    assert patched["status"] == "failed"
    assert "undeclared_thing" in patched["log_tail"]
    assert part["boot"]["patched"]["status"] == "skipped"


def test_a_kernel_that_panics_is_a_failed_boot_with_its_console(kpatch_ci: Command, tmp_path: Path) -> None:
    code, part = try_mail(kpatch_ci, MAILS / "6.1-panics-at-boot.patch", tmp_path)
    assert code == 1
    boot = part["boot"]["patched"]
    assert boot["status"] == "failed"
    assert "a patch under test broke the boot" in str(boot)
    assert part["boot"]["baseline"]["status"] == "passed"


def test_a_series_that_changes_no_image_is_not_called_tested(kpatch_ci: Command, tmp_path: Path) -> None:
    code, part = try_mail(kpatch_ci, MAILS / "6.1-adds-a-warning.patch", tmp_path)
    assert code == 1
    assert "leaves the image unchanged" in part["reason"]
    assert [(w["path"], w["option"]) for w in part["build"]["patched"]["new_warnings"]] == [
        ("init/main.c", "-Wunused-variable")
    ]


def test_a_patch_of_a_comment_leaves_every_object_as_it_was_and_is_not_benchmarked(
    kpatch_ci: Command, tmp_path: Path
) -> None:
    code, part = try_mail(kpatch_ci, MAILS / "6.1-comment-only.patch", tmp_path)
    assert code == 1
    assert "byte for byte; not benchmarked" in part["reason"]
    assert part["differing"] == {}
    assert part["build"]["patched"]["objects"] > 0, "it was compiled all the same"
    assert part["boot"]["patched"]["status"] == "skipped"
    assert part["comparisons"] == []


def test_a_comment_that_moves_lines_changes_the_numbers_that_warn_keeps_and_nothing_else(
    kpatch_ci: Command, tmp_path: Path
) -> None:
    code, part = try_mail(kpatch_ci, MAILS / "6.1-comment-moves-lines.patch", tmp_path)
    assert code == 0
    assert part["differing"] == {"init/main.o": ["__bug_table"]}


def test_what_a_patch_adds_is_found_in_the_patched_image_only_without_being_named(
    kpatch_ci: Command, tmp_path: Path
) -> None:
    code, part = try_mail(kpatch_ci, MAILS / "6.1-adds-a-function.patch", tmp_path)
    assert code == 0
    derived = {(p["kind"], p["name"]): p for p in part["proofs"] if p["derived"]}
    assert set(derived) == {
        ("function", "kpatch_ci_says"),
        ("function", "kpatch_ci_inlined"),
        ("variable", "kpatch_ci_said"),
        ("string", "kpatch-ci was here (%d)\\n"),
    }
    assert {name for (_, name), p in derived.items() if not p["holds"]} == {"kpatch_ci_inlined"}
    assert "inlined" in derived[("function", "kpatch_ci_inlined")]["why"]
    assert part["differing"].keys() == {"init/main.o"}
    (report,) = tmp_path.glob("out/report.txt")
    assert "3 of 4 in the patched image only" in " ".join(report.read_text().split())


def test_a_patch_of_documentation_is_not_built_at_all(kpatch_ci: Command, tmp_path: Path) -> None:
    patch = tmp_path / "docs.diff"
    patch.write_text("--- a/Documentation/x.rst\n+++ b/Documentation/x.rst\n@@ -1 +1 @@\n-a\n+b\n")
    done = kpatch_ci("try", patch, "--json", "--output", tmp_path / "out", timeout=60)
    assert done.code == 0
    assert done.result["status"] == "skipped"
    assert done.result["series"][0]["arches"] == []


def test_a_file_that_the_configuration_leaves_out_is_told_before_the_build_and_after(
    kpatch_ci: Command, tmp_path: Path
) -> None:
    patch = MAILS / "6.1-not-compiled.patch"
    done = kpatch_ci("try", patch, "--arch", "arm64", "--json", "--output", tmp_path / "out")
    before, _, _ = done.stderr.partition("stages: ")
    assert "arm64: fs/btrfs/export.c is not compiled under this configuration: CONFIG_BTRFS_FS is " in before
    assert done.code == 1
    part = arches(done.result)["arm64"]
    assert "nothing of it was built under this configuration" in part["reason"]
    assert part["not_compiled"] == ["fs/btrfs/export.c"]
    assert part["comparisons"] == []
    assert any("CONFIG_BTRFS_FS" in line for line in done.result["series"][0]["chosen"])


def test_check_names_what_is_there_instead(kpatch_ci: Command) -> None:
    done = kpatch_ci("check", PROJECT / "patches/schedutil-iowait-boost/original.txt")
    assert done.code == 1
    assert "kernel/sysctl.c" in done.stdout
    assert "the tree has" in done.stdout
