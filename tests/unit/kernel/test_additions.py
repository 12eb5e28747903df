# SPDX-License-Identifier: GPL-2.0-or-later
"""What a patch adds to a file, and what of it is found in an image."""

from __future__ import annotations

from pathlib import Path

import git
import pytest

from kpatch_ci.kernel.additions import Addition, additions, literal_bytes, tree_additions
from kpatch_ci.kernel.prove import prove_derived
from tests.fakes.elf import elf

OLD = """\
int old_function(int a)
{
	return a;
}
"""
NEW = (
    OLD
    + """\
/* int in_a_comment(void)
{ } */
static inline unsigned long helper(struct task_struct *p, int a)
{
	pr_info("it says \\"helper\\" %d\\n", a); // "no text of ours"
	return 0;
}

int global_one(int a,
	int b)
	__must_hold(&lock)
{
	if (a)
		return old_function(b);
}

struct forward;
extern int elsewhere;
typedef int number_t;
int prototype(int a);
unsigned int sysctl_new __read_mostly = 20;
static struct ctl_table table[] = {
	{
		.procname	= "iowait_new",
	},
};
static DEFINE_PER_CPU(int, per_cpu_thing);
DEFINE_MUTEX(new_mutex);
module_param(knob, int, 0644);
MODULE_PARM_DESC(knob, "a description that is not looked for");
SCHED_FEAT(NEW_FEATURE, true)
SYSCALL_DEFINE2(new_call, int, a, int, b)
{
	return 0;
}
#define UNUSED "a text inside of a macro"
"""
)


def test_what_is_defined_at_file_scope_is_found_and_nothing_else() -> None:
    found = {(one.kind, one.name): one.static for one in additions(OLD, NEW, "kernel/x.c")}
    assert found == {
        ("function", "helper"): True,
        ("function", "global_one"): False,
        ("variable", "sysctl_new"): False,
        ("variable", "table"): True,
        ("variable", "per_cpu_thing"): True,
        ("variable", "new_mutex"): False,
        ("sysctl", "iowait_new"): False,
        ("parameter", "knob"): False,
        ("sched_feature", "NEW_FEATURE"): False,
        ("syscall", "new_call"): False,
        ("string", 'it says \\"helper\\" %d\\n'): False,
        ("string", "iowait_new"): False,
    }
    assert additions(NEW, NEW, "kernel/x.c") == ()
    assert additions("", "SYM_FUNC_START(fast)\n\tret\nSYM_FUNC_END(fast)\n", "a.S") == (Addition("function", "fast"),)


@pytest.mark.parametrize(
    ("text", "stored"),
    [("a\\n\\t\\\\", b"a\n\t\\"), ('\\"q\\"', b'"q"'), ("\\x41\\101\\0", b"AA\0"), ("\u00fc", "\u00fc".encode())],
)
def test_literals_are_stored_as_the_compiler_stores_them(text: str, stored: bytes) -> None:
    assert literal_bytes(text) == stored


def artifact(place: Path, symbols: str, strings: bytes, module: bytes) -> Path:
    (place / "modules").mkdir(parents=True)
    (place / "System.map").write_text(symbols)
    (place / "vmlinux").write_bytes(b"\x7fELF\0" + strings)
    (place / "modules/one.ko").write_bytes(module)
    return place


def test_each_is_looked_up_in_both_arms_and_what_is_missing_is_explained(tmp_path: Path) -> None:
    base = artifact(tmp_path / "b", "ff T moved\n", b"", elf({}))
    new = artifact(
        tmp_path / "p",
        "ff T moved\nff t cut.isra.0\nff T __arm64_sys_new_call\nff d __param_knob\n",
        b"\x016a text\n of ours\0\0iowait_new\0",
        elf({}, symbols=("in_module",)),
    )
    wanted = [
        Addition("function", "moved"),
        Addition("function", "cut", static=True),
        Addition("function", "inlined", static=True),
        Addition("function", "in_module"),
        Addition("variable", "nowhere"),
        Addition("syscall", "new_call"),
        Addition("parameter", "knob"),
        Addition("sysctl", "iowait_new"),
        Addition("sysctl", "iowait"),
        Addition("string", "a text\\n of ours"),
        Addition("string", "another text"),
    ]
    proofs = {p.name: p for p in prove_derived(wanted, base, new)}
    held = {name for name, proof in proofs.items() if proof.holds}
    assert held == {"cut", "in_module", "new_call", "knob", "iowait_new", "a text\\n of ours"}
    assert "in the baseline too" in proofs["moved"].why
    assert "inlined" in proofs["inlined"].why
    assert proofs["nowhere"].why
    assert "compiled out" in proofs["another text"].why
    assert not any(p.broken for p in proofs.values()), "what we derived and do not find is no fault"


def test_a_trees_changed_files_are_compared_each_with_itself(tmp_path: Path) -> None:
    repo = git.Repo.init(tmp_path)
    trees = []
    for text in (OLD, NEW):
        (tmp_path / "x.c").write_text(text)
        (tmp_path / "x.txt").write_text(text.replace("old", "any"))
        (tmp_path / "gone.c").unlink(missing_ok=True)
        if text == OLD:
            (tmp_path / "gone.c").write_text("int gone(void)\n{\n}\n")
        repo.git.add("-A")
        trees.append(str(repo.git.write_tree()))
    found = {one.name for one in tree_additions(tmp_path, *trees)}
    assert {"global_one", "helper", "knob"} <= found
    assert {"gone", "old_function", "any_function"} & found == set()
    assert "gone" in {one.name for one in tree_additions(tmp_path, trees[1], trees[0])}
