# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that the verbs share, and what is made of them."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from kpatch_ci.cli.console import SafeConsole
from kpatch_ci.cli.output import verbosity
from kpatch_ci.cli.progress import LiveProgress, PlainProgress
from kpatch_ci.config.accel import check_accelerators
from kpatch_ci.config.load import Config, Selection, load_config
from kpatch_ci.config.schema import DEFAULT_PROFILE
from kpatch_ci.config.selection import Asked, Choice
from kpatch_ci.kernel.build import default_jobs
from kpatch_ci.model.machine import Accel
from kpatch_ci.pipeline.run import new_run_id
from kpatch_ci.report.formats import EXPORTS, check_formats
from kpatch_ci.series.onepatch import MAX_FUZZ
from kpatch_ci.store.history.place import without_passwords

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_FILE = "pipeline.yaml"
_PROJECT = Path(__file__).resolve().parents[2]


fuzz_option = click.option(
    "--fuzz",
    type=click.IntRange(0, MAX_FUZZ),
    default=0,
    metavar="N",
    help="Where a mail does not apply otherwise, ignore up to N lines of context [0: never]. Every such hunk is named.",
)


accel_option = click.option(
    "--accel",
    type=click.Choice([str(a) for a in Accel if a is not Accel.HARDWARE]),
    help="What executes the guests, instead of the machine files' `accel` (docs/accelerators.md).",
)
quick_option = click.option("--quick", is_flag=True, help="Same as --profile quick: for people who wait.")


