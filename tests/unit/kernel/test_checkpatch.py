# SPDX-License-Identifier: GPL-2.0-or-later
"""checkpatch's words, read; and the mail that it is shown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import git
import pytest

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.kernel.checkpatch import Job, checkpatch, find_checkpatch, mail_of, parse
from kpatch_ci.model.build import Tree
from kpatch_ci.model.series import Patch
from kpatch_ci.model.status import Status
from kpatch_ci.store.artifacts import ArtifactStore

SAID = """\
WARNING:COMMIT_LOG_LONG_LINE: Possible unwrapped commit description (prefer a maximum 75 chars per line)
#6: 
a line of the message that is much too long

ERROR:CODE_INDENT: code indent should use tabs where possible
#19: FILE: kernel/sched/fair.c:7062:
+        int spaces;$

CHECK:SPACING: spaces preferred around that '+' (ctx:VxV)
#20: FILE: kernel/sched/fair.c:7063:
+\tx = a+b;
 \t     ^

WARNING:MISSING_SIGN_OFF: Missing Signed-off-by: line(s)

total: 1 errors, 2 warnings, 1 checks, 12 lines checked

NOTE: For some of the reported defects, checkpatch may be able to
      mechanically convert to the typical style using --fix or --fix-inplace.

/mail/patch has style problems, please review.
"""  # noqa: W291 (as it prints it)
CLEAN = "total: 0 errors, 0 warnings, 37 lines checked\n\n/mail/patch has no obvious style problems and is ready.\n"
MESSAGE = "Why.\n\nSigned-off-by: A B <a@example.org>"
PATCH = Patch(
    "f",
    "sched: it",
    "[PATCH 2/3]",
    "A B",
    "a@example.org",
    "Why.\n\nSigned-off-by: A B <a@example.org>",
    b"--- a/x\n",
    ("x",),
    "d",
)


@dataclass(frozen=True, slots=True)
class Says(ToolRoot):
    """Instead of perl: prints a file, which is the mail or what checkpatch would say."""

    said: str = ""

    def argv(self, command: Any, **how: Any) -> list[str]:
        return ["sh", "-c", 'printf "%s" "$1"; exit 1', "sh", self.said]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    repo = git.Repo.init(tmp_path / "linux")
    (tmp_path / "linux/Makefile").write_text("x\n")
    repo.git.add("-A")
    return Tree("t", "6.1.9", Path(repo.git_dir), "c", str(repo.git.write_tree()), "o")


def test_findings_are_read_with_place_and_line() -> None:
    found = parse(SAID, 2)
    assert found is not None
    assert [(f.severity, f.kind, f.path, f.line, f.source) for f in found] == [
        ("warning", "COMMIT_LOG_LONG_LINE", "", 0, "a line of the message that is much too long"),
        ("error", "CODE_INDENT", "kernel/sched/fair.c", 7062, "+        int spaces;$"),
        ("check", "SPACING", "kernel/sched/fair.c", 7063, "+\tx = a+b;"),
        ("warning", "MISSING_SIGN_OFF", "", 0, ""),
    ]
    assert found[0].text == "Possible unwrapped commit description (prefer a maximum 75 chars per line)"
    assert {f.patch for f in found} == {2}


def test_a_clean_mail_has_none() -> None:
    assert parse(CLEAN, 1) == ()


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Must be run from the top-level dir. of a kernel tree\n",
        SAID.replace("1 errors", "2 errors"),
        "Can't locate X.pm",
    ],
)
def test_a_run_that_did_not_get_through_is_not_taken_for_clean(said: str) -> None:
    assert parse(said, 1) is None


def test_the_mail_has_author_subject_message_and_diff() -> None:
    assert mail_of(PATCH).decode() == (
        "From: A B <a@example.org>\nSubject: [PATCH 2/3] sched: it\n\n"
        "Why.\n\nSigned-off-by: A B <a@example.org>\n---\n\n--- a/x\n"
    )


def test_what_cannot_be_judged_is_not_asked(tmp_path: Path, tree: Tree) -> None:
    """A commit without the history; the author's sign-off where an archive has masked the address."""
    asked: list[str] = []

    class Listens(Says):
        def argv(self, command: Any, **how: Any) -> list[str]:
            asked.append(next(w for w in command if w.startswith("--ignore=")))
            return super().argv(command, **how)

    tools = Listens(tmp_path, "trixie", "f", {}, CLEAN)
    checkpatch(tmp_path, ArtifactStore(tmp_path), Job(tools, tree, (PATCH, replace(PATCH, email=""))))
    assert asked == [
        "--ignore=UNKNOWN_COMMIT_ID",
        "--ignore=UNKNOWN_COMMIT_ID,NO_AUTHOR_SIGN_OFF,FROM_SIGN_OFF_MISMATCH",
    ]
    assert not mail_of(replace(PATCH, email="")).startswith(b"From:")


def test_findings_are_kept_and_a_failure_is_not(tmp_path: Path, tree: Tree) -> None:
    store = ArtifactStore(tmp_path / "store")
    job = Job(Says(tmp_path, "trixie", "f", {}, SAID), tree, (PATCH, PATCH))
    found = checkpatch(tmp_path / "cache", store, job)
    assert (found.status, found.checked, len(found.findings)) == (Status.PASSED, 2, 8)
    assert [f.patch for f in found.findings] == [1] * 4 + [2] * 4
    again = find_checkpatch(store, job)
    assert again is not None
    assert again.cached
    assert again.findings == found.findings
    bad = Job(Says(tmp_path, "trixie", "g", {}, "perl: died\n"), tree, (PATCH,))
    failed = checkpatch(tmp_path / "cache", store, bad)
    assert failed.status is Status.ERROR
    assert "did not get through patch 1 `sched: it`" in failed.reason
    assert failed.log_tail == "perl: died\n"
    assert find_checkpatch(store, bad) is None
