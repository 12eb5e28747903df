# SPDX-License-Identifier: GPL-2.0-or-later
"""A real PostgreSQL server in a root of its own, without a network: a socket in a directory is the way in."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from kpatch_ci.debian.apt import host_archives
from kpatch_ci.debian.toolroot import BASE, ToolRoot, make_toolroot
from kpatch_ci.store.cache import cache_root

PACKAGES = (*BASE, "postgresql-17")
USER, PASSWORD = "kpci", "s3cret"
IDENTITY = ("--uid", "1000", "--gid", "1000")
"""The server will not be root, not even in a sandbox."""
SCRIPT = f"""set -e
cd /tmp
echo {PASSWORD} >password
/usr/lib/postgresql/17/bin/initdb -D data -U {USER} --pwfile=password -A scram-sha-256 -E UTF8 --no-sync >init.log
exec /usr/lib/postgresql/17/bin/postgres -D data -c listen_addresses= -c unix_socket_directories=/sock
"""
STARTS_IN = 120.0


def server_root() -> ToolRoot:
    """The server's root in the cache; some seconds and 200 MB when it is not there yet."""
    return make_toolroot(cache_root(), "trixie", host_archives(), PACKAGES)


def url(sockets: Path, database: str, password: str = PASSWORD) -> str:
    """Of a database of the server whose socket is in ``sockets``."""
    return f"postgresql://{USER}:{password}@/{database}?host={sockets}"


@contextmanager
def server(root: ToolRoot, place: Path) -> Iterator[Path]:
    """A server that runs meanwhile; yields the directory of its socket."""
    etc, sockets = place / "etc", place / "socket"
    for folder in (etc, sockets):
        folder.mkdir()
    sockets.chmod(0o777)
    (etc / "passwd").write_text(f"{USER}:x:1000:1000::/tmp:/bin/sh\n")
    argv = root.argv(["sh", "-c", SCRIPT], mounts=[(etc, "/etc")], write_mounts=[(sockets, "/sock")])
    at = argv.index("--unshare-all") + 1
    with (
        (place / "log").open("w") as log,
        subprocess.Popen([*argv[:at], *IDENTITY, *argv[at:]], stdout=log, stderr=log) as running,
    ):
        try:
            _wait(running, sockets, place / "log")
            yield sockets
        finally:
            running.kill()


def _wait(running: subprocess.Popen[bytes], sockets: Path, log: Path) -> None:
    deadline = time.monotonic() + STARTS_IN
    while True:
        try:
            psycopg.connect(url(sockets, "postgres")).close()
        except psycopg.OperationalError:
            assert running.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        else:
            return


def make_database(sockets: Path, name: str) -> str:
    """An empty database; its URL."""
    with psycopg.connect(url(sockets, "postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return url(sockets, name)
