# SPDX-License-Identifier: GPL-2.0-or-later
"""Enters a port into the text of a series.yaml: nothing else of the file changes, no comment is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence

import yaml

from kpatch_ci.model.errors import UserError


def enter_port(text: str, prefix: str, files: Sequence[str], *, where: str) -> str:
    """The text with ``ports: {prefix: files}`` in it, in place of what was there for this prefix.

    The result is parsed again and compared, so a form that this cannot edit is a UserError and never a damaged file.
    """
    data = yaml.safe_load(text)
    edited = _edit(text, prefix, f"[{', '.join(_quoted(file) for file in files)}]")
    wanted = {**data, "ports": {**(data.get("ports") or {}), prefix: list(files)}}
    if yaml.safe_load(edited) != wanted:
        line = f'"{prefix}": [{", ".join(files)}]'
        raise UserError("the ports of this file cannot be edited by a program", where=where, expected=f"ports: {line}")
    return edited


def _edit(text: str, prefix: str, value: str) -> str:
    root = yaml.compose(text)
    assert isinstance(root, yaml.MappingNode)  # noqa: S101 (it was loaded as one)
    ports = next((node for key, node in root.value if key.value == "ports"), None)
    entry = f'"{prefix}": {value}'
    if not isinstance(ports, yaml.MappingNode) or not ports.value:
        return _without_ports(text, root, ports, entry)
    for key, node in ports.value:
        if str(key.value) == prefix:
            return _replaced(text, node, value)
    if ports.flow_style:
        last = ports.value[-1][1].end_mark.index
        return f"{text[:last]}, {entry}{text[last:]}"
    first = ports.value[0][0].start_mark
    return f"{text[: first.index]}{entry}\n{' ' * first.column}{text[first.index :]}"


def _replaced(text: str, node: yaml.Node, value: str) -> str:
    """The value in place of a node. A block list begins on the line after its key, and ends where the next thing begins."""
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.SequenceNode) and not node.flow_style:
        last = node.value[-1].end_mark.index
        begin = text.rindex(":", 0, start) + 1
        return f"{text[:begin]} {value}{text[last:]}"
    return f"{text[:start]}{value}{text[end:]}"


def _without_ports(text: str, root: yaml.MappingNode, ports: yaml.Node | None, entry: str) -> str:
    """``ports:`` after ``files:``, where it is not there yet or is empty."""
    if ports is not None:
        return f"{text[: ports.start_mark.index].rstrip(' ')}\n  {entry}{text[ports.end_mark.index :]}"
    files = next((node for key, node in root.value if key.value == "files"), root)
    last = files.value[-1].end_mark.index if isinstance(files, yaml.SequenceNode) and files.value else len(text)
    end = text.find("\n", last) + 1 or len(text)
    lead = text[:end] if text[:end].endswith("\n") else text[:end] + "\n"
    return f"{lead}ports:\n  {entry}\n{text[end:]}"


def _quoted(name: str) -> str:
    return name if all(c.isalnum() or c in "._-/+" for c in name) else json.dumps(name, ensure_ascii=False)
