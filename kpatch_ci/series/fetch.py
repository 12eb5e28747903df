# SPDX-License-Identifier: GPL-2.0-or-later
"""A thread from a mail archive, through b4: which archive is b4's configuration, and no business of this program."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.process import run

TIMEOUT = 300.0
"""Seconds that b4 may take."""

_ADDRESS = re.compile(r"https?:/{1,2}\S+$")
_IDENTITY = re.compile(r"(?:id:|mid:)?<?[^\s<>@/]+@[^\s<>@/]+>?$")


def is_address(path: Path) -> bool:
    """Whether what was given is a message-id or the address of a mail in an archive, and no file of that name."""
    text = str(path)
    return bool(_ADDRESS.match(text) or _IDENTITY.match(text)) and not path.exists()


def fetch(address: Path) -> bytes:
    """The thread's mbox. Raises InfrastructureError where b4 is missing or gets nothing, UserError where it names no mail."""
    if shutil.which("b4") is None:
        raise InfrastructureError(
            f"{address} is no file, and to fetch it as a mail b4 is needed, which is not installed",
            hint="install b4 (pip install b4), or save the thread's mbox and give that file",
        )
    wanted = re.sub(r"^(https?):/+", r"\1://", str(address))  # a Path has one slash where the address had two
    wanted = re.sub(r"^(?:id:|mid:)", "", wanted).strip("<>")
    with tempfile.TemporaryDirectory(prefix="kpatch-ci-b4-") as place:
        done = run(["b4", "mbox", "-o", place, "--", wanted], timeout=TIMEOUT, cwd=Path(place))
        files = [file for file in sorted(Path(place).rglob("*")) if file.is_file()]
        if not done.ok:
            raise InfrastructureError(
                f"cannot fetch {wanted}: {done.explain()}", log=done.output, hint="save the thread's mbox"
            )
        if len(files) != 1:
            raise UserError(
                f"b4 found no thread for {wanted}", where=str(address), expected="the message-id of a patch"
            )
        return files[0].read_bytes()
