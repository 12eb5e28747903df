# SPDX-License-Identifier: GPL-2.0-or-later
"""``history:`` of pipeline.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.config.history import parse_limit, read_history_settings
from kpatch_ci.config.load import load_config
from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.history import Limit

PROJECT = Path(__file__).resolve().parents[3]


def written(tmp_path: Path, text: str) -> Path:
    """A pipeline file that ends with ``text``, beside links to the folders that it names."""
    for name in ("patches", "kconfigs", "qemu"):
        (tmp_path / name).symlink_to(PROJECT / name)
    path = tmp_path / "pipeline.yaml"
    path.write_text((PROJECT / "pipeline.yaml").read_text() + text)
    return path


def test_a_place_alone(tmp_path: Path) -> None:
    path = written(tmp_path, "history: postgresql://ci@db/kpatch\n")
    assert load_config(path).history == read_history_settings(path)
    assert read_history_settings(path).place == "postgresql://ci@db/kpatch"


def test_a_place_and_thresholds(tmp_path: Path) -> None:
    text = 'history:\n  place: h.db\n  thresholds: {time: 3%, hackbench.migrations: "10% and 20", throughput: 5}\n'
    path = written(tmp_path, text)
    settings = read_history_settings(path)
    assert load_config(path).history == settings
    assert settings.place == "h.db"
    assert settings.limits == {
        "time": Limit("time", percent=3),
        "hackbench.migrations": Limit("hackbench.migrations", percent=10, amount=20),
        "throughput": Limit("throughput", amount=5),
    }


def test_none(tmp_path: Path) -> None:
    assert read_history_settings(written(tmp_path, "")).place is None
    assert read_history_settings(tmp_path / "absent.yaml").place is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("history: mysql://db/x\n", ("'mysql' is not known", "postgresql://USER@HOST")),
        ("history:\n  thresholds:\n    time: fast\n", ("time: 'fast' is no threshold", "'3%'")),
        ("history:\n  thresholds: {time: 0%}\n", ("more than 0",)),
        ("history:\n  plaice: h.db\n", ("unknown key", "plaice", "place")),
    ],
)
def test_every_fault_has_its_line_and_what_would_be_right(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    path = written(tmp_path, text)
    lines = len((PROJECT / "pipeline.yaml").read_text().splitlines())
    for reader in (load_config, read_history_settings):
        with pytest.raises(UserErrors) as caught:
            reader(path)
        for word in (f"{path}:{lines + len(text.splitlines())}", *words):
            assert word in str(caught.value)


@pytest.mark.parametrize("text", ["", "%", "3 percent", "-1", "1.2.3%", "3% or 4", "nan"])
def test_no_thresholds(text: str) -> None:
    with pytest.raises(UserError, match="threshold"):
        parse_limit("time", text)


def test_thresholds() -> None:
    assert parse_limit("time", "2.5 %") == Limit("time", percent=2.5)
    assert parse_limit("time", 0.05) == Limit("time", amount=0.05)
    assert parse_limit("time", "1e-3") == Limit("time", amount=0.001)
