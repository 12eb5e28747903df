# SPDX-License-Identifier: GPL-2.0-or-later
"""Folders with a series.yaml, stacks, and plain files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.series.folder import load_series, series_from_files


@pytest.fixture
def folders(tmp_path: Path, mails: Path) -> Path:
    """Series ``one`` and ``two`` and a stack of both."""
    root = tmp_path / "patches"
    for name in ("one", "two", "both"):
        (root / name / "ports").mkdir(parents=True)
        shutil.copy(mails / "format-patch.patch", root / name / "mail.txt")
        shutil.copy(mails / "quoted-printable.eml", root / name / "ports" / "port.eml")
    write(
        root,
        "one",
        'title: One\nfiles: [mail.txt]\nports: {"6.1": [ports/port.eml]}\nworkloads: [dd]\nadds: {symbols: [a]}\n',
    )
    write(
        root, "two", "title: Two\nfiles: [mail.txt]\nworkloads: [dbench, dd]\nadds: {symbols: [a, b], sysctls: [c]}\n"
    )
    write(root, "both", "title: Both\nstack: [one, two]\nadds: {sched_features: [F]}\n")
    return root


def write(root: Path, name: str, text: str) -> None:
    (root / name).mkdir(exist_ok=True)
    (root / name / "series.yaml").write_text(text)


def complaints(root: Path, name: str) -> list[str]:
    with pytest.raises(UserErrors) as caught:
        load_series(root / name, root)
    return [str(error).replace(f"{root}/", "") for error in caught.value.errors]


def test_a_folder_is_read_with_its_ports(folders: Path) -> None:
    series = load_series(folders / "one", folders)
    assert (series.name, series.title, series.workloads, series.adds.symbols) == ("one", "One", ("dd",), ("a",))
    assert series.paths == ("kernel/lamp.c",)
    assert series.patches[0].author == "Ada Example"
    assert series.ports["6.1"][0].author == "Adä Example"
    assert series.members == ()


def test_a_stack_has_its_members_patches_in_order_and_what_they_add_together(folders: Path) -> None:
    stack = load_series(folders / "both", folders)
    assert [member.name for member in stack.members] == ["one", "two"]
    assert [Path(patch.source).parent.name for patch in stack.patches] == ["one", "two"]
    assert (stack.adds.symbols, stack.adds.sysctls, stack.adds.sched_features) == (("a", "b"), ("c",), ("F",))
    assert stack.workloads == ("dd", "dbench")


def test_a_stacks_own_port_replaces_that_of_its_member_there_only(folders: Path) -> None:
    write(folders, "both", 'title: Both\nstack: [one, two]\nports: {"6.1": {one: [ports/port.eml, mail.txt]}}\n')
    one, two = load_series(folders / "both", folders).members
    assert [Path(patch.source).parts[-2] for patch in one.ports["6.1"]] == ["ports", "both"]
    assert two.ports == {}
    assert len(load_series(folders / "one", folders).ports["6.1"]) == 1


def test_the_projects_own_series_load(seeds: Path) -> None:
    stack = load_series(seeds / "all-three", seeds)
    assert [member.name for member in stack.members] == ["schedutil-iowait-boost", "wakeup-gran", "stack-workqueue"]
    assert stack.adds.sched_features == ("SCALE_WAKEUP_GRAN", "WA_STACK_WQ")
    assert "6.1" in stack.members[0].ports


def test_every_error_is_said_at_once_with_its_line(folders: Path) -> None:
    write(folders, "one", "title: One\nfilez: [x]\nworkloads: dd\n")
    found = complaints(folders, "one")
    assert found[0] == "one/series.yaml:2: unknown key 'filez' (did you mean 'files'?)"
    assert found[1].startswith("one/series.yaml:3: workloads")


def test_files_that_are_not_there_or_outside_are_named_with_their_line(folders: Path) -> None:
    write(
        folders,
        "one",
        'title: One\nfiles:\n  - mail.txt\n  - gone.txt\n  - ../two/mail.txt\nports:\n  "6.1": [gone.patch]\n',
    )
    assert complaints(folders, "one") == [
        "one/series.yaml:4: no file gone.txt (a file below one)",
        "one/series.yaml:5: ../two/mail.txt is outside the folder (a file below series.yaml)",
        "one/series.yaml:7: no file gone.patch (a file below one)",
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("title: One\n", "one/series.yaml:1: neither files nor stack given (exactly one of the two)"),
        (
            "title: One\nfiles: [mail.txt]\nstack: [two]\n",
            "one/series.yaml:3: both files and stack given (exactly one of the two)",
        ),
        ("title: One\nstack: [tow]\n", "one/series.yaml:2: stack: no series tow (one of both, one, two)"),
        (
            "title: One\nfiles: [mail.txt]\nports: {6.10: [mail.txt]}\n",
            'one/series.yaml:3: ports: a version without quotes is the number 6.1 to YAML (quotes, such as "6.10")',
        ),
        (
            "title: One\nfiles: [mail.txt]\nports: {new: [mail.txt]}\n",
            'one/series.yaml:3: ports: new is no version (such as "6.1")',
        ),
        (
            'title: One\nfiles: [mail.txt]\nports: {"6.1": []}\n',
            "one/series.yaml:3: ports.6.1 is empty (the files of the port)",
        ),
        (
            'title: One\nfiles: [mail.txt]\nports: {"6.1": {one: [mail.txt]}}\n',
            "one/series.yaml:3: ports.6.1 is not of the right form (a list of files)",
        ),
        (
            'title: One\nstack: [two]\nports: {"6.1": {three: [mail.txt]}}\n',
            "one/series.yaml:3: ports.6.1: no member three (one of two)",
        ),
    ],
)
def test_contradictions_are_named(folders: Path, text: str, complaint: str) -> None:
    write(folders, "one", text)
    assert complaints(folders, "one") == [complaint]


def test_a_stack_that_contains_itself_is_named_as_a_loop(folders: Path) -> None:
    write(folders, "one", "title: One\nstack: [both]\n")
    with pytest.raises(UserError, match="a stack contains itself: both -> one -> both"):
        load_series(folders / "both", folders)


def test_a_folder_without_a_series_is_named(folders: Path) -> None:
    with pytest.raises(UserError, match="no series three"):
        load_series(folders / "three", folders)


def test_plain_files_are_a_series_too(mails: Path) -> None:
    series = series_from_files([mails / "thread.mbox"], "mine")
    assert (series.name, series.title) == ("mine", "lamp: First (and 1 more)")
    assert (len(series.patches), series.paths) == (2, ("kernel/lamp.c",))
    with pytest.raises(UserError, match="no patch given"):
        series_from_files([], "mine")
