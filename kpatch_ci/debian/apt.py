# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian packages of any suite and architecture, without touching the host's own apt.

An *isolated apt root* has its own sources, lists, cache and an empty dpkg status; apt verifies signatures and checksums
as ever. Archive addresses come from the host's apt configuration (only the suite changes) or from pipeline.yaml.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kpatch_ci.model.digest import file_digest
from kpatch_ci.model.errors import InfrastructureError
from kpatch_ci.process import Completed, run
from kpatch_ci.store.atomic import disk_errors, require_space, write_text

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
UPDATE_TIMEOUT = 300.0
DOWNLOAD_TIMEOUT = 1800.0
EXTRACT_TIMEOUT = 600.0

_CONF = """\
Dir::State "{root}/state";
Dir::State::status "{root}/status";
Dir::Cache "{root}/cache";
Dir::Etc::SourceList "{root}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
APT::Architecture "{arch}";
#clear APT::Architectures;
APT::Architectures {{ "{arch}"; }};
APT::Default-Release "";
APT::Install-Recommends "false";
APT::Sandbox::User "";
APT::Keep-Downloaded-Packages "true";
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
Acquire::Languages "none";
Acquire::Retries "3";
"""


@dataclass(frozen=True, slots=True)
class Archives:
    """Addresses of the main and the security archive."""

    main: str
    security: str | None


def host_archives(*, timeout: float = 60.0) -> Archives:
    """The archives that the host's own apt uses. Raises InfrastructureError where it names none."""
    done = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)"], timeout=timeout)
    main: str | None = None
    security: str | None = None
    for line in done.output.splitlines():
        uri, _, release = line.strip().partition(" ")
        if not uri.startswith(("http:", "https:", "file:", "mirror", "copy:", "ftp:")):
            continue
        if release.endswith("-security") or release.endswith("/updates") or "debian-security" in uri:
            security = security or uri
        elif "debian" in uri:
            main = main or uri
    if main is None:
        raise InfrastructureError(
            "the host's apt configuration names no Debian archive",
            hint="add one to /etc/apt/sources.list.d, or set `archives: {main: ..., security: ...}` in pipeline.yaml",
            log=done.output,
        )
    return Archives(main.rstrip("/"), security.rstrip("/") if security else None)


@dataclass(frozen=True, slots=True)
class Package:
    """A downloaded package: apt has verified ``sha256`` against the signed index."""

    name: str
    version: str
    arch: str
    sha256: str
    path: Path


def suites_of(suite: str) -> tuple[str, ...]:
    """A suite with its updates and security fixes."""
    return (suite, f"{suite}-updates", f"{suite}-security")


@dataclass(frozen=True, slots=True)
class SourcePackage:
    """A downloaded source package: apt has verified every file against the signed index."""

    version: str
    description: Path
    """The ``.dsc``; the files that it names are beside it."""
    files: tuple[Path, ...]


