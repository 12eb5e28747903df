# SPDX-License-Identifier: GPL-2.0-or-later
"""Words of the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.model.digest import canonical, digest, file_digest
from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.machine import Cluster, Machine
from kpatch_ci.model.workload import Case, Seed


def test_a_case_label_shows_settings_in_order_and_not_parameters() -> None:
    case = Case(settings=(("rw", "read"), ("bs", "1M")), params=(("count", 64),))
    assert case.label == "rw=read,bs=1M"
    assert case.get("count") == 64
    with pytest.raises(KeyError, match="clients"):
        case.get("clients")


def test_canonical_json_does_not_depend_on_the_order_of_keys() -> None:
    assert canonical({"b": 1, "a": [2.5]}) == b'{"a":[2.5],"b":1}'
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})


def test_a_path_or_a_nan_does_not_go_into_a_digest(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="path"):
        digest({"where": tmp_path})
    with pytest.raises(ValueError, match="JSON"):
        digest(float("nan"))


def test_file_digest_is_sha256_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    assert file_digest(tmp_path / "f") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_errors_say_what_where_and_what_would_be_right() -> None:
    error = UserError("unknown key 'tre'", where="pipeline.yaml:3", expected="did you mean 'tree'?")
    assert str(error) == "pipeline.yaml:3: unknown key 'tre' (did you mean 'tree'?)"
    assert error.exit_code == 2
    assert InfrastructureError("no space", hint="free some").exit_code == 3
    assert "what to do: free some" in str(InfrastructureError("no space", hint="free some"))


def test_a_machine_counts_the_cpus_of_its_clusters() -> None:
    machine = Machine("m", "", "arm64", "virt", "max", 512, (Cluster("a", (0, 1)), Cluster("b", (2,))), 0)
    assert machine.cpus == 3


def test_seeds_sort_by_boot_then_run() -> None:
    assert sorted([Seed(2, 1), Seed(1, 2), Seed(1, 1)]) == [Seed(1, 1), Seed(1, 2), Seed(2, 1)]
    assert str(Seed(2, 1)) == "2.1"
