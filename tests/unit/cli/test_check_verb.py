# SPDX-License-Identifier: GPL-2.0-or-later
"""``check`` and ``port`` as people type them, on trees of every kind: small repositories, real git, nothing fetched."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from git import Repo

from kpatch_ci.cli import check, port
from kpatch_ci.cli.main import main
from kpatch_ci.debian.apt import Archives
from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.kernel.source import TreeCache

PROJECT = Path(__file__).resolve().parents[3]
MAKEFILE = "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 9\n"
LAMP = "kernel/lamp.c"
TEXT = "".join(f"int line_{i};\n" for i in range(1, 41))
WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@lamps.example")
Check = Callable[..., Any]


class Kernel:
    """A kernel in a git repository of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.repo = Repo.init(path)
        self.commit("the first", {"Makefile": MAKEFILE, LAMP: TEXT})

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_bytes(text.encode())

    def commit(self, subject: str, files: dict[str, str]) -> str:
        self.write(files)
        self.repo.git.add("-A")
        self.repo.git.execute(["git", *WHO, "commit", "-q", "--allow-empty", "-m", subject])
        return str(self.repo.git.rev_parse("HEAD"))

    def mail(self, subject: str = "lamp: Change it", *, foreign: bool = False) -> Path:
        """What is in the working tree as a mail, and the working tree as it was."""
        self.repo.git.add("-A")
        self.repo.git.execute(
            ["git", *WHO, "commit", "-q", "-m", subject, "-m", "Signed-off-by: Ada <ada@lamps.example>"]
        )
        place = Path(self.repo.git.format_patch("-1", "-M", "--binary", "-o", str(self.path.parent / "mails")))
        self.repo.git.reset("-q", "--hard", "HEAD~1")
        if foreign:
            place.write_bytes(place.read_bytes().replace(b"\nindex ", b"\nindex 0"))
        return place


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path / "linux")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TreeCache:
    """A pipeline of the test's own; nothing is installed or fetched."""
    trees = TreeCache(tmp_path / "cache", ToolRoot(tmp_path, "trixie", "f", {}), Archives("file:/nowhere", None))
    place = tmp_path / "project"
    place.mkdir()
    for name in ("kconfigs", "qemu"):
        shutil.copytree(PROJECT / name, place / name)
    shutil.copytree(PROJECT / "patches", place / "patches")
    shutil.copyfile(PROJECT / "pipeline.yaml", place / "pipeline.yaml")
    monkeypatch.chdir(place)
    monkeypatch.setattr(check, "open_trees", lambda _: trees)
    monkeypatch.setattr(port, "open_trees", lambda _: trees)
    return trees


@pytest.fixture
def checked(capsys: pytest.CaptureFixture[str]) -> Check:
    """Run ``check --json``; the exit status and the rows."""

    def run(*arguments: object) -> tuple[int, list[dict[str, Any]]]:
        code = main(["check", "--json", *map(str, arguments)])
        out = capsys.readouterr()
        return code, json.loads(out.out) if out.out else [{"stderr": out.err}]

    return run


def edit(kernel: Kernel, number: int = 20, name: str = LAMP) -> None:
    path = kernel.path / name
    path.write_bytes(path.read_bytes().replace(b"int line_%d;" % number, b"long line_%d;" % number))


