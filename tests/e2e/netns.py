# SPDX-License-Identifier: GPL-2.0-or-later
"""A network namespace with an address of its own, on a wire to this machine that can be cut."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

NOBODY = "02:00:00:00:00:99"
"""A link address that no one has: what is sent there vanishes, as if the wire were cut, and no sender is told."""
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Wire:
    """``here`` and ``there`` are the addresses of its ends (198.18.0.0/15 is set aside for tests of networks)."""

    namespace: str
    link: str
    here: str
    there: str

    @classmethod
    @contextmanager
    def laid(cls) -> Iterator[Wire]:
        """A new namespace and the wire to it. Names and addresses are of this process, so that others' do not collide."""
        number, own = next(_numbers), os.getpid()
        net = f"198.{18 + own // 256 % 2}.{own % 256}"
        link = f"kc{own}n{number}"
        wire = cls(f"kpatch-ci-{own}-{number}", link, f"{net}.{4 * number + 1}", f"{net}.{4 * number + 2}")
        try:
            wire._lay()
            yield wire
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", wire.namespace)
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("link", "delete", wire.link)

    def _lay(self) -> None:
        _ip("netns", "add", self.namespace)
        _ip("link", "add", self.link, "type", "veth", "peer", "name", "wire", "netns", self.namespace)
        _ip("address", "add", f"{self.here}/30", "dev", self.link)
        _ip("link", "set", self.link, "up")
        self._inside("address", "add", f"{self.there}/30", "dev", "wire")
        self._inside("link", "set", "wire", "up")
        self._inside("link", "set", "lo", "up")

    def _inside(self, *arguments: str) -> None:
        _ip("-n", self.namespace, *arguments)

    def cut(self) -> None:
        """Nothing arrives at either end."""
        _ip("neigh", "replace", self.there, "lladdr", NOBODY, "nud", "permanent", "dev", self.link)
        self._inside("neigh", "replace", self.here, "lladdr", NOBODY, "nud", "permanent", "dev", "wire")

    def mend(self) -> None:
        """Each end asks anew where the other is."""
        _ip("neigh", "delete", self.there, "dev", self.link)
        self._inside("neigh", "delete", self.here, "dev", "wire")


def _ip(*arguments: str) -> None:
    argv = ["ip", *arguments]
    subprocess.run(argv, check=True, capture_output=True, timeout=30)
