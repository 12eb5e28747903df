# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that ask for more of a series than its figures: a build after every patch, and what checkers say of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kpatch_ci.pipeline.each import Checks

F = TypeVar("F", bound=Callable[..., Any])


def check_options(function: F) -> F:
    """--each, --w1, --sparse, --checkpatch, --strict."""
    for decorate in (
        click.option(
            "--each",
            is_flag=True,
            help="Build after every patch, on each architecture: which is the first that breaks, and what each newly warns of."
            " Costs, for each patch but the last, the objects that it touches and a link (10 s and more).",
        ),
        click.option(
            "--w1",
            is_flag=True,
            help="Compile what the series touches with W=1, before and after it: new findings. Costs those objects twice.",
        ),
        click.option(
            "--sparse",
            is_flag=True,
            help="The same with sparse. Costs those objects twice; sparse itself (200 kB) is fetched once.",
        ),
        click.option(
            "--checkpatch", is_flag=True, help="The tree's checkpatch.pl on each mail. Costs 1 to 3 s a patch."
        ),
        click.option("--strict", is_flag=True, help="checkpatch's --strict."),
    ):
        function = decorate(function)
    return function


def chosen_checks(options: dict[str, Any]) -> Checks:
    """What ``check_options`` ask for. Raises click.UsageError."""
    if options["strict"] and not options["checkpatch"]:
        raise click.UsageError("--strict is for --checkpatch")
    return Checks(**{name: options[name] for name in ("each", "w1", "sparse", "checkpatch", "strict")})
