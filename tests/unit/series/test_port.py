# SPDX-License-Identifier: GPL-2.0-or-later
"""A conflict is left in a worktree, resolved by hand, and becomes a port: in small repositories, with real git."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from git import Repo

from kpatch_ci.model.build import Tree
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.series import ApplyMethod, Patch, Series
from kpatch_ci.series.apply import apply_series, open_index
from kpatch_ci.series.folder import load_series
from kpatch_ci.series.intake import read_patches
from kpatch_ci.series.port import check_series, from_worktree, make_patches, same_functions, verify
from kpatch_ci.series.portfolder import new_folder, write_port
from kpatch_ci.series.worktree import Kept, keep
from tests.unit.series.conftest import make_patch, make_series

if TYPE_CHECKING:
    from tests.unit.series.conftest import Lab

LAMP = "kernel/lamp.c"
TEXT = "".join(f"int line_{i};\n" for i in range(1, 41))
BASE = {LAMP: TEXT, "Makefile": "VERSION = 6\nPATCHLEVEL = 1\n"}
THEIRS = {**BASE, LAMP: TEXT.replace("int line_20;", "char line_20;")}
MESSAGE = "Why it is changed.\n\nSigned-off-by: Ada Exämple <ada@lamps.example>"
DATE = "Fri, 8 Dec 2017 11:26:45 +0100"


def to_long(files: dict[str, str], *numbers: int) -> dict[str, str]:
    text = files[LAMP]
    for number in numbers:
        text = text.replace(f" line_{number};", f" line_{number}; /* long */")
    return {**files, LAMP: text}


def mailed(lab: Lab, before: dict[str, str], after: dict[str, str], subject: str = "lamp: Change it") -> Patch:
    patch = lab.patch(before, after, subject)
    return replace(patch, author="Ada Exämple", message=MESSAGE, date=DATE, prefix="[RFC PATCH 1/2]")


def foreign(patch: Patch) -> Patch:
    return replace(patch, diff=patch.diff.replace(b"\nindex ", b"\nindex 0"))


@pytest.fixture
def theirs(lab: Lab) -> Tree:
    """The tree that it does not apply to."""
    return replace(lab.at(lab.commit(THEIRS, "a kernel")), label="debian:6.1", release="6.1.192")


def git(place: Path, *words: str) -> str:
    argv = ["git", "-C", str(place), "-c", "user.name=P", "-c", "user.email=p@p", "-c", "core.editor=true", *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def resolve(kept: Kept, files: dict[str, str]) -> None:
    """What a person does."""
    (kept.directory / LAMP).write_text(files[LAMP])
    for name in kept.rejected:
        (kept.directory / name).unlink()
    git(kept.directory, "add", "-A")
    git(kept.directory, "am", "--continue")


def port(series: Series, tree: Tree, directory: Path, note: str = "because", author: str = "") -> dict[str, bytes]:
    with open_index(tree) as index:
        steps = from_worktree(index, series, tree, directory)
        return make_patches(index, tree, steps, release="6.1", note=note, author=author)[0]


def test_a_conflict_is_left_with_markers_where_the_blobs_are_there(lab: Lab, theirs: Tree, tmp_path: Path) -> None:
    series = make_series(mailed(lab, BASE, to_long(BASE, 5, 20, 35)))
    kept = keep(series, theirs, tmp_path / "work")
    assert (kept.applied, kept.stopped_at, kept.marked, kept.rejected, kept.left) == (
        0,
        "lamp: Change it",
        (LAMP,),
        (),
        0,
    )
    text = (tmp_path / "work" / LAMP).read_text()
    assert "<<<<<<< " in text
    assert "int line_5; /* long */" in text
    assert "char line_20;\n=======" in text.replace("||||||| base\n", "")


def test_without_the_blobs_what_goes_is_applied_and_the_rest_is_rejected(
    lab: Lab, theirs: Tree, tmp_path: Path
) -> None:
    series = make_series(foreign(mailed(lab, BASE, to_long(BASE, 5, 20, 35))))
    kept = keep(series, theirs, tmp_path / "work")
    assert (kept.marked, kept.rejected) == ((), (f"{LAMP}.rej",))
    text = (tmp_path / "work" / LAMP).read_text()
    assert text == to_long(THEIRS, 5, 35)[LAMP]
    rejected = (tmp_path / "work" / f"{LAMP}.rej").read_text()
    assert rejected.startswith(f"diff a/{LAMP} b/{LAMP}\t(rejected hunks)\n@@ -17,7 +17,7 @@")
    assert "+int line_20; /* long */" in rejected
    assert "line_35" not in rejected


@pytest.mark.parametrize("known", [True, False])
def test_what_was_resolved_becomes_a_port_with_the_mails_words(
    lab: Lab, theirs: Tree, tmp_path: Path, known: bool
) -> None:
    one = mailed(lab, BASE, to_long(BASE, 5), "lamp: First")
    two = mailed(lab, to_long(BASE, 5), to_long(BASE, 5, 20), "lamp: Second")
    three = mailed(lab, to_long(BASE, 5, 20), to_long(BASE, 5, 20, 35), "lamp: Third")
    series = make_series(one, *((two, three) if known else (foreign(two), foreign(three))))
    kept = keep(series, theirs, tmp_path / "work")
    assert (kept.applied, kept.stopped_at, kept.left) == (1, "lamp: Second", 1)
    resolve(kept, to_long(THEIRS, 5, 20))
    files = port(series, theirs, tmp_path / "work", note="line_20 is a char there")
    assert list(files) == ["0001-lamp-First.patch", "0002-lamp-Second.patch", "0003-lamp-Third.patch"]
    text = files["0002-lamp-Second.patch"].decode()
    assert text.startswith("From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: ")
    assert f"Date: {DATE}\n" in text
    assert "Subject: [RFC PATCH] lamp: Second\n" in text
    assert "<ada@lamps.example>\n[kpatch-ci: ported to 6.1: line_20 is a char there]\n---\n" in text
    assert "ported to" not in files["0001-lamp-First.patch"].decode()
    assert "P <p@p>" not in text
    read = [patch for name in files for patch in written(tmp_path, name, files[name])]
    assert [(p.author, p.email, p.date) for p in read] == [("Ada Exämple", "ada@lamps.example", DATE)] * 3
    tree_id = lab.tree(to_long(THEIRS, 5, 20, 35)).tree_id
    verify(series, tuple(read), theirs, tree_id)
    with pytest.raises(InfrastructureError, match="was resolved"):
        verify(series, tuple(read), theirs, theirs.tree_id)
    with pytest.raises(InfrastructureError, match=r"does not apply to debian:6\.1"):
        verify(series, (two,), theirs, tree_id)


def written(place: Path, name: str, data: bytes) -> tuple[Patch, ...]:
    (place / name).write_bytes(data)
    return read_patches(place / name)


def test_a_mail_without_a_date_gets_the_day_of_the_port(lab: Lab, theirs: Tree, tmp_path: Path) -> None:
    before = int(time.time())
    one = replace(mailed(lab, BASE, to_long(BASE, 5), "lamp: First"), date="")
    two = replace(mailed(lab, to_long(BASE, 5), to_long(BASE, 5, 20), "lamp: Second"), date="")
    series = make_series(one, two)
    resolve(keep(series, theirs, tmp_path / "work"), to_long(THEIRS, 5, 20))
    files = port(series, theirs, tmp_path / "work")
    dates = [written(tmp_path, name, data)[0].date for name, data in files.items()]
    assert all(before <= parsedate_to_datetime(date).timestamp() <= time.time() for date in dates)
    assert files == port(series, theirs, tmp_path / "work")


def test_the_same_worktree_gives_the_same_files(lab: Lab, theirs: Tree, tmp_path: Path) -> None:
    series = make_series(mailed(lab, BASE, to_long(BASE, 20)))
    resolve(keep(series, theirs, tmp_path / "work"), to_long(THEIRS, 20))
    assert port(series, theirs, tmp_path / "work") == port(series, theirs, tmp_path / "work")


def test_a_note_is_asked_for_unless_the_commit_has_one(lab: Lab, theirs: Tree, tmp_path: Path) -> None:
    series = make_series(mailed(lab, BASE, to_long(BASE, 20)))
    resolve(keep(series, theirs, tmp_path / "work"), to_long(THEIRS, 20))
    with pytest.raises(UserError, match="nothing says what was adapted"):
        port(series, theirs, tmp_path / "work", note="")
    git(
        tmp_path / "work",
        "commit",
        "--amend",
        "-m",
        f"lamp: Change it\n\n{MESSAGE}\n[kpatch-ci: ported to 6.1: by hand]",
    )
    (text,) = port(series, theirs, tmp_path / "work", note="").values()
    assert text.count(b"[kpatch-ci: ported to 6.1: by hand]") == 1


def test_a_masked_address_has_to_be_given(lab: Lab, theirs: Tree, tmp_path: Path) -> None:
    series = make_series(replace(mailed(lab, BASE, to_long(BASE, 20)), email=""))
    resolve(keep(series, theirs, tmp_path / "work"), to_long(THEIRS, 20))
    with pytest.raises(UserError, match=r"the address of the author of `lamp: Change it` .* is not known"):
        port(series, theirs, tmp_path / "work")
    (text,) = port(series, theirs, tmp_path / "work", author="Ada <ada@real.example>").values()
    assert b"From: Ada <ada@real.example>\n" in text


def test_a_sign_off_that_was_lost_or_added_is_said(lab: Lab, theirs: Tree, tmp_path: Path) -> None:
    series = make_series(mailed(lab, BASE, to_long(BASE, 20)))
    resolve(keep(series, theirs, tmp_path / "work"), to_long(THEIRS, 20))
    git(tmp_path / "work", "commit", "--amend", "-m", "lamp: Change it\n\nSigned-off-by: P <p@p>")
    with open_index(theirs) as index:
        steps = from_worktree(index, series, theirs, tmp_path / "work")
        notes = make_patches(index, theirs, steps, release="6.1", note="x", author="")[2]
    assert notes == (
        "`lamp: Change it` has lost `Signed-off-by: Ada Exämple <ada@lamps.example>`",
        "`lamp: Change it`: `Signed-off-by: P <p@p>` is not the mail's",
    )


def test_what_is_unresolved_is_no_port(lab: Lab, theirs: Tree, tmp_path: Path) -> None:
    series = make_series(foreign(mailed(lab, BASE, to_long(BASE, 20))))
    kept = keep(series, theirs, tmp_path / "work")
    with pytest.raises(UserError, match="a git am is not finished"):
        port(series, theirs, kept.directory)
    (kept.directory / LAMP).write_text(to_long(THEIRS, 20)[LAMP])
    git(kept.directory, "add", LAMP)
    git(kept.directory, "am", "--continue")
    with pytest.raises(UserError, match=r"rejected hunks are left: kernel/lamp\.c\.rej"):
        port(series, theirs, kept.directory)
    (kept.directory / f"{LAMP}.rej").unlink()
    (kept.directory / LAMP).write_text("more")
    with pytest.raises(UserError, match=r"not committed: kernel/lamp\.c"):
        port(series, theirs, kept.directory)


def test_rejected_hunks_that_were_ignored_or_committed_are_seen(lab: Lab, theirs: Tree, tmp_path: Path) -> None:
    series = make_series(foreign(mailed(lab, BASE, to_long(BASE, 20))))
    kept = keep(series, theirs, tmp_path / "work")
    (kept.directory / LAMP).write_text(to_long(THEIRS, 20)[LAMP])
    git(kept.directory, "add", "-A")
    git(kept.directory, "am", "--continue")
    with pytest.raises(UserError, match=r"committed by mistake: kernel/lamp\.c\.rej"):
        port(series, theirs, kept.directory)
    git(kept.directory, "rm", "-q", "--cached", f"{LAMP}.rej")
    git(kept.directory, "commit", "-q", "--amend", "--no-edit")
    (tmp_path / "ignored").write_text("*.rej\n")
    git(kept.directory, "config", "core.excludesFile", str(tmp_path / "ignored"))
    with pytest.raises(UserError, match=r"rejected hunks are left: kernel/lamp\.c\.rej"):
        port(series, theirs, kept.directory)


def test_a_directory_that_is_no_worktree_or_of_another_tree_is_refused(lab: Lab, theirs: Tree, tmp_path: Path) -> None:
    series = make_series(mailed(lab, BASE, to_long(BASE, 20)))
    with pytest.raises(UserError, match="is no git worktree"):
        port(series, theirs, tmp_path / "nowhere")
    other = tmp_path / "other"
    repo = Repo.init(other)
    assert not repo.bare
    (other / "x").write_text("x")
    git(other, "add", "x")
    git(other, "commit", "-q", "-m", "x")
    with pytest.raises(UserError, match=r"is not based on debian:6\.1"):
        port(series, theirs, other)


def test_a_directory_in_use_a_stack_and_a_series_that_is_there_are_refused(
    lab: Lab, theirs: Tree, tmp_path: Path
) -> None:
    patch = mailed(lab, BASE, to_long(BASE, 20))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    with pytest.raises(UserError, match="is there already"):
        keep(make_series(patch), theirs, tmp_path / "full")
    with pytest.raises(UserError, match="a stack"):
        keep(make_series(members=(make_series(patch),)), theirs, tmp_path / "work")
    there = replace(lab.at(lab.commit(to_long(BASE, 20), "has it")), label="lab")
    with pytest.raises(UserError, match="already in the tree"):
        keep(make_series(foreign(patch)), there, tmp_path / "work")


def test_hunks_that_git_would_put_into_another_function_are_left_to_the_person(lab: Lab, tmp_path: Path) -> None:
    body = "{\n\tint ret;\n\n\tret = lamp_lock();\n\tif (ret)\n\t\treturn ret;\n\tlamp_write();\n\treturn 0;\n}\n\n"
    on, off = f"static int lamp_on(int a)\n{body}", f"static int lamp_off(int a)\n{body}"
    new = off.replace("lamp_write();", "lamp_clear();")
    patch = foreign(mailed(lab, {LAMP: on + off}, {LAMP: on + new}))
    tree = lab.at(lab.commit({LAMP: on + off.replace("write();", "write(0);"), **{"Makefile": BASE["Makefile"]}}, "k"))
    kept = keep(make_series(patch), tree, tmp_path / "work")
    assert kept.rejected == (f"{LAMP}.rej",)
    assert "lamp_clear" not in (tmp_path / "work" / LAMP).read_text()
    wrong = lab.patch({LAMP: on + off}, {LAMP: on.replace("lamp_write();", "lamp_clear();") + off})
    assert same_functions(patch, wrong) == [f"{LAMP}: the mail changes lamp_off(), the port lamp_on()"]
    assert same_functions(patch, patch) == []


def test_a_three_way_merge_becomes_a_port_by_itself(lab: Lab, tmp_path: Path) -> None:
    files = {**BASE, LAMP: TEXT.replace("int line_17;", "char line_17;")}
    tree = replace(lab.at(lab.commit(files, "k")), label="debian:6.1")
    series = make_series(mailed(lab, BASE, to_long(BASE, 20)))
    steps = check_series(series, tree, 0)
    with open_index(tree) as index:
        made, tree_id, _ = make_patches(index, tree, steps, release="6.1", note="merged", author="")
    (name,) = made
    verify(series, written(tmp_path, name, made[name]), tree, tree_id)
    with pytest.raises(UserError, match="needs no port"):
        check_series(series, replace(lab.at(lab.commit(BASE, "k")), label="lab"), 0)
    with pytest.raises(UserError, match="--keep DIR"):
        check_series(series, replace(lab.at(lab.commit(THEIRS, "k")), label="lab"), 0)


def test_a_mail_gets_a_folder_and_the_port_is_used_from_it(lab: Lab, theirs: Tree, tmp_path: Path) -> None:
    series = make_series(mailed(lab, BASE, to_long(BASE, 20)))
    resolve(keep(series, theirs, tmp_path / "work"), to_long(THEIRS, 20))
    files = port(series, theirs, tmp_path / "work")
    mail = tmp_path / "lamp.patch"
    mail.write_bytes(
        b"From: Ada <ada@lamps.example>\nSubject: [PATCH] lamp: Change it\n\n---\n" + series.patches[0].diff
    )
    patches = tmp_path / "patches"
    new_folder(patches / "lamp", [mail], series)
    paths = write_port(patches / "lamp", theirs, files, old=[])
    assert [str(p.relative_to(patches)) for p in paths] == [
        "lamp/ports/debian-6.1/0001-lamp-Change-it.patch",
        "lamp/series.yaml",
    ]
    loaded = load_series(patches / "lamp", patches)
    assert (patches / "lamp" / "lamp.patch").read_bytes() == mail.read_bytes()
    assert apply_series(loaded, theirs).method is ApplyMethod.PORT
    with pytest.raises(UserError, match="is there already"):
        new_folder(patches / "lamp", [mail], series)


def test_a_patch_without_an_author_can_be_kept(lab: Lab, theirs: Tree, tmp_path: Path) -> None:
    kept = keep(
        make_series(replace(make_patch(lab.diff(BASE, to_long(BASE, 20))), author="", email="")),
        theirs,
        tmp_path / "work",
    )
    assert kept.marked == (LAMP,)
