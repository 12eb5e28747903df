# SPDX-License-Identifier: GPL-2.0-or-later
"""What can be told of a series before anything is built: which of its files the configuration leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import git

from kpatch_ci.kernel.build import BuildRequest
from kpatch_ci.kernel.git import open_repo
from kpatch_ci.kernel.kbuild import NotBuilt, not_built
from kpatch_ci.kernel.kconfig import parse_config
from kpatch_ci.model.series import BASELINE, Series
from kpatch_ci.pipeline.session import Session
from kpatch_ci.pipeline.stages import Stages
from kpatch_ci.series.apply import apply_series

MAX_FILES = 60
"""Files of a series that are looked up: a larger one touches something that is built."""


def foresee(session: Session, series: Series) -> tuple[str, ...]:
    """A line for each architecture and file that Kbuild will leave out, with the symbols to turn on. Silent where it cannot tell."""
    applied = apply_series(series, session.tree)
    if applied.tree_id is None:
        return ()
    repo, tree_id = open_repo(session.tree.repo), applied.tree_id

    @cache
    def read(path: str) -> str | None:
        try:
            return str(repo.git.show(f"{tree_id}:{path}"))
        except git.GitCommandError:
            return None

    lines = []
    stages = Stages(session, session.builder(), session.guests())
    for machine in session.config.machines:
        request = stages.request(machine.arch, BASELINE, session.tree.tree_id)
        paths = [path for path in applied.changed_paths[:MAX_FILES] if _could_be(path, request)]
        config, final = _configuration(session, request)
        lines += [_line(machine.arch, one, final=final) for one in not_built(paths, read, config)]
    return tuple(lines)


def _could_be(path: str, request: BuildRequest) -> bool:
    """Whether it is no other architecture's."""
    home = {"x86_64": "x86"}.get(request.arch.kernel_arch, request.arch.kernel_arch)
    return not path.startswith("arch/") or path.startswith(f"arch/{home}/")


def _configuration(session: Session, request: BuildRequest) -> tuple[Mapping[str, str], bool]:
    """The baseline's own .config where it was built before, else what is asked for."""
    built = session.builder().find(request)
    if built is not None and built.artifact is not None:
        return parse_config((built.artifact / "config").read_text()), True
    return {name: one.value for name, one in request.config.items()}, False


def _line(arch: str, one: NotBuilt, *, final: bool) -> str:
    symbols = [f"CONFIG_{name}" for name in one.missing]
    off = f"{' and '.join(symbols)} {'are' if len(symbols) > 1 else 'is'} " + ("off" if final else "not asked for")
    fragment = ", ".join(f"{name}=y" for name in symbols)
    return (
        f"{arch}: {one.path} is not compiled under this configuration: {off}."
        f" To test it, put {fragment} into a file of kconfigs/ and name that file under kconfig:"
    )
