# SPDX-License-Identifier: GPL-2.0-or-later
"""A port is entered into series.yaml without touching anything else."""

from __future__ import annotations

import pytest
import yaml

from kpatch_ci.model.errors import UserError
from kpatch_ci.series.yamledit import enter_port

HEAD = '# a comment\ntitle: "x"  # another\nfiles: [a.mail]\n'
TAIL = "paths:\n  - k.c   # kept\nnotes: >\n  Two\n  lines.\n"


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        ("", 'ports:\n  "6.12": [p/1.patch]\n'),
        ("ports: {}\n", 'ports:\n  "6.12": [p/1.patch]\n'),
        ('ports:\n  "6.1": [q.patch]  # why\n', 'ports:\n  "6.12": [p/1.patch]\n  "6.1": [q.patch]  # why\n'),
        ('ports:\n  "6.12": [old.patch]  # why\n', 'ports:\n  "6.12": [p/1.patch]  # why\n'),
        ('ports:\n  "6.12":\n    - old.patch\n    - b.patch\n  # c\n', 'ports:\n  "6.12": [p/1.patch]\n  # c\n'),
        ('ports: {"6.1": [q.patch]}\n', 'ports: {"6.1": [q.patch], "6.12": [p/1.patch]}\n'),
    ],
)
def test_only_the_port_changes(ports: str, expected: str) -> None:
    edited = enter_port(HEAD + ports + TAIL, "6.12", ["p/1.patch"], where="series.yaml")
    assert edited == HEAD + expected + TAIL


def test_names_that_yaml_would_misread_are_quoted() -> None:
    edited = enter_port(HEAD + TAIL, "6.12", ["p/a b: c.patch", "p/ü.patch"], where="series.yaml")
    assert yaml.safe_load(edited)["ports"] == {"6.12": ["p/a b: c.patch", "p/ü.patch"]}


def test_a_block_list_of_files_before_it_is_left_alone() -> None:
    edited = enter_port("title: x\nfiles:\n  - a\n  - b\n", "6.12", ["c"], where="series.yaml")
    assert edited == 'title: x\nfiles:\n  - a\n  - b\nports:\n  "6.12": [c]\n'


def test_a_form_that_cannot_be_edited_is_an_error_not_a_damaged_file() -> None:
    text = 'title: x\nfiles: [a]\nother: &same {"6.1": [q]}\nports: *same\n'
    with pytest.raises(UserError, match="cannot be edited"):
        enter_port(text, "6.1", ["c"], where="series.yaml")
