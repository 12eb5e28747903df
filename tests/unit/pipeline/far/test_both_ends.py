# SPDX-License-Identifier: GPL-2.0-or-later
"""A carrier and a server: artifacts travel once and verified, calls run side by side, and whatever breaks is PlaceLost."""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kpatch_ci.model.digest import digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.pipeline.calls import BootAnswer, ReplicateAnswer, encode
from kpatch_ci.pipeline.far.carrier import LinkCarrier
from kpatch_ci.pipeline.far.sending import CHUNK, Sender
from kpatch_ci.pipeline.farplace import FarPlace
from kpatch_ci.pipeline.places import GUEST_KINDS, PlaceLost
from tests.fakes.far import BUILD_KEY, KERNEL, LIMITS, Ends, boot_call, connected, here, replicate_call


def carrier(ends: Ends, root: Path) -> LinkCarrier:
    store = here(root)
    return LinkCarrier(ends.link, Sender(ends.link, store), store)


def wait_until(true: Callable[[], Any]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.005)


def test_a_call_brings_its_artifacts_along_and_the_second_one_does_not(tmp_path: Path) -> None:
    with connected(tmp_path / "there") as ends:
        one = carrier(ends, tmp_path / "here")
        answer = one.do(boot_call(7))
        assert isinstance(answer, BootAnswer)
        assert (answer.boot.boot_seed, answer.console, answer.boot.console) == (7, "booted\n", None)
        first = ends.link.frames.sent
        one.do(boot_call(8))
        assert ends.link.frames.sent - first < 10_000
        there = ends.worker.store.get("build", BUILD_KEY)
        assert there is not None
        mine = here(tmp_path / "here").get("build", BUILD_KEY)
        assert mine is not None
        assert there.digests == mine.digests
        assert (there.path / "image").read_text() == (mine.path / "image").read_text()
        image = ends.worker.store.get("guest-image", "1" * 64)
        assert image is not None
        assert (image.path / "qemuserial.so").stat().st_mode & 0o777 == 0o755
        assert ends.worker.made_up.said == [KERNEL] * 2


def test_two_calls_are_at_work_at_once_and_each_gets_its_own_answer(tmp_path: Path) -> None:
    with connected(tmp_path / "there") as ends, ThreadPoolExecutor() as pool:
        one = carrier(ends, tmp_path / "here")
        ends.worker.made_up.gate.clear()
        calls = [pool.submit(one.do, replicate_call(seed, f"r{seed}")) for seed in (1, 2, 3)]
        wait_until(lambda: ends.worker.made_up.said.count("run") == 3)
        ends.worker.made_up.gate.set()
        answers = [call.result(10) for call in calls]
        assert ends.worker.made_up.said.count(KERNEL) == 1  # the boot that all three resume is made once
        assert [a.run.text for a in answers if isinstance(a, ReplicateAnswer)] == ["seed 1\n", "seed 2\n", "seed 3\n"]


def test_a_connection_that_breaks_in_a_call_is_a_lost_place_and_stays_one(tmp_path: Path) -> None:
    with connected(tmp_path / "there") as ends, ThreadPoolExecutor() as pool:
        one = carrier(ends, tmp_path / "here")
        ends.worker.made_up.gate.clear()
        call = pool.submit(one.do, replicate_call())
        wait_until(lambda: "run" in ends.worker.made_up.said)
        ends.theirs.close()
        with pytest.raises(PlaceLost):
            call.result(10)
        assert one.lost
        with pytest.raises(PlaceLost):
            one.do(boot_call())


def test_a_server_whose_connection_ends_is_gone(tmp_path: Path) -> None:
    with connected(tmp_path / "there") as ends:
        ends.ours.close()
        ends.serving.join(5)
        assert not ends.serving.is_alive()


def test_a_place_that_is_left_is_lost_and_its_server_is_gone(tmp_path: Path) -> None:
    with connected(tmp_path / "there") as ends:
        place = FarPlace("far", 1, GUEST_KINDS, carrier(ends, tmp_path / "here"), LIMITS)
        assert place.lost == ""
        place.close()
        assert place.lost == "closed"
        ends.serving.join(5)
        assert not ends.serving.is_alive()


