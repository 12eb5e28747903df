# SPDX-License-Identifier: GPL-2.0-or-later
"""Headless Chromium in a root of its own, without a network, driven over its DevTools pipe."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kpatch_ci.debian.apt import host_archives
from kpatch_ci.debian.toolroot import BASE, ToolRoot, make_toolroot
from kpatch_ci.store.cache import cache_root

PACKAGES = (*BASE, "chromium-headless-shell", "fonts-dejavu-core")
PIPES = 'exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1'
"""The DevTools pipe is descriptors 3 and 4; ours are 0 and 1."""
ARGV = (
    "chromium-headless-shell", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
    "--no-first-run", "--disable-dev-shm-usage", "--user-data-dir=/tmp/profile",
)  # fmt: skip
"""--no-sandbox: bubblewrap is the sandbox."""
TIMEOUT = 60.0


def browser_root() -> ToolRoot:
    """The browser's root in the cache; about 70 s and 600 MB when it is not there yet."""
    return make_toolroot(cache_root(), "trixie", host_archives(), PACKAGES)


class Page:
    """One page. ``broken``: what the page's console, its policy or its network said that is no good."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._read = b""
        self._count = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """One DevTools command and its result."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + b"\0")
        self._process.stdin.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + TIMEOUT
        assert self._process.stdout
        number = self._process.stdout.fileno()
        while b"\0" not in self._read:
            ready, _, _ = select.select([number], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"the browser says nothing for {TIMEOUT:.0f} s"
            data = os.read(number, 1 << 20)
            assert data, "the browser has ended"
            self._read += data
        line, _, self._read = self._read.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def open(self, path: str, *, width: int, height: int = 800, dark: bool = False) -> None:
        """Load a file in a window of that many CSS pixels."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=f"file://{path}")
        deadline = time.monotonic() + TIMEOUT
        while self.value("document.readyState") != "complete":
            assert time.monotonic() < deadline, f"{path} does not load"
            time.sleep(0.05)

    def value(self, expression: str) -> Any:
        """Value of a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def picture(self) -> bytes:
        """The whole page as PNG."""
        done = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(done["data"])

    def pdf(self) -> bytes:
        """The page on A4 paper."""
        done = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, preferCSSPageSize=True)
        return base64.b64decode(done["data"])

    @property
    def complaints(self) -> list[str]:
        """What the browser reported since the page was opened: script errors, breaches of the page's policy."""
        wanted = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [json.dumps(e["params"]) for e in self.events if e.get("method") in wanted]

    @property
    def requests(self) -> list[str]:
        """Every address that was asked for since the page was opened."""
        found = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [str(url) for url in found]


@contextmanager
def browser(tools: ToolRoot, pages: Path) -> Iterator[Page]:
    """A page in a browser that sees the directory ``pages`` as /pages, read-only, and no network."""
    argv = tools.argv(["sh", "-c", PIPES, *ARGV], mounts=[(pages, "/pages")])
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield Page(process)
        finally:
            process.kill()
