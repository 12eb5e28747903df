# SPDX-License-Identifier: GPL-2.0-or-later
"""``check --branch``: what was applied, as commits that can be fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpatch_ci.cli.main import main
from kpatch_ci.kernel.source import TreeCache
from tests.unit.cli.test_check_verb import LAMP, TEXT, Check, Kernel, checked, edit, here, kernel

__all__ = ["checked", "here", "kernel"]  # fixtures


def test_the_branch_has_the_mails_commits_and_can_be_fetched(
    kernel: Kernel, checked: Check, here: TreeCache, capsys: pytest.CaptureFixture[str]
) -> None:
    base = kernel.repo.git.rev_parse("HEAD")
    edit(kernel)
    mail = kernel.mail("lamp: Be long")
    code, (row,) = checked(mail, "-t", kernel.path, "--branch", "lamps/tested")
    assert code == 0
    (commit,) = row["branch"]["commits"]
    repo = here.get(str(kernel.path)).repo
    kernel.repo.git.fetch(str(repo), "lamps/tested")
    assert kernel.repo.git.rev_parse("FETCH_HEAD") == commit
    assert kernel.repo.git.show("-s", "--format=%an|%s|%P", commit) == f"Ada|lamp: Be long|{base}"
    assert kernel.repo.git.show(f"{commit}:{LAMP}") + "\n" == TEXT.replace("int line_20;", "long line_20;")
    assert kernel.repo.git.rev_parse("HEAD") == base
    assert main(["check", str(mail), "-t", str(kernel.path), "--branch", "lamps/tested"]) == 0
    assert f"to have it: git fetch {repo} lamps/tested" in capsys.readouterr().err


def test_what_does_not_apply_makes_no_branch(kernel: Kernel, checked: Check, here: TreeCache) -> None:
    edit(kernel)
    mail = kernel.mail(foreign=True)
    kernel.commit("other", {LAMP: TEXT.replace("int line_20;", "char line_20;")})
    code, (row,) = checked(mail, "-t", kernel.path, "--branch", "lamps")
    assert code == 1
    assert "branch" not in row
    assert not (here.get(str(kernel.path)).repo / "refs/heads/lamps").exists()


def test_a_branch_is_of_one_series_on_one_tree(
    kernel: Kernel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "-t", str(kernel.path), "--branch", "lamps"]) == 2
    assert "--branch takes one series and one tree" in capsys.readouterr().err
