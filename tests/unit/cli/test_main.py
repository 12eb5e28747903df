# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: verbs, exit codes, and what is said when something goes wrong."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from kpatch_ci import process
from kpatch_ci.cli import main as cli
from kpatch_ci.model.errors import InfrastructureError, UserError, UserErrors

Verb = Callable[[], Any]


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """kill_all() of this process is final, so it is counted instead."""
    counted: list[int] = []
    monkeypatch.setattr(process, "kill_all", lambda: counted.append(1))
    return counted


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch, killed: list[int]) -> Callable[[Verb], int]:
    """Runs a function as the verb ``act``."""

    def run(function: Verb) -> int:
        module = types.ModuleType("fake_verb")
        module.command = click.command(name="act")(function)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "fake_verb", module)
        monkeypatch.setitem(cli.VERBS, "act", cli.Verb("fake_verb", "Act."))
        before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
        try:
            return cli.main(["act"])
        finally:
            signal.signal(signal.SIGINT, before[0])
            signal.signal(signal.SIGTERM, before[1])

    return run


def raising(error: BaseException) -> Verb:
    def act() -> None:
        raise error

    return act


@pytest.mark.parametrize("name", list(cli.VERBS))
def test_every_verb_of_the_table_is_there_and_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "--help"]) == 0
    assert f"Usage: kpatch-ci {name}" in capsys.readouterr().out


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert [v for v in cli.VERBS if f"\n  {v} " not in out] == []


def test_help_imports_no_verb_and_nothing_that_is_slow() -> None:
    script = (
        "import sys; from kpatch_ci.cli.main import main; main(['--help']);"
        "print(sorted({m.partition('.')[0] for m in sys.modules}"
        " & {'scipy', 'numpy', 'pydantic', 'git', 'fabric', 'paramiko', 'rich', 'yaml'}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stderr.strip() == "[]"


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("kpatch-ci ")


@pytest.mark.parametrize(("typed", "words"), [("docter", "did you mean doctor?"), ("xyzzy", "verbs: ")])
def test_an_unknown_verb_suggests_what_there_is(typed: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([typed]) == 2
    shown = capsys.readouterr()
    assert f"no such verb: {typed}" in shown.err
    assert words in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1), (3, 3)])
def test_a_verbs_number_is_the_exit_code(verb: Callable[[Verb], int], returned: int | None, code: int) -> None:
    assert verb(lambda: returned) == code


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UserError("no such arch", where="pipeline.yaml:3"), 2, "kpatch-ci: error: pipeline.yaml:3: no such arch\n"),
        (
            UserErrors([UserError("a", where="f:1"), UserError("b", where="f:2")]),
            2,
            "kpatch-ci: error: f:1: a\nkpatch-ci: error: f:2: b\n",
        ),
        (InfrastructureError("no bwrap", hint="get it"), 3, "kpatch-ci: error: no bwrap\nwhat to do: get it\n"),
        (OSError(errno.ENOSPC, "No space", "/x"), 3, "kpatch-ci: error: no space left on the disk (/x)\nwhat to do: "),
        (click.UsageError("bad option"), 2, "bad option"),
        (click.ClickException("bad file"), 2, "bad file"),
        (ValueError("surprise"), 3, "ValueError: surprise\nkpatch-ci: error: this is a bug"),
        (OSError(errno.EIO, "I/O error"), 3, "this is a bug"),
    ],
)
def test_what_goes_wrong_is_said_on_stderr_with_its_code(
    verb: Callable[[Verb], int], capsys: pytest.CaptureFixture[str], error: Exception, code: int, words: str
) -> None:
    assert verb(raising(error)) == code
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""


def test_ctrl_c_ends_children_and_says_one_line(
    verb: Callable[[Verb], int], capsys: pytest.CaptureFixture[str], killed: list[int]
) -> None:
    assert verb(raising(KeyboardInterrupt())) == 130
    assert killed == [1]
    assert capsys.readouterr().err == "interrupted: nothing is lost, the same command resumes\n"


def test_sigterm_is_ctrl_c(verb: Callable[[Verb], int], killed: list[int]) -> None:
    assert verb(lambda: os.kill(os.getpid(), signal.SIGTERM)) == 130
    assert killed == [1]


def test_a_question_without_an_answer_does_nothing(
    verb: Callable[[Verb], int], capsys: pytest.CaptureFixture[str], killed: list[int]
) -> None:
    assert verb(raising(click.Abort())) == 2
    assert killed == []
    assert "nothing was done" in capsys.readouterr().err


VICTIM = """
import sys, types, click
from kpatch_ci.cli import main as cli
from kpatch_ci.process import run

@click.command(name="act")
def command():
    run(["sh", "-c", f"echo $$ > {sys.argv[1]}.new; mv {sys.argv[1]}.new {sys.argv[1]}; sleep 60"], timeout=60)

sys.modules["fake_verb"] = module = types.ModuleType("fake_verb")
module.command = command
cli.VERBS["act"] = cli.Verb("fake_verb", "Act.")
sys.exit(cli.main(["act"]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_real_signal_leaves_no_child_behind(tmp_path: Path, number: signal.Signals) -> None:
    told = tmp_path / "pid"
    with subprocess.Popen([sys.executable, "-c", VICTIM, told], stderr=subprocess.PIPE, text=True) as victim:
        end = time.monotonic() + 20
        while not told.exists() and time.monotonic() < end:
            time.sleep(0.02)
        victim.send_signal(number)
        _, err = victim.communicate(timeout=20)
    assert victim.returncode == 130
    assert err == "interrupted: nothing is lost, the same command resumes\n"
    assert not Path(f"/proc/{told.read_text().strip()}").exists()


def test_a_reader_that_goes_away_is_no_bug() -> None:
    script = "import sys; from kpatch_ci.cli.main import main; sys.exit(main(['--help']))"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        err = program.stderr.read()
    assert program.returncode in (0, cli.BROKEN_PIPE)
    assert err == b""
