# SPDX-License-Identifier: GPL-2.0-or-later
"""Small run results of every kind: made by hand, hostile where a patch or a guest could be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kpatch_ci.model.boot import BootResult
from kpatch_ci.model.build import BuildResult, Diagnostic, Proof
from kpatch_ci.model.comparison import Comparison
from kpatch_ci.model.each import CheckResult, EachResult, Finding, PatchBuild
from kpatch_ci.model.result import ArchResult, ArmResult, RunResult, SeriesResult, StageTime
from kpatch_ci.model.series import AppliedPatch, ApplyMethod, ApplyResult, HunkFailure
from kpatch_ci.model.status import Mode, Status, Verdict
from kpatch_ci.model.workload import Replicate, Seed

SEEDS = (Seed(1, 1), Seed(1, 2), Seed(2, 1))
STORE = Path("/nowhere/store")
HOSTILE = "\x1b[31mfoo.c:3:\x00 error: ']]>' <b>[bold]x[/bold]</b> & `y` \udcff | caf\u00e9 \u2018q\u2019"
"""Escape sequence, NUL, lone surrogate, XML, rich markup, markdown."""


def build(arm: str = "baseline", arch: str = "arm64", **changes: object) -> BuildResult:
    """A build that passed."""
    made = BuildResult(
        status=Status.PASSED,
        arm=arm,
        arch=arch,
        tree_id=f"tree-{arm}",
        key=f"key-{arm}",
        seconds=61.5,
        objects=1234 if arm == "baseline" else 7,
        cached=arm == "baseline",
        release="6.1.140",
        image_digest=f"image-{arm}-{arch}",
        config_digest="config",
        log=STORE / arch / arm / "build.log",
        warnings=(Diagnostic("kernel/old.c", 3, "warning", "unused variable 'a'", "-Wunused-variable"),),
        reproduce=f"make ARCH={arch} {arm}",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def boot(seed: int = 1, arm: str = "baseline", arch: str = "arm64", **changes: object) -> BootResult:
    """A boot that passed."""
    made = BootResult(
        status=Status.PASSED,
        arm=arm,
        arch=arch,
        machine=f"{arch}-machine",
        boot_seed=seed,
        key=f"boot-{seed}-{arm}",
        seconds=4.25,
        cached=False,
        facts={"cpus": 8, "release": "6.1.140", "features": ["A", "B"], "sysctls": ["many"]},
        console=STORE / arch / arm / f"console-{seed}",
        qemu_argv=("qemu-system-aarch64", "-icount", "shift=0"),
        reproduce=f"./kpatch-ci boot --arch {arch} --seed {seed}",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def arm_result(arm: str, arch: str = "arm64", **changes: object) -> ArmResult:
    """An arm with two boots and a replicate a seed."""
    runs = tuple(Replicate("hackbench", "groups=8", s, Status.PASSED, Mode.DETERMINISTIC, cached=True) for s in SEEDS)
    made = ArmResult(build(arm, arch), (boot(1, arm, arch), boot(2, arm, arch)), runs)
    return replace(made, **changes)  # type: ignore[arg-type]


def comparison(workload: str = "hackbench", **changes: object) -> Comparison:
    """One case of hackbench that got 10 % better."""
    made = Comparison(
        workload=workload,
        case="groups=8",
        metric="time",
        unit="s",
        better="lower",
        mode=Mode.DETERMINISTIC,
        seeds=SEEDS,
        baseline=(1.0, 2.0, 3.0),
        patched=(0.9, 1.8, 2.7),
        change_percent=10.0,
        ci_percent=(8.25, 12.125),
        ci_method="95 % bootstrap, clustered by boot",
        p_value=0.00003,
        p_adjusted=0.0421,
        verdict=Verdict.IMPROVED,
        reason="the whole interval is beyond the threshold",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def comparisons(verdict: Verdict = Verdict.IMPROVED, change: float | None = 10.0) -> tuple[Comparison, ...]:
    """hackbench: its primary figure, a case, a counter; dd: its primary figure alone, inconclusive."""
    return (
        comparison(case="all", primary=True, verdict=verdict, change_percent=change),
        comparison(
            "dd",
            case="all",
            primary=True,
            metric="throughput",
            unit="MB/s",
            better="higher",
            verdict=Verdict.INCONCLUSIVE,
        ),
        comparison(),
        comparison(
            metric="context_switches",
            unit="count",
            baseline=(123456.0, 123457.0, 1e9),
            case="groups=8,mode=process-pipes",
        ),
    )


def applied(**changes: object) -> ApplyResult:
    """A series that applies as mailed."""
    patch = AppliedPatch(
        "sched/fair: change it", "0001.eml", Status.PASSED, ApplyMethod.AS_MAILED, (3,), "tree-patched"
    )
    made = ApplyResult(Status.PASSED, ApplyMethod.AS_MAILED, "tree-patched", (patch,), ("kernel/sched/fair.c",))
    return replace(made, **changes)  # type: ignore[arg-type]


def arch_result(arch: str = "arm64", **changes: object) -> ArchResult:
    """An architecture where all went well."""
    made = ArchResult(
        arch=arch,
        machine=f"{arch}-machine",
        apply=applied(),
        baseline=arm_result("baseline", arch),
        patched=arm_result("patched", arch),
        new_warnings=(Diagnostic("kernel/sched/fair.c", 77, "warning", "unused variable 'b'", "-Wunused-variable"),),
        proofs=(Proof("sched_feature", "SCALE_WAKEUP_GRAN", in_patched=True, in_baseline=False),),
        comparisons=comparisons(),
        reproduce=f"./kpatch-ci run --series S --arch {arch}",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def apply_failed(arch: str = "arm64") -> ArchResult:
    """A patch that finds no place."""
    hunk = HunkFailure("kernel/sched/core.c", 12, "@@ -12,3 +12,4 @@", "int a;", "long a;", "context differs")
    patch = AppliedPatch("core: it", "0001.eml", Status.FAILED, None, failures=(hunk,))
    bad = ApplyResult(Status.FAILED, None, None, (patch,), reason="hunk 1 of kernel/sched/core.c finds no place")
    return arch_result(
        arch,
        apply=bad,
        patched=None,
        new_warnings=(),
        proofs=(),
        comparisons=(),
        status=Status.FAILED,
        reason=bad.reason,
    )


def build_failed(arch: str = "arm64", arm: str = "patched") -> ArchResult:
    """A build that ends in an error, with a log that nobody would want in a terminal."""
    broken = build(
        arm,
        arch,
        status=Status.FAILED,
        cached=False,
        reason="error: [red]no such field[/red]",
        log_tail=f"CC foo.o\n{HOSTILE}\n",
    )
    bad = ArmResult(broken)
    arms = {"baseline": arm_result("baseline", arch), "patched": arm_result("patched", arch)} | {arm: bad}
    return arch_result(
        arch,
        baseline=arms["baseline"],
        patched=arms["patched"],
        new_warnings=(),
        proofs=(),
        comparisons=(),
        status=Status.FAILED,
        reason="the build failed",
    )


def boot_failed(arch: str = "arm64") -> ArchResult:
    """A guest that panics under its second boot seed."""
    panic = boot(
        2, "patched", arch, status=Status.FAILED, reason="kernel panic", log_tail="Kernel panic - not syncing: Oops"
    )
    bad = arm_result("patched", arch, boots=(boot(1, "patched", arch), panic), replicates=())
    nothing = {
        "seeds": (),
        "baseline": (),
        "patched": (),
        "change_percent": None,
        "ci_percent": None,
        "ci_method": "none",
    }
    skipped = {"p_value": None, "p_adjusted": None, "verdict": Verdict.SKIPPED, "reason": "no pair of runs to compare"}
    unmeasured = tuple(replace(c, **nothing, **skipped) for c in comparisons())  # type: ignore[arg-type]
    return arch_result(
        arch, patched=bad, comparisons=unmeasured, status=Status.FAILED, reason="the patched kernel does not boot"
    )


def replicate_failed(arch: str = "arm64") -> ArchResult:
    """A workload that died in one patched replicate, and the figure that is missing for it."""
    dead = Replicate(
        "hackbench",
        "groups=8",
        SEEDS[1],
        Status.FAILED,
        Mode.DETERMINISTIC,
        reason="exit 1",
        log_tail="hackbench: fork failed",
    )
    patched = arm_result("patched", arch)
    lost = comparison(
        case="all",
        primary=True,
        verdict=Verdict.FAILED,
        change_percent=None,
        ci_percent=None,
        p_value=None,
        p_adjusted=None,
        patched=(0.9, float("nan"), 2.7),
        reason="1 of 3 replicates failed",
    )
    return arch_result(
        arch,
        patched=replace(patched, replicates=(*patched.replicates[:2], dead)),
        comparisons=(lost,),
        status=Status.FAILED,
        reason="hackbench failed",
    )


def regressed(arch: str = "arm64") -> ArchResult:
    """A primary figure that got worse."""
    return arch_result(
        arch,
        comparisons=comparisons(Verdict.REGRESSED, -4.5),
        status=Status.FAILED,
        reason="hackbench regressed by 4.5 %",
    )


def patch_builds(arch: str = "arm64", *, broken: bool = True) -> EachResult:
    """Three patches: the first newly warns, the second does not build (where ``broken``), the third mends it."""
    status = Status.FAILED if broken else Status.PASSED
    warning = Diagnostic("kernel/a.c", 7, "warning", "unused variable 'c'", "-Wunused-variable", "f")
    error = Diagnostic("kernel/a.c", 9, "error", "'x' undeclared")
    return EachResult(
        arch,
        (
            PatchBuild(1, "a: one", "t1", Status.PASSED, 10.0, 3, new_warnings=(warning,)),
            PatchBuild(
                2, f"b: {HOSTILE}", "t2", status, 5.0, 2, errors=(error,), reason="make: exit 2", log_tail="CC a.o"
            ),
            PatchBuild(3, "c: three", "t3", Status.PASSED, 8.0, 1, cached=True),
        ),
    )


def checks() -> tuple[CheckResult, ...]:
    """W=1 with a finding, sparse that could not work, checkpatch with one of a mail."""
    return (
        CheckResult(
            "W=1",
            Status.PASSED,
            (Finding("kernel/a.c", 3, "warning", "-Wmissing-prototypes", f"no prototype {HOSTILE}"),),
            4,
            ("lib/b",),
        ),
        CheckResult("checkpatch", Status.PASSED, (Finding("", 0, "error", "NO_SIGN", "no sign-off", "", 2),), 3),
        CheckResult("sparse", Status.ERROR, reason="make checked nothing", log_tail="make: ***"),
    )


def not_bisectable(arch: str = "arm64") -> ArchResult:
    """A series whose end is well and whose middle does not build, with checkers asked."""
    each = patch_builds(arch)
    return arch_result(arch, each=each, checks=checks()[:2], status=Status.FAILED, reason=each.reason)


def skipped(arch: str = "arm64") -> ArchResult:
    """Nothing was done."""
    none = ApplyResult(Status.SKIPPED, None, None, (), reason="no tree")
    return arch_result(
        arch,
        apply=none,
        baseline=None,
        patched=None,
        new_warnings=(),
        proofs=(),
        comparisons=(),
        status=Status.SKIPPED,
        reason="not asked for",
    )


def run_result(*arches: tuple[str, ArchResult], **changes: object) -> RunResult:
    """A run of one-architecture series, each under its name; without any: every kind of series."""
    found = arches or everything()
    made = RunResult(
        run_id="2024-05-06-abc",
        started="2024-05-06T07:08:09.123456+00:00",
        seconds=321.5,
        profile="default",
        mode=Mode.DETERMINISTIC,
        tree={
            "label": "debian:6.1",
            "release": "6.1.140",
            "commit": "c0ffee",
            "tree_id": "7ree",
            "origin": "linux 6.1.140-1",
        },
        fingerprint={
            "qemu": {"version": "10.0.2", "argv": ["-icount", "shift=0,sleep=off"]},
            "host_cpu": "some CPU",
            "uptime": float("inf"),
        },
        series=tuple(SeriesResult(name, f"Title of {name}", "", (arch,)) for name, arch in found),
        thresholds={"threshold_percent.hackbench": 1.0, "threshold_percent.dd": 2.0},
        stages=(StageTime("build", "key-baseline", True, 0.1, "same inputs", Status.PASSED),),
        command="./kpatch-ci run -c pipeline.yaml --seeds 12 --output results/somewhere-with-a-long-name",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def everything() -> tuple[tuple[str, ArchResult], ...]:
    """One series of each kind."""
    return (
        ("passes", arch_result()),
        ("no-apply", apply_failed()),
        ("no-build", build_failed()),
        ("no-boot", boot_failed()),
        ("dies", replicate_failed()),
        ("worse", regressed()),
        ("half-way", not_bisectable()),
        ("skipped", skipped()),
    )
