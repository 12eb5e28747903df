# SPDX-License-Identifier: GPL-2.0-or-later
"""Which machines did a run's stages, and which of them were lost: the same words in every report."""

from __future__ import annotations

from kpatch_ci.report.schema import Document, HostDoc


def host_line(document: Document) -> str:
    """All of them in one line; empty where this machine did everything."""
    return "; ".join(_one(host) for host in document.hosts)


def lost_hosts(document: Document) -> list[str]:
    """A sentence for each that was lost."""
    return [
        f"{host.name} was lost: {host.lost}. What it was at was done elsewhere." for host in document.hosts if host.lost
    ]


def _one(host: HostDoc) -> str:
    moved = f" ({_size(host.sent)} sent, {_size(host.received)} received)" if host.sent or host.received else ""
    return f"{host.name} {host.stages} stage{'s' * (host.stages != 1)}{moved}{', LOST' if host.lost else ''}"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"