def names(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """``a,b`` as names."""
    return None if value is None else tuple(name.strip() for name in value.split(",") if name.strip())


def selection(function: F) -> F:
    """-c, --tree, --series, --fuzz, --arch, --workload, --seeds, --profile/--quick, --accel, --on, --jobs."""
    for decorate in (
        click.option(
            "-c", "--config", "config_file", type=click.Path(path_type=Path), help="Pipeline file [pipeline.yaml]."
        ),
        click.option("-t", "--tree", help="Kernel tree instead of the file's: debian:X.Y, PATH[@REF], URL@REF."),
        click.option("--series", multiple=True, metavar="NAME", help="Only this series, or NAME+VARIANT. Repeatable."),
        click.option(
            "--variants", is_flag=True, help="Every variant of each series too: switched off, other baselines."
        ),
        fuzz_option,
        click.option("--arch", multiple=True, metavar="ARCH", help="Only this architecture. Repeatable."),
        click.option("--workload", multiple=True, metavar="NAME", help="Only this workload. Repeatable."),
        click.option("--seeds", type=int, metavar="N", help="This many boots of one run each, instead of the file's."),
        click.option("--profile", metavar="NAME", help="A profile of the file."),
        click.option(
            "--on",
            callback=names,
            metavar="HOST,...",
            help="Of `hosts:` in the file only these; `here` is this machine (docs/hosts.md) [all of them, and here].",
        ),
        accel_option,
        quick_option,
        click.option("-j", "--jobs", type=click.IntRange(1, 1024), default=default_jobs, help="CPUs to use [all]."),
        verbosity,
    ):
        function = decorate(function)
    return function


def _percent(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """``0.5%`` or ``0.5``, as a number."""
    if value is None:
        return None
    with contextlib.suppress(ValueError):
        number = float(value.removesuffix("%"))
        if 0 < number < 100:
            return number
    what = f"'{value}' is not a percentage between 0 and 100, such as 0.5%"
    raise click.BadParameter(what, ctx, param)


_UNITS = {"": 60.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def _duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """``20m``, ``90s``, ``1.5h`` or minutes, in seconds."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*(s|m|min|h|)", value.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if seconds > 0:
        return seconds
    raise click.BadParameter(f"'{value}' is no length of time, such as 20m, 90s or 1.5h", ctx, param)


budget_option = click.option(
    "--budget",
    callback=_duration,
    metavar="TIME",
    help="Wall time for all of it, such as 20m: builds are finished, then what fits is measured; what does not is named.",
)


def precision_options(function: F) -> F:
    """--budget, --precision, --max-seeds; and --engine."""
    for decorate in (
        budget_option,
        click.option(
            "--engine",
            metavar="E",
            help="Instead of the file's `engine:`: dask://HOST:PORT runs boots and replicates on a cluster (docs/cluster.md), local here.",
        ),
        click.option(
            "--precision",
            "precision_percent",
            callback=_percent,
            metavar="P%",
            help="Add boots until each primary figure is known to +-P % (half its interval).",
        ),
        click.option(
            "--max-seeds", type=click.IntRange(1, 1000), metavar="N", help="With --precision: no more boots [48]."
        ),
    ):
        function = decorate(function)
    return function


export_option = click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(list(EXPORTS)),
    help="Leave this beside the usual reports (docs/exports.md). Repeatable; adds to `exports:` of the file.",
)


def exports_asked_for(formats: Sequence[str], config: Config) -> tuple[str, ...]:
    """The file's and the command line's. Raises UserError where one cannot be written here."""
    wanted = tuple(dict.fromkeys((*config.exports, *formats)))
    check_formats(wanted)
    return wanted


def pipeline_file(options: dict[str, Any]) -> Path:
    """The pipeline file that the ``selection`` options mean: the one given, else that of this directory, else ours."""
    here = Path(DEFAULT_FILE)
    given: Path | None = options["config_file"]
    return given or (here if here.exists() else _PROJECT / DEFAULT_FILE)


def chosen(options: dict[str, Any]) -> Config:
    """The configuration that the ``selection`` options describe. Raises UserError."""
    path = pipeline_file(options)
    if options["quick"] and options["profile"] not in (None, "quick"):
        raise click.UsageError("--quick and --profile contradict each other")
    profile = options["profile"] or ("quick" if options["quick"] else DEFAULT_PROFILE)
    return load_config(
        path,
        Selection(
            series=tuple(options["series"]),
            arches=tuple(options["arch"]),
            workloads=tuple(options["workload"]),
            seeds=options["seeds"],
            profile=profile,
            tree=options["tree"],
            variants=options.get("variants", False),
            fuzz=options["fuzz"],
            accel=_accel(options),
            precision_percent=options.get("precision_percent"),
            max_seeds=options.get("max_seeds"),
            budget=options.get("budget"),
            on=options.get("on"),
            engine=options.get("engine"),
        ),
    )


def _accel(options: dict[str, Any]) -> Accel | None:
    return Accel(options["accel"]) if options.get("accel") else None


def settled_by(options: dict[str, Any], config: Config) -> Asked:
    """What the command line has settled, so that a patch's paths have no say in it."""
    named = options["profile"] not in (None, DEFAULT_PROFILE)
    return Asked(
        arches=bool(options["arch"]),
        machines=named and config.own_machines,
        workloads=bool(options["workload"]),
    )


def narrowed_to(config: Config, choice: Choice, options: dict[str, Any]) -> Config:
    """The configuration with what was picked from a patch's paths. Raises UserErrors for a machine that --accel cannot run."""
    check_accelerators(choice.machines, config.root / "qemu", _accel(options))
    more = tuple(name for name in choice.kconfig if name not in config.kconfig)
    return replace(config, machines=choice.machines, workloads=choice.workloads, kconfig=(*config.kconfig, *more))


def output_directory(chosen_directory: Path | None) -> tuple[str, Path]:
    """Run id and where its files go: ``--output``, else results/<run-id>/."""
    run_id = new_run_id(datetime.datetime.now(datetime.UTC))
    if chosen_directory is not None:
        return run_id, chosen_directory.absolute()
    Path("results").mkdir(exist_ok=True)
    for suffix in itertools.count(1):
        directory = Path("results") / (run_id if suffix == 1 else f"{run_id}-{suffix}")
        with contextlib.suppress(FileExistsError):
            directory.mkdir()
            break
    return directory.name, directory.absolute()


def stderr_console() -> Console:
    """For progress: rich honours NO_COLOR, and writes plainly where stderr is no terminal."""
    return SafeConsole(stderr=True)


def progress(console: Console) -> PlainProgress:
    """Bars on a terminal, lines elsewhere."""
    import logging  # noqa: PLC0415

    level = logging.getLogger("kpatch_ci").level
    verbose = level <= logging.DEBUG
    if level >= logging.ERROR:
        console = Console(stderr=True, quiet=True)
    live = console.is_terminal and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")
    return (LiveProgress if live else PlainProgress)(console, verbose=verbose)


def command_line(arguments: Sequence[str] | None = None) -> str:
    """The command as typed, for reports: without the passwords of URLs."""
    typed = sys.argv[1:] if arguments is None else arguments
    return shlex.join(["./kpatch-ci", *map(without_passwords, typed)])
