# SPDX-License-Identifier: GPL-2.0-or-later
"""Real SSH servers that stand in for other machines, and what happens to machines: they die, hang, fill up, get other keys.

Each has its own process namespace, so that it can be killed with all that it does at once, and so that whatever is left
running there is seen; its own mounts; and where that is asked for its own network with an address, or its own root file
system (this machine's, of which only the copy is changed). All of it is gone with the process that began it.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kpatch_ci.host.install import Need, ensure
from tests.e2e.netns import Wire
from tests.e2e.sshclient import Client

NEEDS = (
    Need("/usr/sbin/sshd", "openssh-server", "a real SSH server to test with"),
    Need("ssh-keygen", "openssh-client", "makes its keys"),
    Need("ip", "iproute2", "gives it an address"),
    Need("unshare", "util-linux", "gives it processes of its own"),
)
RUN = Path("/run/sshd")
"""Where the server's unprivileged half is locked in; its package makes it when it is started as a service."""
STARTS_IN = 20.0
CONFIG = """\
ListenAddress {address}
Port {port}
HostKey {place}/host_key
AuthorizedKeysFile {place}/authorized_keys
PidFile none
StrictModes no
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
Subsystem sftp internal-sftp
"""
START = 'exec /usr/sbin/sshd -D -e -f "$place/sshd_config"'
TOOLS = 'mkdir -p "$place/work/tools"; mount --bind -o ro "$tools" "$place/work/tools"'
"""What `kpatch-ci doctor --fix` would bring there, without the time that takes."""
SMALL = 'mount -t tmpfs -o "size=$size" tmpfs "$place/work"'
HOME = 'mount --bind "$place/home" "$HOME"'
"""Nobody's start files, which may do anything and be in the middle of it when the host is killed.

After the tools: the cache that they are in is below the real one, unless somebody has put it elsewhere.
"""
COPY = """\
mount -t tmpfs -o size=2g tmpfs "$place/root"
mkdir "$place/root/new" "$place/root/work" "$place/root/all"
mount -t overlay -o "lowerdir=/,upperdir=$place/root/new,workdir=$place/root/work" overlay "$place/root/all"
for one in proc sys dev run tmp; do mount --rbind "/$one" "$place/root/all/$one"; done
mount --rbind "$HOME" "$place/root/all$HOME"
mkdir -p "$place/root/all$place"
mount --rbind "$place" "$place/root/all$place"
cd "$place/root/all"
mkdir -p old
pivot_root . old
umount --lazy old
cd /
"""


def install() -> None:
    """What the servers are made of. Skips a test, saying why, where this is not root: namespaces of a machine want that."""
    if os.geteuid() != 0:
        pytest.skip("hosts are namespaces with a server in each, and only root can make those: run the tests as root")
    ensure(print, NEEDS)
    RUN.mkdir(mode=0o755, exist_ok=True)


