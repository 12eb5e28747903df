# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds at the other end: the source travels once, a patch as its changes, and the kernel comes back verified."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import git
import pytest

from kpatch_ci.guest.guests import Guests
from kpatch_ci.kernel.build import KIND, Builder, BuildRequest
from kpatch_ci.kernel.external import External, read_external
from kpatch_ci.kernel.kconfig import Requested
from kpatch_ci.kernel.sent import CHANGES, SOURCE, has_source
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.model.build import BuildResult, Tree
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.model.status import Status
from kpatch_ci.pipeline.calls import BuildCall, refs
from kpatch_ci.pipeline.far.carrier import LinkCarrier
from kpatch_ci.pipeline.far.sending import Sender
from kpatch_ci.pipeline.farplace import FarPlace
from kpatch_ci.pipeline.places import BUILD, GUEST_KINDS, Here, PlaceLost
from kpatch_ci.pipeline.supply import Supply
from kpatch_ci.store.artifacts import ArtifactStore
from tests.fakes.far import LIMITS, Ends, connected
from tests.fakes.kbuild import FakeKbuildRoot

BASE = {
    "Makefile": "",
    "lib/a.c": "fn a\nwarn old\n",
    "lib/b.c": "fn b\n",
    "lib/big.c": "fn big\n" + "".join(f"word {n * 7919 % 100_003}\n" for n in range(30_000)),
}


