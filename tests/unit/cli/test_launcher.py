# SPDX-License-Identifier: GPL-2.0-or-later
"""The launcher, with a Python that only pretends: it notes what it was asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import FakeTool

LAUNCHER = Path(__file__).parents[3] / "kpatch-ci"
SHELL = shutil.which("dash") or "/bin/sh"

PYTHON = """
echo "$(basename "$0") $*" >> "$CALLS"
case "$*" in
*version_info*) echo "${FAKE_VERSION:-3.11}" ;;
*'import ensurepip'*) [ -z "${NO_ENSUREPIP:-}" ] || [ -e "$NO_ENSUREPIP" ] ;;
"-m venv "*) mkdir -p "$3/bin"; cp "$SELF" "$3/bin/python"; exit "${VENV_EXIT:-0}" ;;
"-m pip "*) sleep "${PIP_SLEEP:-0}"; [ -z "${PIP_FAILS:-}" ] || { echo "ERROR: no network"; exit 1; } ;;
esac
"""

Launch = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    place = tmp_path / "a repo"
    place.mkdir()
    shutil.copy(LAUNCHER, place / "kpatch-ci")
    (place / "pyproject.toml").write_text("[project]\n")
    return place


@pytest.fixture
def launch(repo: Path, tmp_path: Path, fake_tool: FakeTool, monkeypatch: pytest.MonkeyPatch) -> Launch:
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("SELF", str(fake_tool("python3", PYTHON)))

    def run(*arguments: str, path: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "calls").write_text("")
        argv = [SHELL, str(path or repo / "kpatch-ci"), *arguments]
        return subprocess.run(
            argv, check=False, capture_output=True, text=True, env={**os.environ, **env}, cwd="/", timeout=30
        )

    return run


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().splitlines()


def test_the_first_start_makes_the_environment_and_hands_over(launch: Launch, repo: Path, tmp_path: Path) -> None:
    done = launch("run", "--series", "two words")
    assert done.returncode == 0
    assert done.stderr == "kpatch-ci: creating .venv (python 3.11) ...\n"
    assert done.stdout == ""
    assert calls(tmp_path)[2:] == [
        f"python3 -m venv {repo}/.venv",
        f"python -m pip install --quiet --disable-pip-version-check --no-input --editable {repo}",
        "python -P -m kpatch_ci run --series two words",
    ]


def test_a_warm_start_runs_nothing_else(launch: Launch, tmp_path: Path) -> None:
    launch("doctor")
    done = launch("doctor")
    assert done.stderr == ""
    assert calls(tmp_path) == ["python -P -m kpatch_ci doctor"]


def test_it_works_through_symlinks_and_from_anywhere(launch: Launch, repo: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "direct").symlink_to(repo / "kpatch-ci")
    (tmp_path / "bin" / "again").symlink_to("direct")
    assert launch("doctor", path=tmp_path / "bin" / "again").returncode == 0
    assert (repo / ".venv" / "kpatch-ci.stamp").exists()
    assert not (tmp_path / "bin" / ".venv").exists()


def test_a_changed_pyproject_installs_again_into_the_same_environment(
    launch: Launch, repo: Path, tmp_path: Path
) -> None:
    launch("doctor")
    (repo / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    done = launch("doctor")
    assert done.stderr == "kpatch-ci: updating .venv ...\n"
    assert [line.split()[2] for line in calls(tmp_path)] == ["pip", "-m"]
    assert launch("doctor").stderr == ""


def test_only_the_verb_test_brings_the_developers_tools(launch: Launch, repo: Path, tmp_path: Path) -> None:
    launch("-v", "doctor", "test")
    assert calls(tmp_path)[3].endswith(f"--editable {repo}")
    launch("-v", "test", "--unit")
    assert calls(tmp_path)[0].endswith(f"--editable {repo}[dev]")
    assert launch("test").stderr == launch("doctor").stderr == ""
    (repo / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    launch("doctor")
    assert calls(tmp_path)[0].endswith("[dev]"), "what was there is kept up to date"


def test_a_half_made_environment_is_made_anew(launch: Launch, repo: Path, tmp_path: Path) -> None:
    (repo / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(os.environ["SELF"], repo / ".venv" / "bin" / "python")
    (repo / ".venv" / "leftover").write_text("")
    assert "creating .venv" in launch("doctor").stderr
    assert not (repo / ".venv" / "leftover").exists()


def test_another_interpreter_makes_it_anew(launch: Launch, repo: Path, tmp_path: Path) -> None:
    launch("doctor")
    python = repo / ".venv" / "bin" / "python"
    moved = tmp_path / "python3.13"
    shutil.move(python, moved)
    python.symlink_to(moved)
    assert "creating .venv" in launch("doctor").stderr


def test_a_moved_repository_makes_it_anew(launch: Launch, repo: Path, tmp_path: Path) -> None:
    launch("doctor")
    repo.rename(tmp_path / "elsewhere")
    assert "creating .venv" in launch("doctor", path=tmp_path / "elsewhere" / "kpatch-ci").stderr


def test_pips_own_words_are_shown_when_it_fails_and_the_next_start_repairs(launch: Launch, repo: Path) -> None:
    done = launch("doctor", PIP_FAILS="1")
    assert done.returncode == 3
    assert done.stderr.splitlines()[1:] == [
        "ERROR: no network",
        "kpatch-ci: pip cannot install what kpatch-ci needs (its words are above); is the network there?",
    ]
    assert not (repo / ".venv" / "kpatch-ci.stamp").exists()
    assert launch("doctor").returncode == 0


def test_an_update_that_failed_is_never_taken_for_done(launch: Launch, repo: Path) -> None:
    launch("doctor")
    (repo / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert launch("doctor", PIP_FAILS="1").returncode == 3
    (repo / "pyproject.toml").write_text("[project]\n")
    assert "creating .venv" in launch("doctor").stderr


def test_an_old_python_is_named(launch: Launch, fake_tool: FakeTool) -> None:
    for newer in ("python3.14", "python3.13", "python3.12", "python3.11"):
        fake_tool(newer, "exit 1")
    done = launch("doctor", FAKE_VERSION="3.9")
    assert done.returncode == 3
    assert "python 3.11 or newer is needed; python3 is 3.9." in done.stderr


def test_a_newer_python_beside_an_old_one_is_found(launch: Launch, tmp_path: Path, fake_tool: FakeTool) -> None:
    for newer in ("python3.14", "python3.13"):
        fake_tool(newer, "exit 1")
    fake_tool("python3.12", f"FAKE_VERSION=3.12; export FAKE_VERSION\n{PYTHON}")
    done = launch("doctor", FAKE_VERSION="3.9")
    assert done.returncode == 0
    assert "(python 3.12)" in done.stderr
    assert any(line.startswith("python3.12 -m venv") for line in calls(tmp_path))


@pytest.mark.parametrize("sudo", ["exit 1", None])
def test_without_ensurepip_and_root_the_exact_command_is_told(
    launch: Launch, fake_tool: FakeTool, sudo: str | None
) -> None:
    fake_tool("id", "echo 1000")
    fake_tool("apt-get", "exit 99")
    if sudo:
        fake_tool("sudo", sudo)
    done = launch("doctor", NO_ENSUREPIP="/no/such/file")
    assert done.returncode == 3
    assert done.stderr.endswith("Run: sudo apt-get install -y python3-venv\n")


def test_with_root_what_ensurepip_needs_is_installed_and_said(
    launch: Launch, fake_tool: FakeTool, tmp_path: Path
) -> None:
    fake_tool("id", "echo 0")
    fake_tool("apt-get", f'echo "apt-get $*" >> "$CALLS"; [ "$1" != install ] || touch {tmp_path}/installed')
    done = launch("doctor", NO_ENSUREPIP=str(tmp_path / "installed"))
    assert done.returncode == 0, done.stderr
    assert "installing python3-venv (python3 cannot make virtual environments without it)" in done.stderr
    assert "apt-get install -y -q --no-install-recommends python3-venv" in calls(tmp_path)


def test_sudo_that_asks_nothing_is_used(launch: Launch, fake_tool: FakeTool, tmp_path: Path) -> None:
    fake_tool("id", "echo 1000")
    fake_tool("sudo", 'echo "sudo $*" >> "$CALLS"; shift; exec "$@"')
    fake_tool("apt-get", f'[ "$1" != install ] || touch {tmp_path}/installed')
    assert launch("doctor", NO_ENSUREPIP=str(tmp_path / "installed")).returncode == 0
    assert any(
        line.startswith("sudo -n env DEBIAN_FRONTEND=noninteractive apt-get install") for line in calls(tmp_path)
    )


def test_two_at_once_make_one_environment(launch: Launch, repo: Path, tmp_path: Path) -> None:
    (tmp_path / "calls").write_text("")
    argv = [SHELL, str(repo / "kpatch-ci"), "doctor"]
    env = {**os.environ, "PIP_SLEEP": "0.5"}
    with (
        subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=env) as first,
        subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=env) as second,
    ):
        said = sorted([first.communicate(timeout=30)[1], second.communicate(timeout=30)[1]])
    assert [first.returncode, second.returncode] == [0, 0]
    assert "creating .venv" in said[0]
    assert "waiting for another kpatch-ci" in said[1]
    assert sum("-m pip" in line for line in calls(tmp_path)) == 1
    assert sum("-m kpatch_ci" in line for line in calls(tmp_path)) == 2


def test_a_killed_one_leaves_the_next_to_repair(launch: Launch, repo: Path) -> None:
    with subprocess.Popen(
        [SHELL, str(repo / "kpatch-ci"), "doctor"],
        stderr=subprocess.PIPE,
        env={**os.environ, "PIP_SLEEP": "1"},
    ) as first:
        assert first.stderr is not None
        first.stderr.readline()
        end = time.monotonic() + 10
        while not (repo / ".venv" / "bin" / "python").exists() and time.monotonic() < end:
            time.sleep(0.01)
        first.kill()
    done = launch("doctor")
    assert done.returncode == 0
    assert "creating .venv" in done.stderr


def test_it_is_posix_shell() -> None:
    assert subprocess.run([SHELL, "-n", LAUNCHER], check=False).returncode == 0
    assert os.access(LAUNCHER, os.X_OK)
