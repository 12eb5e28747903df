# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees brought to their tips, each once a night: two items of one tree are measured on the same one."""

from __future__ import annotations

from collections.abc import Callable

from kpatch_ci.config.load import Config
from kpatch_ci.debian.apt import Archives
from kpatch_ci.kernel.source import TreeCache
from kpatch_ci.pipeline.session import open_tools


class Tips:
    """Remembers what was looked at, and what it said where it could not."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._seen: dict[str, None] = {}

    def refresh(self, config: Config) -> None:
        """Have the tree of ``config`` at its tip. Raises KpatchError."""
        if config.tree in self._seen:
            return
        trees = self._trees(config)
        if trees.will_fetch(config.tree) and config.tree.startswith("debian:"):
            self._say(f"fetching {config.tree} and importing it into git (about a minute, once)")
        tree = trees.refresh(config.tree)
        self._say(f"tip of {config.tree}: linux {tree.release}, {tree.commit[:12]}")
        self._seen[config.tree] = None

    def newer(self, config: Config) -> str:
        """What would be fetched first, for people; empty where nothing would be."""
        trees = self._trees(config)
        if config.tree.startswith("debian:") and trees.will_fetch(config.tree):
            return f"{config.tree}, for the first time"
        version = trees.newer(config.tree)
        if not version:
            self._seen[config.tree] = None  # one look is enough
        return f"linux-source {version}, which is newer than ours" if version else ""

    def _trees(self, config: Config) -> TreeCache:
        chosen = Archives(config.archives[0], config.archives[1]) if config.archives else None
        cache, tools, archives = open_tools(config.tools, chosen, self._say)
        return TreeCache(cache, tools, archives)
