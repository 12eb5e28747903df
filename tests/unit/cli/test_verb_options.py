# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that several verbs have: each verb of a kind has all of them, and they mean the same everywhere."""

from __future__ import annotations

import importlib

import click
import pytest

from kpatch_ci.cli.main import VERBS

OWN = {
    "run": set(),
    "try": {"mails", "--range", "--repo", "--revision"},
    "watch": {"--once"},
}
"""The verbs that test patches and leave reports, and what each of them alone has."""
BUILD = {"run", "try", "watch", "bisect", "build", "boot", "bench", "verify-determinism", "calibrate", "nightly"}
"""The verbs that build kernels."""
RECORD = {"run", "try", "watch"}
"""Those that record a run, so may be told not to. A night is nothing without its history."""
SELECT = BUILD - {"bisect", "nightly"}
"""Those that take a selection from pipeline.yaml. A bisection has one series, architecture and workload; a night has its items."""
NO_JSON = {"report": "--format json is that", "test": "pytest has words of its own"}
SAME = ("--config", "--fuzz", "--jobs", "--history", "--no-history", "--verbose", "--quiet", "--accel", "--quick", "--each", "--w1",
        "--sparse", "--checkpatch", "--strict", "--precision", "--max-seeds", "--budget", "--seeds", "--variants")  # fmt: skip
"""What has the same words wherever it is."""


def _commands(name: str, command: click.Command) -> dict[str, click.Command]:
    if isinstance(command, click.Group):
        return {k: v for sub in command.commands for k, v in _commands(f"{name} {sub}", command.commands[sub]).items()}
    return {name: command}


def _options(command: click.Command) -> dict[str, click.Parameter]:
    """By their long names; arguments by theirs."""
    return {max(param.opts, key=len): param for param in command.params}


VERB_OPTIONS = {
    name: _options(command)
    for verb, known in VERBS.items()
    for name, command in _commands(verb, importlib.import_module(known.module).command).items()
}


@pytest.mark.parametrize("verb", OWN)
def test_verbs_that_test_patches_take_the_same_options(verb: str) -> None:
    assert set(VERB_OPTIONS[verb]) - OWN[verb] == set(VERB_OPTIONS["run"])
    assert set(VERB_OPTIONS[verb]) >= OWN[verb]


@pytest.mark.parametrize("verb", VERB_OPTIONS)
def test_every_verb_says_more_or_less_and_prints_json(verb: str) -> None:
    assert {"--verbose", "--quiet"} <= set(VERB_OPTIONS[verb])
    assert ("--json" in VERB_OPTIONS[verb]) == (verb not in NO_JSON)


def test_verbs_that_build_take_the_same_machine() -> None:
    wanted = {"--config", "--jobs"}
    assert {verb for verb, options in VERB_OPTIONS.items() if "--jobs" in options} == BUILD
    assert [verb for verb in BUILD if not wanted <= set(VERB_OPTIONS[verb])] == []
    narrow = {"--tree", "--series", "--fuzz", "--arch", "--workload", "--profile", "--quick", "--accel", "--output"}
    assert [verb for verb in BUILD - {"nightly"} if not narrow <= set(VERB_OPTIONS[verb])] == []
    assert {verb for verb, options in VERB_OPTIONS.items() if "--seeds" in options} == SELECT


def test_verbs_that_record_take_a_place_and_may_be_told_not_to() -> None:
    assert {verb for verb, options in VERB_OPTIONS.items() if "--no-history" in options} == RECORD
    places = {verb for verb, options in VERB_OPTIONS.items() if "--history" in options}
    assert places - RECORD == {verb for verb in VERB_OPTIONS if verb.startswith("history ")} | {"nightly"}


@pytest.mark.parametrize("option", SAME)
def test_an_option_means_the_same_in_every_verb_that_has_it(option: str) -> None:
    found = [options[option] for options in VERB_OPTIONS.values() if option in options]
    assert len(found) > 1
    keys = ("help", "metavar", "multiple", "is_flag", "default", "callback")
    assert len({tuple(str(getattr(one, key)) for key in keys) for one in found}) == 1