def test_a_silent_host_is_lost_within_seconds(tmp_path: Path) -> None:
    with connected(tmp_path / "there", dead=0.5) as ends:
        one = carrier(ends, tmp_path / "here")
        one.do(boot_call())
        ends.theirs.hurt = lambda _: b""  # as when a cable is pulled: nothing comes, nothing ends
        began = time.monotonic()
        with pytest.raises(PlaceLost, match=r"no sign of life for 0\.5 s"):
            one.do(boot_call(2))
        assert time.monotonic() - began < 5


def test_a_slow_call_is_not_silence(tmp_path: Path) -> None:
    with connected(tmp_path / "there", dead=0.4) as ends:
        one = carrier(ends, tmp_path / "here")
        ends.worker.made_up.gate.clear()
        threading.Timer(1.2, ends.worker.made_up.gate.set).start()
        assert isinstance(one.do(replicate_call()), ReplicateAnswer)


def test_no_answer_in_time_is_a_lost_place(tmp_path: Path) -> None:
    with connected(tmp_path / "there") as ends:
        carrier(ends, tmp_path / "here").do(boot_call())
        ends.worker.made_up.gate.clear()
        header = {"op": "call", "kind": "replicate", "call": _plain(replicate_call())}
        with pytest.raises(PlaceLost, match="did not answer within 0 s"):
            ends.link.ask(header, timeout=0.2)


def _plain(call: Any) -> Any:
    return encode(call)


def test_what_a_host_cannot_do_goes_elsewhere_and_the_reason_is_kept(tmp_path: Path) -> None:
    with connected(tmp_path / "there") as ends:
        one = carrier(ends, tmp_path / "here")
        ends.worker.made_up.fails = InfrastructureError("no space left on the disk that holds /var", hint="free some")
        with pytest.raises(PlaceLost, match="it cannot: far: no space left on the disk"):
            one.do(replicate_call())
        assert "no space left" in one.lost


def test_a_bug_there_is_told_with_its_place(tmp_path: Path) -> None:
    with connected(tmp_path / "there") as ends:
        one = carrier(ends, tmp_path / "here")
        one.do(boot_call())
        ends.worker.made_up.fails = ZeroDivisionError("x")
        header = {"op": "call", "kind": "replicate", "call": _plain(replicate_call())}
        with pytest.raises(InfrastructureError, match=r"ZeroDivisionError: x[\s\S]*Traceback"):
            ends.link.ask(header, timeout=10)


def test_what_is_given_up_ends_and_the_connection_serves_the_next_call(tmp_path: Path) -> None:
    with connected(tmp_path / "there") as ends, ThreadPoolExecutor() as pool:
        one = carrier(ends, tmp_path / "here")
        one.do(boot_call())
        ends.worker.made_up.gate.clear()
        call = pool.submit(one.do, replicate_call())
        wait_until(lambda: "run" in ends.worker.made_up.said)
        threading.Timer(0.2, ends.worker.made_up.gate.set).start()
        one.stop()
        with pytest.raises(PlaceLost, match="stopped"):
            call.result(5)
        assert one.lost == ""
        assert isinstance(one.do(replicate_call()), ReplicateAnswer)


def test_an_artifact_on_its_way_is_given_up_too_and_goes_on_later(tmp_path: Path) -> None:
    store = here(tmp_path / "here")
    with connected(tmp_path / "there") as ends:
        seen: list[int] = []

        def progress(there: int, _: int) -> None:
            seen.append(there)
            if len(seen) == 2:
                ends.link.give_up()

        with pytest.raises(PlaceLost, match="stopped"):
            Sender(ends.link, store).send(("build", BUILD_KEY), progress)
        assert len(seen) == 2
        before = ends.link.frames.sent
        Sender(ends.link, store).send(("build", BUILD_KEY))
        assert ends.worker.store.get("build", BUILD_KEY) is not None
        assert ends.link.frames.sent - before < 800_000


def test_an_answer_that_is_too_large_is_an_error_and_no_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(tmp_path / "there") as ends:
        one = carrier(ends, tmp_path / "here")
        one.do(boot_call())
        monkeypatch.setattr("kpatch_ci.pipeline.far.frames.LARGEST", 6_000)
        monkeypatch.setattr(ends.worker.made_up, "text", "x" * 10_000)
        with pytest.raises(PlaceLost, match="it cannot: far: its answer has 0 MiB at once"):
            one.do(replicate_call())