def _write(repo: git.Repo, files: Mapping[str, str]) -> str:
    """The git tree of the working tree with these files."""
    for name, text in files.items():
        path = Path(repo.working_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    repo.git.add("-A")
    return str(repo.git.write_tree())


@dataclass
class Lab:
    """A tree, what is built of it, and a host that builds it."""

    root: Path
    repo: git.Repo
    tree: Tree
    tools: FakeKbuildRoot
    stack: ExitStack = field(default_factory=ExitStack)

    @property
    def store(self) -> ArtifactStore:
        return ArtifactStore(self.root / "here/store")

    @property
    def there(self) -> Path:
        return self.root / "there"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def request(self, files: Mapping[str, str] | None = None, *, arch: str = "x86_64") -> BuildRequest:
        """Of the baseline, or with files changed."""
        self.repo.git.read_tree("--reset", "-u", self.tree.tree_id)
        tree_id = _write(self.repo, files) if files else self.tree.tree_id
        return BuildRequest("s" if files else "baseline", ARCHES[arch], self.tree, tree_id, {})

    def alone(self, request: BuildRequest) -> BuildResult:
        """What this machine makes of it, in a cache of its own."""
        cache = self.root / "alone"
        builder = Builder(cache, ArtifactStore(cache / "store"), self.tools, jobs=1, timeout=60)
        builder.build(request.baseline(), self.logs)
        return builder.build(request, self.logs)

    @contextmanager
    def host(self, *, tools: FakeKbuildRoot | None = None, fresh: bool = False) -> Iterator[tuple[FarPlace, Ends]]:
        """Logged in to. ``fresh``: from a machine that has built nothing."""
        here = self.root / ("elsewhere" if fresh else "here")
        supply = Supply(here, ArtifactStore(here / "store"), self.tools, 60.0)
        with connected(self.there, tools=tools or self.tools) as ends:
            carrier = LinkCarrier(ends.link, Sender(ends.link, supply.store), supply.store)
            yield FarPlace("far", 2, frozenset({BUILD}), carrier, LIMITS, supply), ends


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    repo = git.Repo.init(tmp_path / "linux")
    tree = Tree("t", "6.1.9", Path(repo.git_dir), "c", _write(repo, BASE), "o")
    return Lab(tmp_path, repo, tree, FakeKbuildRoot(tmp_path, "trixie", "f", {}))


PATCH = {"lib/a.c": "fn a\nwarn new\n", "lib/c.c": "fn c\n"}


def test_a_baseline_is_built_there_and_comes_back_as_it_would_be_here(lab: Lab) -> None:
    request = lab.request()
    alone = lab.alone(request)
    with lab.host() as (place, ends):
        built = place.build(request, lab.logs)
        assert place.has_objects(request)
        assert not (lab.root / "here/out").exists()
    assert (built.status, built.key, built.cached) == (Status.PASSED, request.key(lab.tools), False)
    assert (built.image_digest, built.kernel_digest, built.objects) == (alone.image_digest, alone.kernel_digest, 3)
    assert built.artifact == lab.store.place(KIND, built.key)
    assert lab.store.get(KIND, built.key) is not None
    assert [w.text for w in built.warnings] == ["old"]
    assert has_source(lab.there, lab.tree.tree_id)
    assert list((lab.there / "store" / SOURCE).glob("*/*/manifest.json")) == []
    assert (ends.worker.cache / "out" / place.supply.objects_of(request) / "vmlinux").exists()  # type: ignore[union-attr]


def test_a_patch_travels_as_its_changes_and_starts_from_the_objects_that_are_there(lab: Lab) -> None:
    request = lab.request(PATCH)
    alone = lab.alone(request)
    with lab.host() as (place, ends):
        place.build(request.baseline(), lab.logs)
        before = ends.link.frames.sent
        built = place.build(request, lab.logs)
        assert ends.link.frames.sent - before < 6_000, "the source does not travel again"
    assert (built.objects, built.compiled) == (2, alone.compiled)
    assert built.differing == alone.differing
    assert built.differing is not None
    assert built.image_digest == alone.image_digest
    assert [w.text for w in built.warnings] == ["new"]


def test_where_only_the_kernel_is_known_the_objects_are_made_first(lab: Lab) -> None:
    request = lab.request(PATCH)
    alone = lab.alone(request)
    with lab.host() as (place, _):
        assert not place.has_objects(request)
        built = place.build(request, lab.logs)
        assert place.has_objects(request)
        other = place.build(lab.request({"lib/b.c": "fn b2\n"}), lab.logs)
    assert (built.objects, built.differing, built.image_digest) == (2, alone.differing, alone.image_digest)
    assert other.objects == 1


def test_this_machine_makes_them_too_where_the_host_is_lost_that_had_them(lab: Lab) -> None:
    request = lab.request(PATCH)
    alone = lab.alone(request)
    with lab.host() as (place, _):
        place.build(request.baseline(), lab.logs)
    builder = Builder(lab.root / "here", lab.store, lab.tools, jobs=1, timeout=60)
    here = Here(builder, cast("Guests", None), cast("Any", None))
    assert not here.has_objects(request)
    built = here.build(request, lab.logs)
    assert here.has_objects(request)
    assert (built.objects, built.differing, built.image_digest) == (2, alone.differing, alone.image_digest)


def test_what_the_host_built_before_is_fetched_and_not_built(lab: Lab) -> None:
    request = lab.request()
    with lab.host() as (place, _):
        first = place.build(request, lab.logs)
    shutil.rmtree(lab.there / "src")
    with lab.host(fresh=True) as (place, ends):
        second = place.build(request, lab.logs)
        assert ends.link.frames.sent < 20_000, "nor is the source sent again"
    assert (second.cached, second.image_digest) == (True, first.image_digest)
    assert second.artifact is not None
    assert second.artifact.is_relative_to(lab.root / "elsewhere")


def test_what_this_store_has_already_is_not_fetched(lab: Lab) -> None:
    request = lab.request()
    with lab.host() as (place, ends):
        place.build(request, lab.logs)
        whole = ends.link.frames.received
        same = lab.request({"README": "no object is made of it\n"})
        before = ends.link.frames.received
        built = place.build(same, lab.logs)
        assert ends.link.frames.received - before < 20_000 < whole
    assert built.image_digest == lab.alone(same).image_digest


def test_modules_of_ours_travel_with_the_call(lab: Lab) -> None:
    driver = lab.root / "driver"
    driver.mkdir()
    (driver / "Kbuild").write_text("obj-m := driver.o\n")
    (driver / "driver.c").write_text("int x;\n")
    request = replace(lab.request(), external=(read_external(driver),))
    laid: list[External] = []
    with lab.host() as (place, ends):
        building = ends.worker._building
        original = building._request

        def seen(call: BuildCall, folder: Path) -> BuildRequest:
            found = original(call, folder)
            laid.extend(found.external)
            assert (found.external[0].folder / "driver.c").read_text() == "int x;\n"
            assert found.key(lab.tools) == request.key(lab.tools)
            return found

        building._request = seen  # type: ignore[method-assign]
        built = place.build(request, lab.logs)
    assert built.reason == "the build left no module of driver", "the made-up make builds none"
    assert [(one.name, one.files) for one in laid] == [("driver", request.external[0].files)]


def test_a_kernel_that_does_not_build_comes_back_with_what_make_said(lab: Lab) -> None:
    request = lab.request({"lib/a.c": "fn a\nerror no such thing\n"})
    with lab.host() as (place, _):
        built = place.build(request, lab.logs)
        assert place.lost == ""
    assert built.status is Status.FAILED
    assert "exit status 2" in built.reason
    assert "error: no such thing" in built.log_tail
    assert built.log == lab.logs / "build-x86_64-s.on-far.log"
    assert "error: no such thing" in built.log.read_text()
    assert lab.store.get(KIND, built.key) is None


def test_a_symbol_that_is_missing_is_told_though_no_git_tree_is_there(lab: Lab) -> None:
    request = replace(lab.request(), config={"XFS_FS": Requested("XFS_FS", "y", "xfs.config:1")})
    with lab.host() as (place, _):
        built = place.build(request, lab.logs)
    assert [(miss.symbol, miss.wanted, miss.got) for miss in built.misses] == [("XFS_FS", "y", "n")]


def test_a_host_that_would_build_another_kernel_is_left(lab: Lab) -> None:
    other = replace(lab.tools, fingerprint="g")
    with lab.host(tools=other) as (place, _):
        with pytest.raises(PlaceLost, match="would not be the one that was asked for"):
            place.build(lab.request(), lab.logs)
        assert place.lost
    assert not (lab.there / "out").exists()


def test_a_full_disk_there_is_the_hosts_loss(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    request = lab.request({"lib/a.c": "error x\n"})
    monkeypatch.setattr("kpatch_ci.store.atomic.SPARE", 1 << 62)
    with lab.host() as (place, _), pytest.raises(PlaceLost, match="it cannot: far: no space left"):
        place.build(request, lab.logs)


def test_two_builds_at_once_send_the_source_once(lab: Lab) -> None:
    requests = [lab.request(arch=arch) for arch in ("x86_64", "arm64")]
    with lab.host() as (place, _):
        place.build(requests[0], lab.logs)
        once = place.moved[0]
    lab.there.rename(lab.root / "before")
    lab.store.drop(KIND, requests[0].key(lab.tools))
    with lab.host() as (place, _), ThreadPoolExecutor() as pool:
        built = list(pool.map(lambda one: place.build(one, lab.logs), requests))
        assert place.moved[0] < 1.2 * once
    assert [one.status for one in built] == [Status.PASSED] * 2


def test_the_kernel_goes_on_where_it_stopped(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kpatch_ci.pipeline.far.server.READ", 20_000)
    request = lab.request()
    with lab.host() as (place, ends):
        ask, reads = ends.link.ask, 0

        def cut(header: dict[str, Any], payload: bytes = b"", *, timeout: float) -> Any:
            nonlocal reads
            reads += header["op"] == "read"
            if reads == 10:
                ends.ours.close()
            return ask(header, payload, timeout=timeout)

        ends.link.ask = cut  # type: ignore[method-assign]
        with pytest.raises(PlaceLost):
            place.build(request, lab.logs)
    with lab.host() as (place, ends):
        before = ends.link.frames.received
        built = place.build(request, lab.logs)
        part = ends.link.frames.received - before
    with lab.host(fresh=True) as (place, _):
        place.build(request, lab.logs)
        whole = place.moved[1]
    assert built.cached
    assert part < 0.9 * whole
    assert lab.store.get(KIND, built.key) is not None


@pytest.mark.parametrize("times", [1, 100])
def test_bytes_that_are_damaged_are_fetched_again_and_then_given_up(lab: Lab, times: int) -> None:
    request = lab.request()
    with lab.host() as (place, ends):
        ask, left = ends.link.ask, times

        def hurt(header: dict[str, Any], payload: bytes = b"", *, timeout: float) -> Any:
            nonlocal left
            answer, data = ask(header, payload, timeout=timeout)
            if header["op"] == "read" and left and len(data) > 1000:
                left -= 1
                data = zlib.decompress(data) if answer["zlib"] else data
                answer, data = {**answer, "zlib": False}, b"?" + data[1:]
            return answer, data

        ends.link.ask = hurt  # type: ignore[method-assign]
        if times == 1:
            assert place.build(request, lab.logs).status is Status.PASSED
            assert lab.store.get(KIND, request.key(lab.tools)) is not None
            return
        with pytest.raises(PlaceLost, match="has another checksum"):
            place.build(request, lab.logs)
    assert lab.store.get(KIND, request.key(lab.tools)) is None


def test_only_what_was_announced_can_be_read(lab: Lab) -> None:
    with lab.host() as (_, ends), pytest.raises(InfrastructureError, match="not announced"):
        ends.link.ask({"op": "read", "sha": "0" * 64, "offset": 0}, timeout=5)


def test_a_place_for_guests_builds_nothing(lab: Lab) -> None:
    with lab.host() as (place, _):
        guests = replace(place, kinds=GUEST_KINDS, supply=None)
        assert not guests.has_objects(lab.request())
        with pytest.raises(InfrastructureError, match="far does no builds: baseline for x86_64"):
            guests.build(lab.request(), lab.logs)


def test_a_call_names_the_source_and_what_is_patched(lab: Lab) -> None:
    supply = Supply(lab.root / "here", lab.store, lab.tools, 60.0)
    assert [kind for kind, _ in refs(supply.call(lab.request(), 1))] == [SOURCE]
    assert [kind for kind, _ in refs(supply.call(lab.request(PATCH), 1))] == [SOURCE, CHANGES]
    assert not (lab.store.root / SOURCE).exists(), "it is packed when somebody lacks it"
