# SPDX-License-Identifier: GPL-2.0-or-later
"""Carries calls over a link, and sends the artifacts that they need."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from kpatch_ci.guest.guests import measured
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.pipeline.calls import (
    ANSWERS,
    Answer,
    BuildCall,
    Call,
    Ref,
    ReplicateCall,
    build_limit,
    decode,
    encode,
    kind_of,
)
from kpatch_ci.pipeline.far.fetching import Fetcher
from kpatch_ci.pipeline.far.link import Link
from kpatch_ci.pipeline.far.sending import ASK_TIMEOUT, Progress, Sender
from kpatch_ci.pipeline.farplace import Provide, is_there
from kpatch_ci.pipeline.places import PlaceLost
from kpatch_ci.store.artifacts import Artifact, ArtifactStore
from kpatch_ci.store.parcels import Damaged

log = logging.getLogger(__name__)
T = TypeVar("T")
SAY_EVERY = 10.0
"""Seconds between two lines about a long transfer."""
SLACK = 120.0
"""Seconds beyond a call's own limits after which no answer means that there will be none."""


class LinkCarrier:
    """See Carrier. ``said``: what the other end wrote on its standard error, for when it is lost."""

    def __init__(self, link: Link, sender: Sender, store: ArtifactStore, said: Callable[[], str] = str) -> None:
        self.link, self._sender, self._said = link, sender, said
        self._fetcher = Fetcher(lambda header: self._able(lambda: link.ask(header, timeout=ASK_TIMEOUT)), store)

    def do(self, call: Call, provide: Provide = is_there) -> Answer:
        """Do a call there. What that machine cannot do (its disk is full) is as good as lost: others can."""
        kind = kind_of(call)
        header = {"op": "call", "kind": kind, "call": encode(call)}
        for _ in range(3):
            found = self._able(lambda: self._ask(header, _limit(call)))
            if "lacking" not in found:
                return self._able(partial(decode, ANSWERS[kind], found["answer"]))
            for lacking in found["lacking"]:
                ref: Ref = (lacking[0], lacking[1])
                provide(ref)
                self._able(partial(self._sender.send, ref, self._progress(ref)))
        self.link.close("it loses the artifacts that it is sent")
        raise PlaceLost(self.link.lost)

    def fetch(self, ref: Ref) -> Artifact:
        """See Carrier."""
        try:
            return self._fetcher.fetch(ref)
        except Damaged as error:
            raise self._lose(error) from error

    def _able(self, work: Callable[[], T]) -> T:
        """Its value. A place that cannot is lost."""
        try:
            return work()
        except InfrastructureError as error:
            raise self._lose(error) from error

    def _lose(self, error: InfrastructureError) -> PlaceLost:
        self.link.close(f"it cannot: {error.what}")
        return PlaceLost(self.link.lost)

    def _progress(self, ref: Ref) -> Progress:
        """Says now and then how far a large artifact has come."""
        said = time.monotonic()

        def told(there: int, whole: int) -> None:
            nonlocal said
            if time.monotonic() - said > SAY_EVERY:
                said = time.monotonic()
                log.info("%s: %s: %.0f of %.0f MB are there", self.link.name, ref[0], there / 1e6, whole / 1e6)

        return told

    @property
    def lost(self) -> str:
        """See Place.lost."""
        return self.link.lost

    @property
    def moved(self) -> tuple[int, int]:
        """See Place.moved."""
        return self.link.frames.sent, self.link.frames.received

    def close(self) -> None:
        """See Place.close."""
        self.link.close()

    def stop(self) -> None:
        """See Place.stop."""
        self.link.give_up()

    def _ask(self, header: dict[str, Any], limit: float) -> dict[str, Any]:
        try:
            return self.link.ask(header, timeout=limit)[0]
        except PlaceLost as error:
            said = self._said().strip()
            raise PlaceLost(f"{error}; its last words: {said.splitlines()[-1]}" if said else str(error)) from error


def _limit(call: Call) -> float:
    """Seconds in which an answer must come: a replicate may have to boot, and has a limit for each command; a build has several makes."""
    if isinstance(call, BuildCall):
        return build_limit(call) + SLACK
    limits = call.limits
    if isinstance(call, ReplicateCall):
        return limits.boot + limits.replicate * max(1, measured(call.job)) + SLACK
    return limits.boot + SLACK
