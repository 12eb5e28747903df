# SPDX-License-Identifier: GPL-2.0-or-later
"""The far end of SFTP, for tests: paramiko's own server over a directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import paramiko


class Login(paramiko.ServerInterface):  # type: ignore[misc]
    """Lets in who has the key."""

    def __init__(self, key: paramiko.PKey) -> None:
        self._key = key

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return int(paramiko.AUTH_SUCCESSFUL if key == self._key else paramiko.AUTH_FAILED)

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(paramiko.OPEN_SUCCEEDED)


class Files(paramiko.SFTPServerInterface):  # type: ignore[misc]
    """The directory ``root``."""

    def __init__(self, server: Any, root: str) -> None:
        super().__init__(server)
        self._root = Path(root)

    def _at(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    def stat(self, path: str) -> Any:
        try:
            return paramiko.SFTPAttributes.from_stat(self._at(path).stat())
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)

    lstat = stat

    def mkdir(self, path: str, attr: Any) -> int:
        return self._try(lambda: self._at(path).mkdir())

    def remove(self, path: str) -> int:
        return self._try(lambda: self._at(path).unlink())

    def posix_rename(self, oldpath: str, newpath: str) -> int:
        return self._try(lambda: self._at(oldpath).replace(self._at(newpath)))

    def open(self, path: str, flags: int, attr: Any) -> Any:
        try:
            descriptor = os.open(self._at(path), flags, 0o644)
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)
        handle = paramiko.SFTPHandle(flags)
        handle.readfile = handle.writefile = os.fdopen(descriptor, "r+b" if flags & os.O_ACCMODE else "rb")
        handle.stat = lambda: self.stat(path)
        return handle

    def _try(self, act: Any) -> int:
        try:
            act()
        except OSError as error:
            return int(paramiko.SFTPServer.convert_errno(error.errno or 0))
        return int(paramiko.SFTP_OK)
