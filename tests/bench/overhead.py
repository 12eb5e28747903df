# SPDX-License-Identifier: GPL-2.0-or-later
"""Our own overhead: build and boot stages against the same make and QEMU commands run bare, side by side in one run.

    ./kpatch-ci test --unit >/dev/null; .venv/bin/python tests/bench/overhead.py [ARCH]

Needs an idle machine and some ten minutes: it compiles one kernel twice. Prints ratios; nothing is asserted.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from kpatch_ci.config.load import Selection, load_config
from kpatch_ci.guest import qemu
from kpatch_ci.guest.files import make_files
from kpatch_ci.guest.image import make_image
from kpatch_ci.guest.runner import write_job
from kpatch_ci.kernel.build import Builder, BuildRequest
from kpatch_ci.kernel.checkout import checkout
from kpatch_ci.kernel.kconfig import merged, read_fragments
from kpatch_ci.kernel.make import FRAGMENT, OUT, PINNED, SRC
from kpatch_ci.model.arch import ARCHES
from kpatch_ci.pipeline.session import Session, open_session
from kpatch_ci.process import run
from kpatch_ci.store.artifacts import ArtifactStore

PROJECT = Path(__file__).resolve().parents[2]
BOOTS = 5


def bare_build(session: Session, request: BuildRequest, out: Path) -> float:
    """make allnoconfig and make, in the same sandbox, and nothing else."""
    source = checkout(session.cache, session.tree)
    out.mkdir()
    (out / FRAGMENT).write_text(merged(request.config))
    cross = [f"CROSS_COMPILE={request.arch.cross_compile}"] if request.arch.cross_compile else []
    make = ["make", f"-j{session.jobs}", "-C", SRC, f"O={OUT}", f"ARCH={request.arch.kernel_arch}", *cross]
    started = time.monotonic()
    for targets in ([f"KCONFIG_ALLCONFIG={OUT}/{FRAGMENT}", "allnoconfig"], list(request.arch.make_targets)):
        argv = session.tools.argv([*make, *targets], mounts=[(source, SRC)], write_mounts=[(out, OUT)], env=PINNED)
        done = run(argv, timeout=3600, log=out / "log")
        assert done.ok, done.output
    return time.monotonic() - started


def main(name: str) -> None:
    """Measure one architecture."""
    config = load_config(PROJECT / "pipeline.yaml", Selection(arches=(name,)))
    scratch = Path(tempfile.mkdtemp(prefix="kpatch-ci-bench-"))
    try:
        session = open_session(config, jobs=2, logs=scratch / "logs", say=print)
        arch, machine = ARCHES[name], config.machines[0]
        request = BuildRequest(
            "baseline",
            arch,
            session.tree,
            session.tree.tree_id,
            read_fragments(config.fragments(name), session.tree.release),
        )
        bare = bare_build(session, request, scratch / "out")
        source_cache = scratch / "cache"
        (source_cache / "src").mkdir(parents=True)
        shutil.move(checkout(session.cache, session.tree), source_cache / "src")
        builder = Builder(
            source_cache, ArtifactStore(scratch / "store"), session.tools, jobs=session.jobs, timeout=3600
        )
        started = time.monotonic()
        build = builder.build(request, scratch / "logs")
        ours = time.monotonic() - started
        shutil.move(source_cache / "src" / request.tree_id[:16], session.cache / "src")
        print(f"build {name}: bare {bare:.1f} s, stage {ours:.1f} s, ratio {ours / bare:.3f}")

        image = make_image(
            arch,
            session.cache,
            session.store,
            session.tools,
            archives=session.archives,
            agent_sources=session.agent_sources,
        )
        guests = session.guests()
        guests.store = ArtifactStore(scratch / "boots")
        files = make_files(build, image, machine, guests.store, session.tools)
        bare_boots, our_boots = 0.0, 0.0
        for seed in range(1, BOOTS + 1):
            work = scratch / f"boot-{seed}"
            work.mkdir()
            write_job(work, "")
            argv = qemu.plain_argv(machine, seed, dtb=files.dtb is not None)
            argv = [
                a.replace("stdio,id=con,mux=on,signal=off", "file,id=con,path=/kpci/work/console.log") for a in argv
            ]
            argv = [a.replace("sleep=on", "sleep=off") for a in argv]
            argv[argv.index("-monitor") + 1] = "none"
            command = session.tools.argv(argv, mounts=files.mounts(), write_mounts=[(work, qemu.WORK)])
            bare_boots += run(command, timeout=300).seconds
            started = time.monotonic()
            guests.boot(build, image, machine, seed, scratch / "logs")
            our_boots += time.monotonic() - started
        ratio = our_boots / bare_boots
        print(
            f"boot {name}: bare {bare_boots / BOOTS:.2f} s, stage with snapshot {our_boots / BOOTS:.2f} s, ratio {ratio:.3f}"
        )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "arm64")
