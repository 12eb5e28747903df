# SPDX-License-Identifier: GPL-2.0-or-later
"""The tree's own checkpatch.pl on each mail, in the sandbox.

It is the baseline's script, also where the series changes it. It works on patches, so all that it says is of the series.
"""

from __future__ import annotations

import re
import tempfile
import time
from dataclasses import astuple, dataclass
from pathlib import Path

from kpatch_ci.debian.toolroot import ToolRoot
from kpatch_ci.kernel.checkout import checkout
from kpatch_ci.kernel.make import SRC
from kpatch_ci.model.build import Tree
from kpatch_ci.model.digest import digest
from kpatch_ci.model.each import CheckResult, Finding
from kpatch_ci.model.series import Patch
from kpatch_ci.model.status import Status
from kpatch_ci.process import Completed, run
from kpatch_ci.store.artifacts import ArtifactStore

NAME = "checkpatch"
SCRIPT = "scripts/checkpatch.pl"
TIMEOUT = 300.0
MAIL = "/mail/patch"
KIND = "checkpatch"
VERSION = 1
NO_HISTORY = ("UNKNOWN_COMMIT_ID",)
NO_ADDRESS = ("NO_AUTHOR_SIGN_OFF", "FROM_SIGN_OFF_MISMATCH")
_FINDING = re.compile(
    r"^(?P<severity>ERROR|WARNING|CHECK):(?P<kind>[A-Z0-9_]+): (?P<text>.*(?:\n(?!#|ERROR:|WARNING:|CHECK:|total:|\s*$).*)*)"
    r"(?:\n#(?P<mail>\d+):(?: FILE: (?P<path>.+?):(?P<line>\d+):)?[ \t]*(?:\n(?P<source>[+ -].*|.+))?)?",
    re.M,
)
_TOTAL = re.compile(r"^total: (\d+) errors?, (\d+) warnings?,(?: (\d+) checks?,)? \d+ lines? checked$", re.M)


@dataclass(frozen=True, slots=True)
class Job:
    """Which patches are checked with which tree's script."""

    tools: ToolRoot
    tree: Tree
    patches: tuple[Patch, ...]
    strict: bool = False

    @property
    def key(self) -> str:
        """Digest of what the findings are a function of."""
        mails = [[digest(mail_of(p).decode("latin-1")), _ignored(p)] for p in self.patches]
        return digest([KIND, VERSION, self.tools.fingerprint, self.tree.tree_id, mails, self.strict])


def find_checkpatch(store: ArtifactStore, job: Job) -> CheckResult | None:
    """What was found before from the same inputs."""
    artifact = store.get(KIND, job.key)
    if artifact is None:
        return None
    meta = artifact.meta
    findings = tuple(Finding(*row) for row in meta["findings"])
    return CheckResult(
        NAME, Status.PASSED, findings, len(job.patches), seconds=meta["seconds"], cached=True, key=job.key
    )


def checkpatch(cache: Path, store: ArtifactStore, job: Job) -> CheckResult:
    """What checkpatch says of each patch's mail. Where it cannot do its work, the result is an error that says why."""
    began = time.monotonic()
    source = checkout(cache, job.tree)
    findings: list[Finding] = []
    for number, patch in enumerate(job.patches, 1):
        done = _run(job, source, patch)
        found = parse(done.output, number)
        if found is None:
            reason = f"checkpatch did not get through patch {number} `{patch.subject}`: {done.explain()}"
            return CheckResult(NAME, Status.ERROR, reason=reason, log_tail=done.output, key=job.key)
        findings += found
    seconds = round(time.monotonic() - began, 2)
    meta = {"findings": [astuple(f) for f in findings], "seconds": seconds}
    store.put(KIND, job.key, lambda _: meta)
    return CheckResult(NAME, Status.PASSED, tuple(findings), len(job.patches), seconds=seconds, key=job.key)


def _run(job: Job, source: Path, patch: Patch) -> Completed:
    with tempfile.TemporaryDirectory(prefix="kpatch-ci-mail-") as place:
        Path(place, "patch").write_bytes(mail_of(patch))
        options = ["--root=.", "--color=never", "--show-types", f"--ignore={','.join(_ignored(patch))}"]
        options += ["--strict"] if job.strict else []
        argv = job.tools.argv(["perl", SCRIPT, *options, MAIL], mounts=[(source, SRC), (Path(place), "/mail")], cwd=SRC)
        return run(argv, timeout=TIMEOUT)


def _ignored(patch: Patch) -> list[str]:
    """What cannot be judged here: a commit without the history, and an author whose address an archive has masked."""
    return [*NO_HISTORY, *(NO_ADDRESS if "@" not in patch.email else ())]


def mail_of(patch: Patch) -> bytes:
    """A mail as checkpatch wants it: what intake read of it, transfer encoding and archive's layout undone."""
    author = [f"From: {patch.author} <{patch.email}>"] if patch.email else []
    head = [*author, f"Subject: {f'{patch.prefix} {patch.subject}'.strip()}"]
    text = "\n".join([*head, "", patch.message, "---", "", ""])
    return text.encode("utf-8", "surrogateescape") + patch.diff


def parse(said: str, patch: int) -> tuple[Finding, ...] | None:
    """Findings of one run; None where it did not get to its end, or says another number of them than there are."""
    total = _TOTAL.search(said)
    found = tuple(_finding(m, patch) for m in _FINDING.finditer(said))
    counts = [sum(f.severity == s for f in found) for s in ("error", "warning", "check")]
    if total is None or [int(n or 0) for n in total.groups()] != counts:
        return None
    return found


def _finding(m: re.Match[str], patch: int) -> Finding:
    source = (m["source"] or "").strip("\n")
    text = " ".join(m["text"].split())
    return Finding(m["path"] or "", int(m["line"] or 0), m["severity"].lower(), m["kind"], text, source, patch)
