# SPDX-License-Identifier: GPL-2.0-or-later
"""Build logs: what the compilers said, and what of it is new."""

from __future__ import annotations

from kpatch_ci.kernel.diagnostics import diagnostics, failure_tail, introduced, known_after, objects_compiled, warnings

LOG = """\
  HOSTCC  scripts/basic/fixdep
  CC      kernel/sched/core.o
/src/kernel/sched/fair.c: In function 'wakeup_gran':
/src/kernel/sched/fair.c:7052:16: warning: unused variable 'x' [-Wunused-variable]
 7052 |  int x;
  CC [M]  fs/xfs/xfs_log.o
  AS      arch/arm64/kernel/entry.o
/src/kernel/sched/fair.c:7099:16: warning: unused variable 'x' [-Wunused-variable]
../src/mm/slub.c:10: warning: old style
WARNING: modpost: vmlinux: section mismatch in reference
  LD      vmlinux
"""
BROKEN = """\
  CC      kernel/sched/fair.o
/src/kernel/sched/fair.c: In function 'a':
/src/kernel/sched/fair.c:10:1: error: 'y' undeclared (first use in this function)
make[3]: *** [scripts/Makefile.build:250: kernel/sched/fair.o] Error 1
"""


def test_warnings_are_told_once_each_with_paths_of_the_tree() -> None:
    found = warnings(LOG)
    assert [(d.path, d.line, d.option) for d in found] == [
        ("kernel/sched/fair.c", 7052, "-Wunused-variable"),
        ("mm/slub.c", 10, ""),
        ("", 0, ""),
    ]
    assert found[2].text.startswith("modpost: vmlinux: section mismatch")


def test_an_error_is_no_warning() -> None:
    assert [d.severity for d in diagnostics(BROKEN)] == ["error"]
    assert warnings(BROKEN) == ()


def test_objects_are_those_of_the_target_not_of_the_host() -> None:
    assert objects_compiled(LOG) == 3


def test_a_warning_that_only_moved_is_not_new() -> None:
    moved = LOG.replace(":7052:", ":8000:").replace(":7099:", ":8047:")
    assert introduced(warnings(moved), warnings(LOG)) == ()
    other = "/src/kernel/sched/fair.c:1:1: warning: unused variable 'z' [-Wunused-variable]\n"
    assert [d.text for d in introduced(warnings(LOG + other), warnings(LOG))] == ["unused variable 'z'"]


def test_the_tail_of_a_failed_build_starts_at_the_error() -> None:
    tail = failure_tail("  CC a.o\n" * 200 + BROKEN)
    assert "'y' undeclared" in tail
    assert tail.count("CC a.o") <= 3
    assert failure_tail("one\ntwo") == "one\ntwo"


def test_the_same_words_in_another_function_are_another_warning() -> None:
    more = LOG.replace(
        "/src/kernel/sched/fair.c:7099", "/src/kernel/sched/fair.c: In function 'other':\n/src/kernel/sched/fair.c:7099"
    )
    assert [(d.line, d.context) for d in introduced(warnings(more), warnings(LOG))] == [(7099, "other")]
    assert introduced(warnings(more.replace(":7099:", ":1:")), warnings(more)) == ()


def test_what_a_function_was_inlined_into_is_part_of_its_place() -> None:
    log = (
        "In function 'memcpy',\n"
        "/src/include/linux/s.h: In function \u2018memcpy\u2019,\n"
        "    inlined from \u2018f\u2019 at /src/fs/a.c:12:9:\n"
        "/src/include/linux/s.h:5:1: warning: too much [-Wstringop-overread]\n"
        "/src/include/linux/s.h: At top level:\n"
        "/src/include/linux/s.h:9:1: warning: odd\n"
    )
    assert [d.context for d in warnings(log)] == ["memcpy in f", ""]


def test_objtool_is_heard_and_its_offsets_are_positions() -> None:
    one, two = (f"vmlinux.o: warning: objtool: f+0x{n}: unreachable instruction\n" for n in ("1a", "2b"))
    assert [(d.path, d.text) for d in warnings(one)] == [("vmlinux.o", "objtool: f: unreachable instruction")]
    assert introduced(warnings(two), warnings(one)) == ()


def test_of_what_was_not_compiled_again_the_old_words_stand() -> None:
    before = [d.identity for d in warnings(LOG)]
    assert {i[0] for i in known_after(before, "", ())} == {"kernel/sched/fair.c", "mm/slub.c"}, "the link is always new"
    assert {i[0] for i in known_after(before, "  CC      kernel/sched/fair.o\n", ())} == {"mm/slub.c"}
    assert {i[0] for i in known_after(before, "", ("mm/slub.c",))} == {"kernel/sched/fair.c"}
    assert known_after(before, LOG, ()) == frozenset(before)


def test_hostile_paths_are_only_words() -> None:
    before = [d.identity for d in warnings("/:1: warning: x\n.:2: warning: y\n")]
    assert known_after(before, "", ()) == frozenset(before)
