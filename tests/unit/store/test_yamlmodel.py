# SPDX-License-Identifier: GPL-2.0-or-later
"""YAML against a model: every error at once, each with its line and what would be right."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pydantic
import pytest

from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.store.yamlmodel import Strict, load


class Inner(Strict):
    """A part."""

    block: str
    count: int = 1


class Sample(Strict):
    """A file."""

    name: str
    mode: Literal["fast", "slow"] = "fast"
    parts: tuple[Inner, ...] = ()
    table: dict[str, Inner] = pydantic.Field(default_factory=dict)
    limits: Inner | None = None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sample.yaml"


def errors_of(path: Path, text: str) -> list[tuple[int, str]]:
    path.write_text(text)
    with pytest.raises(UserErrors) as caught:
        load(path, Sample)
    found = []
    for error in caught.value.errors:
        assert error.where is not None
        name, _, line = error.where.rpartition(":")
        assert name == str(path)
        found.append((int(line), str(error).removeprefix(f"{error.where}: ")))
    return found


def test_a_good_file_becomes_the_model(path: Path) -> None:
    path.write_text("name: x\nmode: slow\nparts: [{block: 4k}]\ntable:\n  a: {block: 1M, count: 2}\n")
    found = load(path, Sample)
    assert found.mode == "slow"
    assert found.parts == (Inner(block="4k"),)
    assert found.table["a"].count == 2


def test_every_error_is_told_at_once_in_the_order_of_lines(path: Path) -> None:
    text = "nmae: x\nmode: quick\nparts:\n  - block: 4k\n  - blok: 4k\n    count: many\n"
    found = errors_of(path, text)
    assert sorted(found) == [
        (1, "'name' is missing"),
        (1, "unknown key 'nmae' (did you mean 'name'?)"),
        (2, "mode: Input should be 'fast' or 'slow' (found 'quick')"),
        (5, "'parts.1.block' is missing"),
        (5, "unknown key 'parts.1.blok' (did you mean 'block'?)"),
        (6, "parts.1.count: Input should be a valid integer (found 'many')"),
    ]
    assert [line for line, _ in found] == sorted(line for line, _ in found)


def test_an_unknown_key_names_those_that_are_known_there(path: Path) -> None:
    assert errors_of(path, "name: x\nlimits:\n  block: 4k\n  zzz: 1\n") == [
        (4, "unknown key 'limits.zzz' (known here: block, count)")
    ]


def test_an_unknown_key_below_a_free_name_is_found(path: Path) -> None:
    assert errors_of(path, "name: x\ntable:\n  mine:\n    block: 4k\n    coutn: 1\n") == [
        (5, "unknown key 'table.mine.coutn' (did you mean 'count'?)")
    ]


def test_a_number_in_quotes_stays_text(path: Path) -> None:
    assert errors_of(path, 'name: x\nlimits: {block: 4k, count: "3"}\n') == [
        (2, "limits.count: Input should be a valid integer (found '3')")
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("name: x\nname: y\n", 2, r"key 'name' stands twice \(first in line 1\)"),
        ("name: x\nparts:\n  - block: a\n    block: b\n", 4, r"key 'block' stands twice \(first in line 3\)"),
        ("name: [x\n", 2, "no YAML"),
        ("name: x\n\tmode: fast\n", 2, "no YAML"),
    ],
)
def test_what_is_no_yaml_is_told_with_its_line(path: Path, text: str, line: int, words: str) -> None:
    path.write_text(text)
    with pytest.raises(UserError, match=rf"sample\.yaml:{line}: {words}"):
        load(path, Sample)


def test_an_empty_file_says_which_keys_there_are(path: Path) -> None:
    assert errors_of(path, "# nothing\n") == [(1, "is empty (keys: name, mode, parts, table, limits)")]


def test_a_list_where_a_mapping_belongs_is_told(path: Path) -> None:
    ((line, words),) = errors_of(path, "- name: x\n")
    assert line == 1
    assert words.startswith("the file: ")


def test_a_file_that_is_not_there_or_not_text_is_told(tmp_path: Path, path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        load(tmp_path / "absent.yaml", Sample)
    with pytest.raises(UserError, match="is a directory"):
        load(tmp_path, Sample)
    path.write_bytes(b"name: \xff\n")
    with pytest.raises(UserError, match=r"is not UTF-8 text \(byte 6\)"):
        load(path, Sample)
