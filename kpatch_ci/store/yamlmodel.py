# SPDX-License-Identifier: GPL-2.0-or-later
"""YAML files checked whole against a pydantic model: every error at once, each with its file, line and what would be right."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pydantic
import yaml

from kpatch_ci.model.errors import UserError, UserErrors

ModelT = TypeVar("ModelT", bound=pydantic.BaseModel)
Loc = tuple[str | int, ...]


class Strict(pydantic.BaseModel):
    """Base of all file models: unknown keys are errors, values are never changed after loading."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)


class Lines:
    """Line numbers of the nodes of one YAML document, by path of keys and indices."""

    def __init__(self, name: str, root: yaml.Node | None) -> None:
        self.name = name
        self._lines: dict[Loc, int] = {}
        if root is not None:
            self._walk(root, ())

    def _walk(self, node: yaml.Node, loc: Loc) -> None:
        self._lines.setdefault(loc, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                inner = (*loc, _scalar(key))
                self._lines[inner] = key.start_mark.line + 1
                self._walk(value, inner)
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                self._walk(value, (*loc, index))

    def where(self, loc: Loc) -> str:
        """``file:line`` of the nearest known node on the way to ``loc``; a key that a short form leaves out is passed over."""
        found: Loc = ()
        for part in loc:
            if (*found, part) in self._lines:
                found = (*found, part)
        return f"{self.name}:{self._lines.get(found, 1)}"


def _scalar(node: yaml.Node) -> str:
    return str(node.value)


def read(path: Path) -> tuple[object, Lines]:
    """Parse one YAML file. Raises UserError (missing, not UTF-8, no YAML, duplicate key)."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UserError("no such file", where=str(path)) from error
    except IsADirectoryError as error:
        raise UserError("is a directory, not a file", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise UserError(f"is not UTF-8 text (byte {error.start})", where=str(path)) from error
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path)) from error
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is not None:
            _refuse_duplicates(node, path)
        data = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"no YAML: {error.problem}", where=f"{path}:{line}") from error
    except yaml.YAMLError as error:
        raise UserError(f"no YAML: {error}", where=str(path)) from error
    finally:
        loader.dispose()
    return data, Lines(str(path), node)


def _refuse_duplicates(node: yaml.Node, path: Path) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            name, line = _scalar(key), key.start_mark.line + 1
            if name in seen:
                raise UserError(f"key '{name}' stands twice (first in line {seen[name]})", where=f"{path}:{line}")
            seen[name] = line
            _refuse_duplicates(value, path)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _refuse_duplicates(value, path)


def load(path: Path, model: type[ModelT]) -> ModelT:
    """Read ``path`` as ``model``. Raises UserErrors with every error, in the order of their lines."""
    data, lines = read(path)
    return validate(data, model, lines)


def validate(data: object, model: type[ModelT], lines: Lines) -> ModelT:
    """Check parsed YAML against ``model``. Raises UserErrors."""
    if data is None:
        raise UserErrors([UserError("is empty", where=lines.where(()), expected=f"keys: {_keys(model)}")])
    try:
        # JSON mode of strictness: a YAML list may become a tuple, but "3" never becomes 3.
        return model.model_validate(_frozen(data), strict=None)
    except pydantic.ValidationError as error:
        found = [_explain(dict(e), model, lines) for e in error.errors()]
        raise UserErrors(sorted(found, key=_line)) from error


def _frozen(data: object) -> object:
    if isinstance(data, list):
        return tuple(_frozen(item) for item in data)
    if isinstance(data, dict):
        return {str(key): _frozen(value) for key, value in data.items()}
    return data


def _thawed(data: object) -> object:
    if isinstance(data, tuple):
        return [_thawed(item) for item in data]
    if isinstance(data, dict):
        return {key: _thawed(value) for key, value in data.items()}
    return data


Options = Annotated[dict[str, Any], pydantic.BeforeValidator(_thawed)]
"""What another library takes, as YAML has it: a list stays a list."""


def _line(error: UserError) -> int:
    return int((error.where or ":0").rsplit(":", 1)[1])


def _explain(item: dict[str, object], model: type[pydantic.BaseModel], lines: Lines) -> UserError:
    loc: Loc = item["loc"]  # type: ignore[assignment]
    loc = tuple(part for part in loc if not (isinstance(part, str) and part.startswith(("function-", "tuple["))))
    name = ".".join(str(part) for part in loc) or "the file"
    where = lines.where(loc)
    if item["type"] == "extra_forbidden":
        known = _fields(model, loc[:-1])
        close = difflib.get_close_matches(str(loc[-1]), known, n=1)
        expected = f"did you mean '{close[0]}'?" if close else f"known here: {', '.join(known)}"
        return UserError(f"unknown key '{name}'", where=where, expected=expected)
    if item["type"] == "missing":
        return UserError(f"'{name}' is missing", where=where)
    message = str(item["msg"]).removeprefix("Value error, ")
    shown = item.get("input")
    value = f" (found {shown!r})" if isinstance(shown, str | int | float | bool) else ""
    return UserError(f"{name}: {message}{value}", where=where)


def _fields(model: type[pydantic.BaseModel], loc: Loc) -> list[str]:
    """Names of the keys that are known at ``loc``; those of the top where it cannot be told."""
    current: object = model
    for part in loc:
        if isinstance(current, type) and issubclass(current, pydantic.BaseModel) and part in current.model_fields:
            current = _model_in(current.model_fields[str(part)].annotation) or current
    if isinstance(current, type) and issubclass(current, pydantic.BaseModel):
        return [field.alias or name for name, field in current.model_fields.items()]
    return []


def _model_in(annotation: object) -> type[pydantic.BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _model_in(inner)
        if found:
            return found
    return None


def _keys(model: type[pydantic.BaseModel]) -> str:
    return ", ".join(model.model_fields)
