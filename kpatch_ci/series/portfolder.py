# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a port into a series folder, and makes the folder of a series that has none."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from kpatch_ci.model.build import Tree
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import Series
from kpatch_ci.series.folder import FILE
from kpatch_ci.series.yamledit import enter_port
from kpatch_ci.store.atomic import write_text

_RELEASE = re.compile(r"\d+\.\d+")


def release_of(tree: Tree) -> str:
    """The version that a port is for: ``6.1`` of 6.1.192."""
    match = _RELEASE.match(tree.release)
    return match.group() if match else tree.release


def place_of(tree: Tree) -> str:
    """Folder of a tree's ports below ``ports/``: ``debian-6.1``, else ``linux-6.1``."""
    return tree.label.replace(":", "-") if tree.label.startswith("debian:") else f"linux-{release_of(tree)}"


def new_folder(folder: Path, mails: Sequence[Path], series: Series) -> list[Path]:
    """Make ``patches/<name>/`` of mails: copies of them, byte for byte, and a series.yaml. Returns what was written."""
    if folder.exists():
        raise UserError(
            f"{folder} is there already", where=str(folder), expected="the series' name instead of its mails"
        )
    for mail in mails:
        if not mail.is_file():
            raise UserError(f"{mail} is no file", where=str(mail), expected="the mails themselves, or a series' name")
    names = [mail.name for mail in mails]
    if len(set(names)) != len(names):
        raise UserError("two mails of one name", where=", ".join(map(str, mails)), expected="names that differ")
    folder.mkdir(parents=True)
    for mail in mails:
        shutil.copyfile(mail, folder / mail.name)
    first = series.patches[0]
    origin = "; ".join(filter(None, (f"{first.prefix} {first.subject}".strip(), first.author, first.date)))
    lines = [f"title: {_text(series.title)}", f"origin: {_text(origin)}"]
    lines += [f"files: [{', '.join(_text(name) for name in names)}]", ""]
    write_text(folder / FILE, "\n".join(lines))
    return [*(folder / name for name in names), folder / FILE]


def write_port(folder: Path, tree: Tree, files: Mapping[str, bytes], *, old: Sequence[str]) -> list[Path]:
    """Write the patches and enter them; ``old`` are the files that they replace. Returns what was written."""
    place = folder / "ports" / place_of(tree)
    names = [f"ports/{place_of(tree)}/{name}" for name in files]
    text = (folder / FILE).read_text(encoding="utf-8")
    edited = enter_port(text, release_of(tree), names, where=str(folder / FILE))
    place.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (place / name).write_bytes(data)
    write_text(folder / FILE, edited)
    for name in set(old) - set(names):
        (folder / name).unlink(missing_ok=True)
    return [*(folder / name for name in names), folder / FILE]


def _text(value: str) -> str:
    """A string as YAML takes it anywhere: JSON's quotes."""
    return json.dumps(value, ensure_ascii=False)