def test_a_blob_that_was_cut_goes_on_where_it_stopped(tmp_path: Path) -> None:
    store = here(tmp_path / "here")
    whole = _traffic(tmp_path / "other", store)
    with connected(tmp_path / "there") as ends:
        sent = 0

        def cut(data: bytes) -> bytes:
            nonlocal sent
            sent += len(data)
            if sent > whole // 2:
                raise OSError("cable")
            return data

        ends.ours.hurt = cut
        with pytest.raises(PlaceLost):
            Sender(ends.link, store).send(("build", BUILD_KEY))
    parts = list((tmp_path / "there" / "store" / ".incoming").iterdir())
    assert sum(p.stat().st_size for p in parts) > CHUNK
    assert not (tmp_path / "there" / "store" / "build").exists()
    assert _traffic(tmp_path / "there", store) < 0.7 * whole
    assert list((tmp_path / "there" / "store" / ".incoming").iterdir()) == []


def _traffic(cache: Path, store: Any) -> int:
    with connected(cache) as ends:
        Sender(ends.link, store).send(("build", BUILD_KEY))
        assert ends.worker.store.get("build", BUILD_KEY) is not None
        return ends.link.frames.sent


def test_a_blob_that_was_damaged_on_its_way_is_sent_again(tmp_path: Path) -> None:
    store = here(tmp_path / "here")
    with connected(tmp_path / "there") as ends:
        _damage(ends, times=1)
        Sender(ends.link, store).send(("build", BUILD_KEY))
        assert ends.worker.store.get("build", BUILD_KEY) is not None


def test_one_that_is_damaged_each_time_is_refused(tmp_path: Path) -> None:
    store = here(tmp_path / "here")
    with connected(tmp_path / "there") as ends:
        _damage(ends, times=100)
        with pytest.raises(InfrastructureError, match=r"x\.ko has another checksum"):
            Sender(ends.link, store).send(("build", BUILD_KEY))
        assert ends.worker.store.get("build", BUILD_KEY) is None


def _damage(ends: Ends, times: int) -> None:
    """Change a byte of a module that travels, without the lengths noticing."""
    send = ends.link.frames.send
    left = times

    def hurt(header: Any, payload: bytes = b"") -> None:
        nonlocal left
        if header.get("op") == "blob" and left and len(payload) > 300:
            data = zlib.decompress(payload) if header["zlib"] else payload
            if data.startswith(bytes(range(8))):
                left -= 1
                header, payload = {**header, "zlib": False}, b"\xff" + data[1:]
        send(header, payload)

    ends.link.frames.send = hurt  # type: ignore[method-assign]


def test_two_threads_that_need_the_same_artifact_send_it_once(tmp_path: Path) -> None:
    store = here(tmp_path / "here")
    once = _traffic(tmp_path / "other", store)
    with connected(tmp_path / "there") as ends, ThreadPoolExecutor() as pool:
        sender = Sender(ends.link, store)
        list(pool.map(lambda _: sender.send(("build", BUILD_KEY)), range(4)))
        assert ends.link.frames.sent < 1.3 * once


def test_an_artifact_that_vanishes_there_is_sent_again(tmp_path: Path) -> None:
    with connected(tmp_path / "there") as ends:
        one = carrier(ends, tmp_path / "here")
        one.do(boot_call())
        ends.worker.store.drop("build", BUILD_KEY)
        assert isinstance(one.do(boot_call(2)), BootAnswer)


def test_an_unknown_operation_is_another_version(tmp_path: Path) -> None:
    with connected(tmp_path / "there") as ends, pytest.raises(InfrastructureError, match="another version"):
        ends.link.ask({"op": "dance"}, timeout=5)


def test_a_manifest_that_names_a_file_outside_is_refused(tmp_path: Path) -> None:
    files = {"../../evil": {"sha256": "0" * 64, "size": 1}}
    manifest = {"meta": {}, "files": files, "sum": digest([{}, files])}
    offer = {"op": "offer", "kind": "build", "key": "a" * 64, "manifest": manifest, "modes": {"../../evil": 0o644}}
    with connected(tmp_path / "there") as ends, pytest.raises(InfrastructureError, match="none of ours"):
        ends.link.ask(json.loads(json.dumps(offer)), timeout=5)
