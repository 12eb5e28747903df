# SPDX-License-Identifier: GPL-2.0-or-later
"""Carries calls over a link, and sends the artifacts that they need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kpatch_ci.guest.guests import measured
from kpatch_ci.kernel.build import BuildRequest
from kpatch_ci.model.build import BuildResult
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.pipeline.calls import ANSWERS, Answer, BootCall, Call, ReplicateCall, decode, encode
from kpatch_ci.pipeline.far.link import Link
from kpatch_ci.pipeline.far.sending import Ref, Sender
from kpatch_ci.pipeline.places import PlaceLost

SLACK = 120.0
"""Seconds beyond a call's own limits after which no answer means that there will be none."""


class LinkCarrier:
    """See Carrier. ``said``: what the other end wrote on its standard error, for when it is lost."""

    def __init__(self, link: Link, sender: Sender, said: Callable[[], str] = str) -> None:
        self.link, self._sender, self._said = link, sender, said

    def do(self, call: Call) -> Answer:
        """Do a call there. What that machine cannot do (its disk is full) is as good as lost: others can."""
        kind = "boot" if isinstance(call, BootCall) else "replicate"
        header = {"op": "call", "kind": kind, "call": encode(call)}
        try:
            for _ in range(3):
                found = self._ask(header, _limit(call))
                if "lacking" not in found:
                    return decode(ANSWERS[kind], found["answer"])
                for lacking in found["lacking"]:
                    ref: Ref = (lacking[0], lacking[1])
                    self._sender.send(ref)
        except InfrastructureError as error:
            self.link.close(f"it cannot: {error.what}")
            raise PlaceLost(self.link.lost) from error
        self.link.close("it loses the artifacts that it is sent")
        raise PlaceLost(self.link.lost)

    def build(self, request: BuildRequest, logs: Path) -> BuildResult:
        """No such host is asked to build."""
        raise InfrastructureError(f"{self.link.name} does no builds: {request.arm} ({logs.name})")

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
    """Seconds in which an answer must come: a replicate may have to boot first, and has a limit for each command."""
    limits = call.limits
    if isinstance(call, ReplicateCall):
        return limits.boot + limits.replicate * max(1, measured(call.job)) + SLACK
    return limits.boot + SLACK
