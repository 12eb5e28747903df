# SPDX-License-Identifier: GPL-2.0-or-later
"""The published JSON Schema of result.json (docs/result.schema.json), generated from the models that read and write it."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from kpatch_ci.model.result import SCHEMA
from kpatch_ci.report.schema import Document

DIALECT = "https://json-schema.org/draft/2020-12/schema"
IDENTIFIER = f"urn:{SCHEMA.replace('/', ':')}"

Json = dict[str, Any]


def schema_text() -> str:
    """The schema as the file has it."""
    return json.dumps(published_schema(), indent=1, ensure_ascii=False) + "\n"


def published_schema() -> Json:
    """Draft 2020-12. What a file may lack has a default; keys that it does not name are allowed: a later version may have written them."""
    made = Document.model_json_schema(by_alias=True, mode="validation", schema_generator=_Untitled)
    definitions: Mapping[str, Json] = made["$defs"]
    for model in models():
        part = made if model is Document else definitions[model.__name__]
        for name, text in documented(model).items():
            alias = model.model_fields[name].alias or name
            part["properties"][alias]["description"] = text
    return {"$schema": DIALECT, "$id": IDENTIFIER, "title": SCHEMA, **made}


class _Untitled(GenerateJsonSchema):
    """Without the titles that pydantic makes of names: they say nothing new."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def models() -> list[type[BaseModel]]:
    """Every model of the document, each once."""
    found: dict[type[BaseModel], None] = {}
    waiting: list[type[BaseModel]] = [Document]
    while waiting:
        model = waiting.pop()
        if model not in found:
            found[model] = None
            waiting += [m for f in model.model_fields.values() for m in _within(f.annotation)]
    return list(found)


def _within(annotation: Any) -> Iterator[type[BaseModel]]:
    """Models that a type is made of."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _within(argument)


def documented(model: type[BaseModel]) -> dict[str, str]:
    """Field -> the string that stands below it in the source, bases included. Pydantic could do that, on each start of the program."""
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if issubclass(one, BaseModel) and one is not BaseModel:
            found |= _below(one)
    return found


def _below(model: type[BaseModel]) -> dict[str, str]:
    tree = ast.parse(inspect.getsource(sys.modules[model.__module__]))
    [body] = [n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == model.__name__]
    return {
        field.target.id: inspect.cleandoc(ast.literal_eval(below.value))
        for field, below in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr)
    }