class AptRoot:
    """An isolated apt root for one architecture and a list of suites; with ``sources`` it has source packages too."""

    def __init__(
        self, root: Path, *, arch: str, suites: Sequence[str], archives: Archives, sources: bool = False
    ) -> None:
        self.root = root
        self.arch = arch
        self.suites = tuple(suites)
        self.archives = archives
        self.sources = sources

    @property
    def _conf(self) -> Path:
        return self.root / "apt.conf"

    def _source_lines(self) -> list[str]:
        lines = []
        for suite in self.suites:
            uri = self.archives.main
            if suite.endswith("-security"):
                if self.archives.security is None:
                    continue
                uri = self.archives.security
            for kind in ("deb", "deb-src") if self.sources else ("deb",):
                lines.append(f"{kind} [signed-by={KEYRING}] {uri} {suite} main")
        return lines

    def update(self) -> None:
        """Make the root and fetch the package lists. Raises InfrastructureError with apt's own words."""
        if not KEYRING.exists():
            raise InfrastructureError(
                f"{KEYRING} is not there", hint="apt-get install debian-archive-keyring (it verifies what is fetched)"
            )
        with disk_errors(self.root):
            for sub in ("state/lists/partial", "cache/archives/partial"):
                (self.root / sub).mkdir(parents=True, exist_ok=True)
        write_text(self.root / "status", "")
        write_text(self.root / "sources.list", "\n".join(self._source_lines()) + "\n")
        write_text(self._conf, _CONF.format(root=self.root, arch=self.arch))
        done = run([*self._apt("apt-get"), "update", "--error-on=any"], timeout=UPDATE_TIMEOUT)
        if not done.ok:
            raise InfrastructureError(
                f"cannot fetch the package lists of {', '.join(self.suites)}",
                log=done.output,
                hint="is the network there, and do the archives in /etc/apt still carry these suites?",
            )

    def _apt(self, tool: str) -> list[str]:
        return [tool, "-c", str(self._conf)]

    def versions(self, pattern: str) -> dict[str, str]:
        """Packages whose name matches the regular expression, with their candidate version."""
        names = run([*self._apt("apt-cache"), "pkgnames"], timeout=60).output.split()
        wanted = sorted(n for n in names if re.fullmatch(pattern, n))
        if not wanted:
            return {}
        done = run([*self._apt("apt-cache"), "show", "--no-all-versions", *wanted], timeout=60)
        return {s["Package"]: s["Version"] for s in stanzas(done.output) if "Package" in s and "Version" in s}

    def download(self, packages: Iterable[str]) -> list[Package]:
        """Fetch packages with all that they depend on, and return them sorted by name."""
        argv = [*self._apt("apt-get"), "install", "--download-only", "-y", "-q", *packages]
        return self._fetched(run(argv, timeout=DOWNLOAD_TIMEOUT, env=_ENV), "install", list(packages))

    def download_only(self, package: str) -> Package:
        """Fetch one package and nothing that it depends on."""
        place = self.root / "cache/archives"
        done = run([*self._apt("apt-get"), "download", "-q", package], timeout=DOWNLOAD_TIMEOUT, cwd=place, env=_ENV)
        return next(p for p in self._fetched(done, "download", [package]) if p.name == package)

    def source(self, package: str, into: Path) -> SourcePackage:
        """Fetch the newest source package of that name into an empty directory, and unpack nothing."""
        into.mkdir(parents=True, exist_ok=True)
        argv = [*self._apt("apt-get"), "source", "--download-only", "--only-source", "-q", package]
        done = run(argv, timeout=DOWNLOAD_TIMEOUT, cwd=into, env=_ENV)
        self._must(done, "fetch the source of", [package])
        found = sorted(into.iterdir())
        description = next((path for path in found if path.suffix == ".dsc"), None)
        if description is None:
            raise InfrastructureError(f"apt fetched no source of {package}", log=_end(done.output))
        # A signed .dsc has armour around its fields.
        fields = [block for block in stanzas(description.read_text(errors="replace")) if "Version" in block]
        version = next((block["Version"] for block in fields if "Source" in block), "")
        return SourcePackage(version, description, tuple(path for path in found if path != description))

    def _must(self, done: Completed, verb: str, packages: list[str]) -> None:
        if not done.ok:
            require_space(self.root)
            raise InfrastructureError(
                f"apt cannot {verb} {' '.join(packages[:6])}{' ...' if len(packages) > 6 else ''}"
                f" ({self.arch}, {', '.join(self.suites)}): {done.explain()}",
                log=_end(done.output),
            )

    def _fetched(self, done: Completed, verb: str, packages: list[str]) -> list[Package]:
        self._must(done, verb, packages)
        files = sorted((self.root / "cache/archives").glob("*.deb"))
        with ThreadPoolExecutor() as pool:
            return sorted(pool.map(_describe, files), key=lambda p: p.name)

    def forget(self) -> None:
        """Remove the root with its lists and packages."""
        shutil.rmtree(self.root, ignore_errors=True)


_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}


def _end(output: str) -> str:
    return "\n".join(output.splitlines()[-15:])


def _describe(path: Path) -> Package:
    done = run(["dpkg-deb", "--field", path, "Package", "Version", "Architecture"], timeout=60)
    field = next(iter(stanzas(done.output)), {})
    if not done.ok or "Package" not in field:
        raise InfrastructureError(f"{path.name} is no Debian package", log=done.output)
    return Package(field["Package"], field["Version"], field["Architecture"], file_digest(path), path)


def stanzas(text: str) -> list[dict[str, str]]:
    """Parse deb822 stanzas; continuation lines are dropped, for nothing here needs them."""
    result: list[dict[str, str]] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        fields: dict[str, str] = {m[1]: m[2] for m in re.finditer(r"^([A-Za-z0-9-]+):[ \t]*(.*)$", block, re.M)}
        if fields:
            result.append(fields)
    return result


def extract(packages: Iterable[Package], into: Path) -> None:
    """Unpack packages' files below ``into`` (no maintainer scripts run)."""
    into.mkdir(parents=True, exist_ok=True)

    def one(package: Package) -> None:
        done = run(["dpkg-deb", "--extract", package.path, into], timeout=EXTRACT_TIMEOUT)
        if not done.ok:
            require_space(into)
            raise InfrastructureError(f"cannot unpack {package.path.name}: {done.explain()}", log=_end(done.output))

    with disk_errors(into), ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(one, packages))