@dataclass
class SshHost:
    """One host. ``place`` holds its server's files and ``work``, the directory that is for kpatch-ci."""

    name: str
    place: Path
    client: Client
    address: str = "127.0.0.1"
    port: int = 22
    wire: Wire | None = None
    size: str = ""
    copy: bool = False
    tools: Path | None = None
    _running: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def work(self) -> Path:
        """Its work directory; of a small one what is seen from outside is empty."""
        return self.place / "work"

    @property
    def key(self) -> Path:
        """The private key that it lets in."""
        return self.place / "user_key"

    @property
    def known_as(self) -> str:
        """As known_hosts writes it."""
        return self.address if self.port == 22 else f"[{self.address}]:{self.port}"

    @property
    def log(self) -> str:
        """What the server said."""
        return (self.place / "log").read_text(errors="replace")

    def prepare(self) -> None:
        """Keys, configuration and directories."""
        for name in ("work", "root", "home"):
            (self.place / name).mkdir(parents=True)
        for name in ("host_key", "user_key"):
            _new_key(self.place / name)
        shutil.copy(self.place / "user_key.pub", self.place / "authorized_keys")
        text = CONFIG.format(address=self.address, port=self.port, place=self.place)
        (self.place / "sshd_config").write_text(text + _lenient())
        self.client.trust(self)

    def start(self) -> None:
        """Begin to serve, and wait until it does."""
        script = "set -e\n" + (f"{SMALL}\n" if self.size else "") + (f"{TOOLS}\n" if self.tools else "") + f"{HOME}\n"
        script += f"{COPY}{START}" if self.copy else START
        argv = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script]
        if self.wire:
            argv = ["ip", "netns", "exec", self.wire.namespace, *argv]
        home = pwd.getpwuid(os.geteuid()).pw_dir
        assert not self.place.is_relative_to(home), (
            f"{self.place} is in {home}, where a host has its own: --basetemp elsewhere"
        )
        env = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": home,
            "place": str(self.place),
            "size": self.size,
            "tools": str(self.tools),
        }
        with (self.place / "log").open("ab") as log:
            self._running = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + STARTS_IN
        while True:
            try:
                with socket.create_connection((self.address, self.port), timeout=1) as made:
                    if made.recv(4) == b"SSH-":
                        return
            except OSError:
                pass
            assert self._running is not None
            assert self._running.poll() is None, f"{self.name}'s server ended:\n{self.log}"
            assert time.monotonic() < deadline, f"{self.name}'s server does not answer:\n{self.log}"
            time.sleep(0.05)

    def kill(self) -> None:
        """The machine is gone in an instant, with its sessions and all that they do; connections to it are reset."""
        if self._running is None:
            return
        self._running.kill()
        self._running.wait()
        self._running = None

    def restart(self) -> None:
        """Kill it, and begin again."""
        self.kill()
        self.start()

    def change_key(self) -> None:
        """It comes back with another host key, as after a reinstallation, or as somebody else."""
        for name in ("host_key", "host_key.pub"):
            (self.place / name).unlink()
        _new_key(self.place / "host_key")
        self.restart()

    def refuse_keys(self) -> None:
        """Nobody is let in any more."""
        (self.place / "authorized_keys").write_text("")

    def cut(self) -> None:
        """Packets to and from it vanish; nobody is told."""
        assert self.wire, "only a host with an address of its own can be cut off"
        self.wire.cut()

    def mend(self) -> None:
        """Packets arrive again."""
        assert self.wire
        self.wire.mend()

    def fill(self) -> None:
        """Leave no byte free in its (small) work directory: it becomes as small as what is in it."""
        assert self.size, "only a small work directory is filled"
        script = (
            "for one in 1 2 3 4 5; do used=$(df -k --output=used \"$0\" | tail -n 1 | tr -d ' ');"
            ' mount -o "remount,size=${used}k" "$0" && exit 0; done; exit 1'
        )  # again where something was written just then
        self.inside("sh", "-c", script, str(self.work))

    def inside(self, *argv: str) -> str:
        """Run a command in its mounts and processes, not through its server; what it printed."""
        enter = ["nsenter", "--target", str(self._init), "--mount", "--pid", "--", *argv]
        return subprocess.run(enter, capture_output=True, text=True, timeout=60, check=True).stdout

    @property
    def _init(self) -> int:
        """The first process in there. ``ip netns exec`` becomes ``unshare``, whose child it is."""
        assert self._running is not None
        return _children()[self._running.pid][0]

    def processes(self) -> dict[int, str]:
        """Everything that runs there but the server and its sessions: process id (as this machine counts) -> command line."""
        children = _children()
        found, todo = {}, list(children.get(self._init, ()))
        while todo:
            pid = todo.pop()
            todo += children.get(pid, ())
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                continue
            if line and not line.startswith(("sshd", "/usr/sbin/sshd", "/usr/lib/openssh/sshd-")):
                found[pid] = line
        return found

    def wait_for(self, word: str, *, seconds: float = 60.0) -> None:
        """Wait until a command line there has ``word`` in it."""
        self._until(lambda: any(word in line for line in self.processes().values()), f"{word} to run", seconds)

    def wait_quiet(self, *, seconds: float = 10.0) -> None:
        """Wait until nothing runs there; fails, with what does, where that takes longer."""
        self._until(lambda: not self.processes(), "nothing to run", seconds)

    def _until(self, done: Callable[[], bool], what: str, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, f"{self.name}: waited {seconds} s for {what}; there is {self.processes()}"
            time.sleep(0.1)


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            found.setdefault(parent, []).append(int(entry.name))
    return found


def _lenient() -> str:
    """From 9.8 on a server punishes whoever connects and does not log in, as its tests do; older ones do not know the setting."""
    said = subprocess.run(["/usr/sbin/sshd", "-V"], capture_output=True, text=True, timeout=30, check=False).stderr
    found = re.search(r"OpenSSH_(\d+)\.(\d+)", said)
    return "PerSourcePenalties no\n" if found and (int(found[1]), int(found[2])) >= (9, 8) else ""


def _new_key(path: Path) -> None:
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "kpatch-ci test", "-f", str(path)]
    subprocess.run(argv, check=True, timeout=30)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


@contextmanager
def host(
    name: str,
    place: Path,
    client: Client,
    *,
    network: bool = False,
    size: str = "",
    copy: bool = False,
    tools: Path | None = None,
) -> Iterator[SshHost]:
    """A host that serves meanwhile: on a port of the loopback, or with ``network`` on port 22 of its own address.

    ``size``: of its work directory, as ``64m``. ``copy``: it has a root file system of its own, for packages to be installed.
    ``tools``: a cache's tool roots, which it has in its work directory.
    """
    with ExitStack() as stack:
        wire = stack.enter_context(Wire.laid()) if network else None
        where = {"address": wire.there, "port": 22} if wire else {"port": _free_port()}
        made = SshHost(name, place / name, client, wire=wire, size=size, copy=copy, tools=tools, **where)
        made.prepare()
        stack.callback(made.kill)
        made.start()
        yield made
