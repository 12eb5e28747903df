# SPDX-License-Identifier: GPL-2.0-or-later
"""fsspec's SFTP, with host keys checked: left to itself it takes whatever key a server shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import paramiko
from fsspec.implementations.sftp import SFTPFileSystem


class CheckedSftp(SFTPFileSystem):  # type: ignore[misc]
    """Refuses a server whose key is not in ~/.ssh/known_hosts. Keys only, no passwords."""

    def _connect(self) -> None:
        self.client = paramiko.SSHClient()
        self.client.load_system_host_keys()
        self.client.set_missing_host_key_policy(paramiko.RejectPolicy())
        self.client.connect(self.host, **self.ssh_kwargs)
        self.ftp = self.client.open_sftp()


def checked_sftp(url: str, options: Mapping[str, Any]) -> CheckedSftp:
    """The file system of a URL. Raises what paramiko raises."""
    return CheckedSftp(**{**CheckedSftp._get_kwargs_from_urls(url), **options})
