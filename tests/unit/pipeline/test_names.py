# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of series."""

from __future__ import annotations

import pytest

from kpatch_ci.model.errors import UserError
from kpatch_ci.pipeline.run import check_name, safe_name


@pytest.mark.parametrize(
    ("wanted", "name"),
    [("0001 my patch", "0001-my-patch"), ("baseline", "baseline-series"), ("é/", "patch"), ("a.b_c", "a.b_c")],
)
def test_any_text_makes_a_name_that_is_allowed(wanted: str, name: str) -> None:
    assert safe_name(wanted) == name
    check_name(name)


@pytest.mark.parametrize("name", ["baseline", "two words", "", "../x"])
def test_a_name_that_would_be_mistaken_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="cannot be called"):
        check_name(name)