def test_several_trees_give_a_table_of_how_it_stands_to_each(
    kernel: Kernel, checked: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    first = kernel.repo.git.rev_parse("HEAD")
    edit(kernel)
    mail = kernel.mail()
    moved = kernel.commit("moves it", {LAMP: "// new\n" + TEXT})
    near = kernel.commit("changes the context", {LAMP: TEXT.replace("int line_18;", "char line_18;")})
    other = kernel.commit("changes the line", {LAMP: TEXT.replace("int line_20;", "char line_20;")})
    there = kernel.commit("has it", {LAMP: TEXT.replace("int line_20;", "long line_20;") + "// more\n"})
    gone = kernel.commit("changes it again", {LAMP: TEXT.replace("int line_20;", "short line_20;") + "// more\n"})
    trees = [word for commit in (first, moved, near, other, there, gone) for word in ("-t", f"{kernel.path}@{commit}")]
    code, rows = checked(mail, *trees)
    assert code == 1
    assert [row["fit"] for row in rows] == [
        "as mailed",
        "as mailed",
        "three-way",
        "conflict",
        "already there",
        "conflict",
    ]
    assert rows[1]["patches"][0]["placements"][0]["offset"] == 1
    assert rows[0]["base"] is None  # a commit without a parent has no history
    assert [(c["commit"], c["matched"]) for c in rows[3]["base"]["candidates"]] == [(first, 1), (other, 0)]
    assert main(["check", str(mail), *trees]) == 1
    out = capsys.readouterr().out
    assert "three-way" in out
    assert "hunk 1: line 18, offset 1" in out
    assert f"to test it there: -t {kernel.path}@{first[:12]}" in out


def test_a_conflict_names_what_is_there_and_who_put_it_there(
    kernel: Kernel, checked: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(kernel)
    mail = kernel.mail(foreign=True)
    culprit = kernel.commit("lamp: make it a char", {LAMP: TEXT.replace("int line_20;", "char line_20;")})
    kernel.commit("later, elsewhere", {LAMP: TEXT.replace("int line_20;", "char line_20;") + "// more\n"})
    _, (row,) = checked(mail, "-t", kernel.path)
    (failure,) = row["patches"][0]["failures"]
    assert (failure["at"], failure["differing"], failure["hunk"]) == (17, [20], 1)
    (change,) = failure["last_changes"]
    assert (change["commit"], change["summary"], change["lines"]) == (culprit, "lamp: make it a char", [20])
    main(["check", str(mail), "-t", str(kernel.path)])
    out = capsys.readouterr().out
    assert "        20 ! char line_20;" in out
    assert f'line(s) 20 by {culprit[:12]} ("lamp: make it a char", Ada, ' in out


def test_fuzz_is_shown_wherever_it_was_used(kernel: Kernel, checked: Check, capsys: pytest.CaptureFixture[str]) -> None:
    edit(kernel)
    mail = kernel.mail(foreign=True)
    kernel.commit("changes the context", {LAMP: "// moved\n" + TEXT.replace("int line_17;", "char line_17;")})
    code, (row,) = checked(mail, "-t", kernel.path)
    assert (code, row["fit"], row["patches"][0]["failures"][0]["fuzz"]) == (1, "port needed", 1)
    code, (row,) = checked(mail, "-t", kernel.path, "--fuzz", 1)
    assert (code, row["fit"], row["method"]) == (0, "fuzz", "fuzz")
    (placement,) = row["patches"][0]["placements"]
    assert (placement["fuzz"], placement["offset"], placement["line"]) == (1, 1, 18)
    main(["check", str(mail), "-t", str(kernel.path), "--fuzz", "2"])
    assert "hunk 1: FUZZ 1, line 18, offset 1" in capsys.readouterr().out


def test_renames_deletions_modes_and_names_of_all_kinds(kernel: Kernel, checked: Check) -> None:
    odd = {
        "a b/ü c.c": TEXT,
        "crlf.c": TEXT.replace("\n", "\r\n"),
        "gone.c": "x\n" * 9,
        "old.c": TEXT + "// old\n",
        "run.sh": "#!\n",
    }
    kernel.commit("files", odd)
    edit(kernel, 20, "a b/ü c.c")
    edit(kernel, 20, "crlf.c")
    (kernel.path / "gone.c").unlink()
    kernel.repo.git.mv("old.c", "new name.c")
    edit(kernel, 5, "new name.c")
    (kernel.path / "run.sh").chmod(0o755)
    (kernel.path / "born.bin").write_bytes(bytes(range(256)))
    kernel.repo.git.add("-A")
    wanted = kernel.repo.git.write_tree()
    mail = kernel.mail()
    code, (row,) = checked(mail, "-t", kernel.path)
    assert (code, row["fit"], row["tree_id"]) == (0, "as mailed", wanted)
    assert set(row["changed_paths"]) == {"a b/ü c.c", "crlf.c", "gone.c", "old.c", "new name.c", "run.sh", "born.bin"}
    kernel.commit("the old file is gone", {"old.c": "nothing like it\n"})
    (kernel.path / "gone.c").unlink()
    kernel.repo.git.add("-A")
    kernel.commit("and so is the other", {})
    code, (row,) = checked(mail, "-t", kernel.path)
    assert code == 1
    reasons = {f["path"]: f["reason"] for f in row["patches"][0]["failures"]}
    assert reasons["gone.c"] == "already in the tree: the file is gone"
    assert "old.c" in reasons


def test_a_submodule_beside_the_files_is_left_alone(kernel: Kernel, checked: Check) -> None:
    kernel.repo.git.update_index("--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    kernel.repo.git.execute(["git", *WHO, "commit", "-q", "-m", "a submodule"])
    (kernel.path / LAMP).write_text(TEXT.replace("int line_20;", "long line_20;"))
    diff = kernel.repo.git.diff("HEAD", "--", LAMP)
    (kernel.path.parent / "x.patch").write_text(diff + "\n")
    kernel.repo.git.checkout("--", LAMP)
    code, (row,) = checked(kernel.path.parent / "x.patch", "-t", kernel.path)
    assert (code, row["changed_paths"]) == (0, [LAMP])
    assert "160000 commit" in kernel.repo.git.ls_tree("HEAD")


def test_what_is_not_committed_is_said_not_to_be_taken(kernel: Kernel, checked: Check) -> None:
    edit(kernel)
    mail = kernel.mail()
    kernel.write({LAMP: "dirty\n"})
    code, (row,) = checked(mail, "-t", kernel.path)
    assert (code, row["fit"]) == (0, "as mailed")
    assert row["tree_notes"] == [f"1 uncommitted changes are not taken ({LAMP}): what is tested is the commit"]
    assert (kernel.path / LAMP).read_text() == "dirty\n"


def test_a_shallow_clone_is_searched_as_far_as_it_goes(kernel: Kernel, checked: Check, tmp_path: Path) -> None:
    edit(kernel)
    mail = kernel.mail()
    for number in range(1, 5):
        kernel.commit(f"change {number}", {LAMP: TEXT.replace("int line_20;", f"char line_20[{number}];")})
    Repo.clone_from(f"file://{kernel.path}", tmp_path / "shallow", depth=2)
    code, (row,) = checked(mail, "-t", tmp_path / "shallow")
    assert (code, row["fit"]) == (1, "port needed")
    assert any("a shallow clone" in note for note in row["tree_notes"])
    assert row["base"]["complete"]
    assert "are nowhere in it" in row["base"]["notes"][0]


def test_a_bare_repository_a_worktree_and_a_plain_directory_are_trees_too(
    kernel: Kernel, checked: Check, tmp_path: Path
) -> None:
    edit(kernel)
    mail = kernel.mail()
    Repo.clone_from(str(kernel.path), tmp_path / "bare.git", bare=True)
    kernel.repo.git.worktree("add", "--detach", str(tmp_path / "second"))
    shutil.copytree(kernel.path, tmp_path / "plain", ignore=shutil.ignore_patterns(".git"))
    places = [tmp_path / name for name in ("bare.git", "second", "plain")]
    code, rows = checked(mail, *(word for place in places for word in ("-t", place)))
    assert (code, [row["fit"] for row in rows]) == (0, ["as mailed"] * 3)
    assert rows[2]["base"] is None


def test_what_is_no_tree_is_an_error_that_says_so(
    kernel: Kernel, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    edit(kernel)
    mail = kernel.mail()
    (tmp_path / "empty").mkdir()
    Repo.init(tmp_path / "unborn")
    for place, words in (
        (tmp_path / "empty", "empty: "),
        (tmp_path / "nowhere", "no such tree"),
        (kernel.path / "kernel", "kernel: "),
        (tmp_path / "unborn", "has no ref 'HEAD'"),
        (mail, "no such tree"),
    ):
        assert main(["check", str(mail), "-t", str(place)]) == 2
        assert words in capsys.readouterr().err


def test_a_conflict_is_kept_resolved_and_ported(
    kernel: Kernel, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    edit(kernel)
    mail = kernel.mail("lamp: Change it")
    kernel.commit("lamp: make it a char", {LAMP: TEXT.replace("int line_20;", "char line_20;")})
    work = tmp_path / "work"
    before = sorted(str(p) for p in (kernel.path / ".git").rglob("*"))
    assert main(["check", str(mail), "-t", str(kernel.path), "--keep", str(work)]) == 1
    said = capsys.readouterr().err
    assert f"{LAMP}: conflict markers" in said
    assert f"git -C {work} add -A && git -C {work} am --continue" in said
    (work / LAMP).write_text(TEXT.replace("int line_20;", "long char line_20;"))
    repo = Repo(work)
    repo.git.add("-A")
    repo.git.execute(["git", *WHO, "-c", "core.editor=true", "am", "--continue"])
    words = ["port", str(mail), "-t", str(kernel.path), "--from", str(work)]
    assert main(words) == 2
    assert "--note: " in capsys.readouterr().err
    assert main([*words, "--note", "line_20 is a char there"]) == 0
    name = mail.stem
    out = capsys.readouterr()
    assert f"patches/{name}/ports/linux-6.1/0001-lamp-Change-it.patch" in out.out
    assert f"./kpatch-ci run --series {name} -t {kernel.path}" in out.err
    assert main(["port", name, "-t", str(kernel.path), "--from", str(work), "--note", "x"]) == 2
    assert "--replace" in capsys.readouterr().err
    assert main(["port", name, "-t", str(kernel.path), "--from", str(work), "--note", "x", "--replace", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []
    assert sorted(str(p) for p in (kernel.path / ".git").rglob("*")) == before


def test_a_port_that_is_not_needed_is_refused(kernel: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    edit(kernel)
    mail = kernel.mail()
    assert main(["port", str(mail), "-t", str(kernel.path)]) == 2
    assert "it needs no port" in capsys.readouterr().err
    assert main(["port", "nothing", "-t", str(kernel.path)]) == 2
    assert "no series and no file nothing" in capsys.readouterr().err
    assert main(["port", "all-three", "-t", str(kernel.path)]) == 2
    assert "is a stack" in capsys.readouterr().err


def test_superseded_is_said_with_the_commit(kernel: Kernel, checked: Check) -> None:
    edit(kernel)
    mail = kernel.mail("lamp: Change it")
    taken = kernel.commit("lamp: Change it", {LAMP: TEXT.replace("int line_20;", "long long line_20;")})
    code, (row,) = checked(mail, "-t", kernel.path)
    assert (code, row["fit"]) == (1, "superseded")
    assert row["base"]["in_history"][0]["commit"] == taken
    code, (row,) = checked(mail, "-t", kernel.path, "--base-time", 0)
    assert (row["fit"], row["base"]) == ("conflict", None)
