# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: a table of verbs, each imported only when it is typed, and the exit codes of everything.

0: all verdicts acceptable; 1: a series failed or regressed; 2: usage or configuration; 3: the machine; 130: interrupted.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import click

from kpatch_ci import __version__, process
from kpatch_ci.cli.output import set_verbosity, verbosity
from kpatch_ci.model.errors import KpatchError, UserErrors
from kpatch_ci.report.clean import printable

INTERRUPTED = 130
BROKEN_PIPE = 141
BUG = 3


@dataclass(frozen=True, slots=True)
class Verb:
    """``module`` holds a click command named ``command``; ``summary`` is what ``--help`` says without importing it."""

    module: str
    summary: str


VERBS: dict[str, Verb] = {
    "run": Verb("kpatch_ci.cli.run", "The whole pipeline.yaml: apply, build, boot, measure, compare."),
    "try": Verb("kpatch_ci.cli.try_patch", "Test patches straight from files."),
    "watch": Verb("kpatch_ci.cli.watch", "Test a working tree again whenever its files change."),
    "check": Verb("kpatch_ci.cli.check", "Read patches and say whether and how they apply."),
    "port": Verb("kpatch_ci.cli.port", "Write what was resolved for a tree as a port of a series."),
    "bisect": Verb("kpatch_ci.cli.bisect", "Find the commit, or the patch of a series, that did it."),
    "build": Verb("kpatch_ci.cli.build", "Build baseline and patched kernels."),
    "boot": Verb("kpatch_ci.cli.boot", "Boot a guest; --shell for a prompt in it."),
    "bench": Verb("kpatch_ci.cli.bench", "Measure one kernel, without a comparison."),
    "verify-determinism": Verb("kpatch_ci.cli.verify_determinism", "Repeat replicates and say whether all are alike."),
    "calibrate": Verb(
        "kpatch_ci.cli.calibrate", "False positives, noise and power, measured on kernels whose difference is known."
    ),
    "compare": Verb("kpatch_ci.cli.compare", "Two results side by side."),
    "report": Verb("kpatch_ci.cli.report", "Show a run's report again."),
    "history": Verb("kpatch_ci.cli.history", "All recorded runs: list, show, compare, trend, changes, export, record."),
    "nightly": Verb(
        "kpatch_ci.cli.nightly", "A list of trees and series, each tree at its tip: what changed; site and mail."
    ),
    "explain": Verb("kpatch_ci.cli.explain", "Why each stage ran or was reused."),
    "clean": Verb("kpatch_ci.cli.clean", "Show what the cache holds; delete what you name."),
    "doctor": Verb("kpatch_ci.cli.doctor", "Say what this machine (or another) has and lacks."),
    "test": Verb("kpatch_ci.cli.test", "Run the project's own checks and tests."),
}


class VerbGroup(click.Group):
    """Verbs from the table. A command's return value, when it is a number, is the exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names, in the table's order."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one verb's module."""
        verb = VERBS.get(cmd_name)
        if verb is None:
            return None
        command = importlib.import_module(verb.module).command
        if not isinstance(command, click.Command):
            raise TypeError(f"{verb.module}.command is no click command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb and what follows it. Raises UsageError that names near matches."""
        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            close = difflib.get_close_matches(name, VERBS, n=2)
            expected = f"did you mean {' or '.join(close)}?" if close else f"verbs: {', '.join(VERBS)}"
            raise click.UsageError(f"no such verb: {name} ({expected})", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The table, without importing anything."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.summary) for name, verb in VERBS.items()])

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the command line."""
        with _unhidden():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb."""
        with _unhidden():
            return super().invoke(ctx)


class _Interrupted(Exception):
    pass


class _ReaderGone(Exception):
    pass


@contextlib.contextmanager
def _unhidden() -> Iterator[None]:
    """Click turns Ctrl-C into Abort, and a closed stdout into exit code 1, which is taken: these pass it by."""
    try:
        yield
    except KeyboardInterrupt:
        raise _Interrupted from None
    except BrokenPipeError:
        raise _ReaderGone from None


@click.group(
    cls=VerbGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    subcommand_metavar="VERB [ARGUMENTS]",
)
@click.version_option(__version__, prog_name="kpatch-ci", message="%(prog)s %(version)s")
@verbosity
def kpatch_ci() -> None:
    """Mails in, verdict out: what a kernel patch does, on every architecture, the same figures on every machine."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code. Whatever goes wrong is said on stderr."""
    set_verbosity(0)
    try:
        with _terminable():
            result = kpatch_ci.main(args=argv, prog_name="kpatch-ci", standalone_mode=False)
            sys.stdout.flush()
    except KeyboardInterrupt as stopped:
        return _interrupted(stopped)
    except Exception as error:
        return next(handler for kind, handler in _HANDLERS if isinstance(error, kind))(error)
    return result if isinstance(result, int) else 0


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM is Ctrl-C by another name."""

    def stop(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupted(_: BaseException) -> int:
    with contextlib.suppress(ValueError):
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not leave children behind
    process.kill_all()
    click.echo("interrupted: nothing is lost, the same command resumes", err=True)
    return INTERRUPTED


def _error(text: str, code: int) -> int:
    click.echo(f"kpatch-ci: error: {printable(text)}", err=True)
    return code


def _aborted(abort: click.Abort) -> int:
    if isinstance(abort.__cause__, KeyboardInterrupt):
        return _interrupted(abort)
    return _error("no answer: nothing was done", 2)


def _usage(error: click.ClickException) -> int:
    error.show(sys.stderr)
    return 2


def _each(errors: UserErrors) -> int:
    for error in errors.errors:
        _error(str(error), 2)
    return errors.exit_code


def _known(error: KpatchError) -> int:
    return _error(str(error), error.exit_code)


def _broken_pipe(_: Exception) -> int:
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter's last flush is silent
    return BROKEN_PIPE


def _os_error(error: OSError) -> int:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return _bug(error)
    where = f" ({error.filename})" if error.filename else ""
    return _error(f"no space left on the disk{where}\nwhat to do: `./kpatch-ci clean` shows what the cache holds", 3)


def _bug(error: Exception) -> int:
    import traceback  # noqa: PLC0415 (only here, and a warm start counts)

    process.kill_all()
    click.echo("".join(traceback.format_exception(error)).rstrip(), err=True)
    return _error("this is a bug in kpatch-ci; the lines above say where", BUG)  # not 1: that means "a series failed"


_HANDLERS: tuple[tuple[type[Exception], Callable[[Any], int]], ...] = (
    (_Interrupted, _interrupted),
    (click.Abort, _aborted),
    (click.ClickException, _usage),
    (UserErrors, _each),
    (KpatchError, _known),
    (_ReaderGone, _broken_pipe),
    (BrokenPipeError, _broken_pipe),
    (OSError, _os_error),
    (Exception, _bug),
)
"""First match counts."""
