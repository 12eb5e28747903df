# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/result.schema.json: it is what the models say, every key is described, and every kind of result is valid by it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kpatch_ci.cli.main import main
from kpatch_ci.model.errors import UserError
from kpatch_ci.report.document import load_document
from kpatch_ci.report.published import models, published_schema, schema_text
from kpatch_ci.report.schema import Document
from kpatch_ci.report.write import to_json
from tests.fakes.kinds import KINDS, Kind, old_document

PUBLISHED = Path(__file__).parents[3] / "docs" / "result.schema.json"


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema.Draft202012Validator(json.loads(PUBLISHED.read_text()))


def properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each key of each object: ``BuildDoc.log`` and what is said of it."""
    for name, part in {"": schema, **schema["$defs"]}.items():
        yield from ((f"{name}.{key}", said) for key, said in part.get("properties", {}).items())


def test_the_file_is_up_to_date() -> None:
    assert json.loads(PUBLISHED.read_text()) == published_schema(), (
        "./kpatch-ci report --schema > docs/result.schema.json"
    )


def test_the_verb_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--schema"]) == 0
    assert capsys.readouterr().out == schema_text()


def test_it_is_a_schema_of_draft_2020_12(validator: Any) -> None:
    assert validator.schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(validator.schema)


def test_every_key_and_every_object_is_described(validator: Any) -> None:
    undescribed = [name for name, said in properties(validator.schema) if not said.get("description", "").strip()]
    undescribed += [name for name, part in validator.schema["$defs"].items() if not part.get("description", "").strip()]
    assert undescribed == [], "a string below the field, in the model's file"


def test_every_key_of_every_model_is_in_it(validator: Any) -> None:
    keys = {
        f"{'' if m is Document else m.__name__}.{f.alias or n}" for m in models() for n, f in m.model_fields.items()
    }
    assert keys == {name for name, _ in properties(validator.schema)}
    assert ".schema" in keys
    assert "ComparisonDoc.change_percent" in keys


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_of_result_is_valid(kind: Kind, validator: Any) -> None:
    validator.validate(json.loads(to_json(kind.document)))


def minimal() -> dict[str, Any]:
    """An old file: only what no file may lack."""
    whole: dict[str, Any] = old_document().model_dump(mode="json", by_alias=True, exclude_unset=True)
    return whole


def test_an_old_file_without_the_later_keys_is_valid_and_so_is_one_with_unknown_ones(validator: Any) -> None:
    assert set(minimal()) == {"schema", "run_id", "status", "mode", "fingerprint", "series"}
    validator.validate(minimal())
    validator.validate(minimal() | {"what_a_later_version_adds": [1]})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema", "kpatch-ci/result/2"),
        ("status", "fine"),
        ("mode", "dream"),
        ("fingerprint", None),
        ("series", [{"name": "S"}]),
        ("series", [{"name": "S", "status": "passed", "arches": [{"arch": "arm64"}]}]),
    ],
)
def test_it_refuses_what_the_models_refuse(path: str, value: object, validator: Any, tmp_path: Path) -> None:
    wrong = minimal() | {path: value}
    assert not validator.is_valid(wrong)
    (tmp_path / "result.json").write_text(json.dumps(wrong))
    with pytest.raises(UserError, match=r"damaged at|is of schema"):
        load_document(tmp_path / "result.json")


def test_without_a_key_that_no_file_may_lack_it_is_refused(validator: Any) -> None:
    for key in minimal():
        assert not validator.is_valid({k: v for k, v in minimal().items() if k != key}), key


def test_the_schema_is_the_same_each_time_it_is_made() -> None:
    assert json.dumps(published_schema()) == json.dumps(published_schema())
