# SPDX-License-Identifier: GPL-2.0-or-later
"""The store that machines share, over real SFTP and real S3 protocols on the loopback."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko
import pytest
import s3fs
from moto.server import ThreadedMotoServer

from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.store.depot import Depot
from tests.contracts.depot import holds
from tests.e2e.sftp_server import Files, Login

pytestmark = pytest.mark.e2e


@dataclass
class Sftp:
    """An SSH server that serves ``root`` by SFTP to whoever has ``user_key``."""

    root: Path
    host_key: paramiko.PKey
    user_key: paramiko.PKey

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.transports: list[paramiko.Transport] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(self.host_key)
            transport.set_subsystem_handler("sftp", paramiko.SFTPServer, Files, str(self.root))
            transport.start_server(server=Login(self.user_key), event=threading.Event())
            self.transports.append(transport)

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self.listener.close()
        for transport in self.transports:
            transport.close()


@pytest.fixture
def sftp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sftp]:
    """With a home in which a key lies, and the server in known_hosts."""
    home = tmp_path / "home" / ".ssh"
    home.mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(home.parent))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = paramiko.ECDSAKey.generate()
    key.write_private_key_file(str(home / "id_ecdsa"))
    (tmp_path / "served").mkdir()
    server = Sftp(tmp_path / "served", paramiko.ECDSAKey.generate(), key)
    know(home, server, server.host_key)
    yield server
    with contextlib.suppress(OSError):
        server.close()


def know(home: Path, server: Sftp, key: paramiko.PKey) -> None:
    line = f"[127.0.0.1]:{server.port} {key.get_name()} {key.get_base64()}\n"
    (home / "known_hosts").write_text(line)


def depot_of(server: Sftp) -> Depot:
    return Depot(f"sftp://ci@127.0.0.1:{server.port}/depot")


def test_sftp_keeps_every_promise(sftp: Sftp, tmp_path: Path) -> None:
    holds(depot_of(sftp), tmp_path)
    assert not list((tmp_path / "served").rglob("*.new"))


def test_an_sftp_server_with_another_host_key_is_refused(sftp: Sftp, tmp_path: Path) -> None:
    know(tmp_path / "home" / ".ssh", sftp, paramiko.ECDSAKey.generate())
    with pytest.raises(InfrastructureError, match=r"store sftp://ci@127.0.0.1:\d+/depot: cannot write: .*[Hh]ost key"):
        depot_of(sftp).write_probe()
    (tmp_path / "home" / ".ssh" / "known_hosts").unlink()
    with pytest.raises(InfrastructureError, match="not found in known_hosts"):
        depot_of(sftp).write_probe()


def test_an_sftp_server_that_does_not_let_us_in_or_is_not_there_is_named(sftp: Sftp, tmp_path: Path) -> None:
    sftp.user_key = paramiko.ECDSAKey.generate()
    with pytest.raises(
        InfrastructureError, match=r"store sftp://ci@127.0.0.1:\d+/depot: cannot write: .*Authentication"
    ):
        depot_of(sftp).write_probe()
    sftp.close()
    with pytest.raises(
        InfrastructureError, match=r"store sftp://ci@127.0.0.1:\d+/depot: cannot write: .*Unable to connect"
    ):
        depot_of(sftp).write_probe()


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield server
    server.stop()


def test_s3_keeps_every_promise(s3: Any, tmp_path: Path) -> None:
    host, port = s3.get_host_and_port()
    options = {"endpoint_url": f"http://{host}:{port}"}
    s3fs.S3FileSystem(**options, skip_instance_cache=True).mkdir("kpatch")
    holds(Depot("s3://kpatch/ci", options), tmp_path)


def test_an_s3_bucket_that_is_not_there_and_a_server_that_is_not_are_named(s3: Any) -> None:
    host, port = s3.get_host_and_port()
    with pytest.raises(InfrastructureError, match=r"store s3://nobody/ci: cannot write: .*bucket does not exist"):
        Depot("s3://nobody/ci", {"endpoint_url": f"http://{host}:{port}"}).write_probe()
    with pytest.raises(InfrastructureError, match=r"store s3://nobody/ci: cannot write: .*127.0.0.1:1"):
        Depot("s3://nobody/ci", {"endpoint_url": "http://127.0.0.1:1"}).write_probe()
