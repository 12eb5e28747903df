# SPDX-License-Identifier: GPL-2.0-or-later
"""What every verb that builds or boots needs: the tools, the tree and the series, fetched or made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kpatch_ci.board.boards import Boards
from kpatch_ci.board.image import Sources
from kpatch_ci.config.load import Config
from kpatch_ci.debian.apt import Archives, host_archives
from kpatch_ci.debian.toolroot import ToolRoot, check_sandbox, find_toolroot, make_toolroot
from kpatch_ci.guest.guests import Guests
from kpatch_ci.host.install import ensure
from kpatch_ci.kernel.build import Builder
from kpatch_ci.kernel.source import TreeCache
from kpatch_ci.model.build import Tree
from kpatch_ci.pipeline.accelerators import prove_accelerators
from kpatch_ci.pipeline.board import Kit, OnBoards, prepare_boards
from kpatch_ci.pipeline.calls import Limits
from kpatch_ci.pipeline.cluster.cluster import Cluster, open_cluster
from kpatch_ci.pipeline.engine import Engine, Observer
from kpatch_ci.pipeline.places import Place
from kpatch_ci.pipeline.slots import Slots
from kpatch_ci.pipeline.supply import Supply
from kpatch_ci.store.artifacts import ArtifactStore
from kpatch_ci.store.cache import cache_root, use_cache

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Session:
    """An open session. ``logs`` is where failing stages leave their logs."""

    config: Config
    cache: Path
    store: ArtifactStore
    tools: ToolRoot
    archives: Archives
    tree: Tree
    jobs: int
    logs: Path
    places: tuple[Place, ...] = ()
    """Other machines; those of them that are lost too."""
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Bytes moved by place, as far as a run has reported them: a session may have several."""
    cluster: Cluster | None = None
    """Where boots and replicates run instead of here."""

    def engine(self, slots: Slots, observer: Observer) -> Engine:
        """Runs stages here and at the places that are there still."""
        there = [place for place in self.places if not place.lost]
        far = self.cluster
        if far is None:
            return Engine(slots, observer, there, spare_here=self.config.spare_here)
        return Engine(slots, observer, (*there, *far.places()), newcomers=far.newcomers, spare_here=True)

    @property
    def every_place(self) -> tuple[Place, ...]:
        """Other machines, and the cluster's workers; those of them that are lost too."""
        return (*self.places, *(self.cluster.ever if self.cluster else ()))

    def with_hosts(self, say: Say) -> Session:
        """The same with its hosts, where it was opened without. Raises InfrastructureError."""
        return replace(self, places=_open_hosts(self.config, self.supply, say))

    @property
    def supply(self) -> Supply:
        """What other machines build of."""
        return Supply(self.cache, self.store, self.tools, float(self.config.timeouts.build))

    def close(self) -> None:
        """Leave the hosts: what still runs there ends."""
        for place in self.places:
            place.close()

    def builder(self, jobserver: Path | None = None) -> Builder:
        """Builds with this session's tools."""
        timeout = float(self.config.timeouts.build)
        return Builder(self.cache, self.store, self.tools, jobs=self.jobs, timeout=timeout, jobserver=jobserver)

    def guests(self) -> Guests:
        """Boots with this session's tools."""
        limits = self.config.timeouts
        return Guests(
            self.cache,
            self.store,
            self.tools,
            boot_timeout=float(limits.boot),
            replicate_timeout=float(limits.replicate),
            silence_timeout=float(limits.silence),
        )

    def on_boards(self) -> OnBoards:
        """Boots on boards."""
        boards = Boards(self.cache, replicate_timeout=float(self.config.timeouts.replicate))
        return OnBoards(boards, board_kit(self.config, self.cache, self.tools, self.archives))

    @property
    def agent_sources(self) -> Path:
        """The guest agent's C files."""
        return self.config.root / "qemu" / "guest"

    def module_sources(self, name: str) -> Path:
        """The source of a module of ours."""
        return self.config.root / "qemu" / name


def board_kit(config: Config, cache: Path, tools: ToolRoot, archives: Archives) -> Kit:
    """What boards are started with."""
    sources = Sources(config.root / "qemu" / "guest", config.root / "qemu" / "board")
    return Kit(cache, ArtifactStore(cache / "store"), tools, archives, sources)


def open_tools(suite: str, archives: Archives | None, say: Say) -> tuple[Path, ToolRoot, Archives]:
    """Install what the host lacks and make the tool root. Raises InfrastructureError."""
    ensure(say)
    cache = cache_root()
    use_cache(cache)
    archives = archives or host_archives()
    tools = find_toolroot(cache, suite)
    if tools is None:
        say(f"fetching compilers, Kbuild's tools and QEMU of Debian {suite} (about 190 MB, once; 850 MB unpacked)")
        tools = make_toolroot(cache, suite, archives)
        say(f"tool root ready: gcc {tools.versions['gcc']}, QEMU {tools.versions['qemu-system-x86']}")
    check_sandbox(tools)
    return cache, tools, archives


def open_session(config: Config, *, jobs: int, logs: Path, say: Say, hosts: bool = True, boots: bool = True) -> Session:
    """Everything that a run needs before its first stage; without ``hosts`` this machine is alone.

    ``boots``: something will be started, so that boards must answer and KVM must work. Raises UserError or InfrastructureError.
    """
    chosen = Archives(config.archives[0], config.archives[1]) if config.archives else None
    cache, tools, archives = open_tools(config.tools, chosen, say)
    if boots:
        prepare_boards(config.machines, board_kit(config, cache, tools, archives), say)
        prove_accelerators(config.machines, tools, say)
    store = ArtifactStore(cache / "store")
    supply = Supply(cache, store, tools, float(config.timeouts.build))
    places = _open_hosts(config, supply, say) if hosts else ()
    trees = TreeCache(cache, tools, archives)
    if trees.will_fetch(config.tree):
        say(f"fetching {config.tree} and importing it into git (about a minute, once)")
    tree = trees.get(config.tree)
    say(f"tree: {tree.label} = linux {tree.release} ({tree.origin})")
    return Session(config, cache, store, tools, archives, tree, jobs, logs, places)


def _open_hosts(config: Config, supply: Supply, say: Say) -> tuple[Place, ...]:
    if not config.hosts:
        return ()
    from kpatch_ci.pipeline.far.connect import open_hosts  # noqa: PLC0415 (SSH takes long to import)

    limits = Limits(*(float(n) for n in (config.timeouts.boot, config.timeouts.replicate, config.timeouts.silence)))
    places = open_hosts(config.hosts, supply, limits)
    say("hosts: " + ", ".join(f"{place.name} ({place.slots} slots)" for place in places))
    return places


@contextmanager
def on_cluster(session: Session, say: Say) -> Iterator[Session]:
    """The session with the cluster that the configuration names, if any; it is left at the end, and so are the hosts.

    Raises InfrastructureError where it cannot be used.
    """
    engine, given = session.config.engine, session.config.timeouts
    try:
        if engine is None:
            yield session
            return
        limits = Limits(float(given.boot), float(given.replicate), float(given.silence))
        cluster = open_cluster(engine, session.supply, limits, say)
        try:
            yield replace(session, cluster=cluster)
        finally:
            cluster.close()
    finally:
        session.close()
