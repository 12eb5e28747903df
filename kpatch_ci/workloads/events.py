# SPDX-License-Identifier: GPL-2.0-or-later
"""What came over the result channel -> a Replicate. Pure; every way in which a run can end has a reason in words.

FAILED: the kernel under test did not carry it through: the workload, mkfs or mount ended badly, or the channel ends too
early. ERROR: it is ours: the rest of the job's preparation, the protocol, or output that gives no figure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import fmean

from kpatch_ci.model.status import Mode, Status
from kpatch_ci.model.workload import CONTEXT_SWITCHES, COUNTERS, MIGRATIONS, MIGRATIONS_PER_1000, Case, Replicate, Seed
from kpatch_ci.workloads.types import ParseError, Workload, last_words

Event = Mapping[str, object]
RUSAGE = ("utime_us", "stime_us", "minflt", "majflt", "nvcsw", "nivcsw")
_TAIL_LINES = 20


class _Problem(Exception):
    def __init__(self, status: Status, reason: str) -> None:
        self.status, self.reason = status, reason
        super().__init__(reason)


def parse_events(  # noqa: PLR0917
    text: str, workload: Workload, case: Case, seed: Seed, mode: Mode, name: str | None = None
) -> Replicate:
    """The replicate that the result channel's ``text`` tells of; never raises for anything in ``text``.

    ``name``: the plan's name where it is not the workload's own (``dd-slow``). Lines before the event ``job`` (facts,
    ready) are passed over. Samples: the workload's own metrics, the counters that the guest could read,
    and migrations per 1000 context switches; where the workload runs its command several times, the means over the runs.
    """
    events: list[Event] = []
    status, reason, samples, extra = Status.PASSED, "", dict[str, float](), dict[str, object]()
    try:
        _read(text, events)
    except _Problem as e:
        status, reason = e.status, e.reason
    output = _output(events)
    if status is Status.PASSED:
        try:
            samples, extra = _measured(events, output, workload, case, seed)
        except _Problem as e:
            status, reason = e.status, e.reason
    return Replicate(
        workload=name or workload.name,
        case=case.label,
        seed=seed,
        status=status,
        mode=mode,
        samples=samples,
        extra=extra,
        reason=reason,
        log_tail="\n".join(output.splitlines()[-_TAIL_LINES:]),
    )


def _read(text: str, events: list[Event]) -> None:
    """Appends the objects in ``text`` to ``events`` as far as they can be read."""
    lines = text.splitlines()
    for i, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            events.append(event)
        elif i == len(lines):
            raise _Problem(Status.FAILED, f"the guest stopped amid a line of its results, after {_last(events)}")
        else:
            raise _Problem(Status.ERROR, f"line {i} of the result channel is not the agent's: {line[:80]!r}")


def _last(events: list[Event]) -> str:
    return f"event `{events[-1]['event']}`" if events else "nothing at all"


def _named(events: list[Event], name: str) -> list[Event]:
    return [e for e in events if e["event"] == name]


def _output(events: list[Event]) -> str:
    """The last command's output, with a mark where the agent cut its middle out."""
    found = _named(events, "output")
    if not found:
        return ""
    tail = found[-1].get("tail")
    return str(found[-1].get("text", "")) + (f"\n[... cut ...]\n{tail}" if tail is not None else "")


def _measured(
    events: list[Event], output: str, workload: Workload, case: Case, seed: Seed
) -> tuple[dict[str, float], dict[str, object]]:
    """Samples and extra; raises _Problem."""
    runs, counters = _named(events, "run"), _named(events, "counters")
    _check_end(events, output, runs, workload)
    started = [e.get("seed") for e in _named(events, "job")]
    if started != [seed.run]:
        raise _Problem(Status.ERROR, f"the guest ran under run seeds {started}, not under {seed.run}")
    expected = workload.runs(case)
    if not len(runs) == len(counters) == expected:
        what = f"{len(runs)} measured runs and {len(counters)} sets of counters"
        wanted = "one each is" if expected == 1 else f"{expected} each are"
        raise _Problem(Status.ERROR, f"the result channel has {what} where {wanted} expected")
    if any(e.get("truncated") for e in _named(events, "output")):
        raise _Problem(Status.ERROR, f"{workload.name} printed more than the agent keeps: {_first_line(output)}")
    each = [_one(said, count, workload, case) for said, count in zip(_outputs(events), counters, strict=True)]
    samples = {name: fmean(one[name] for one in each) for name in each[0] if all(name in one for one in each)}
    switches, migrations = samples.get(CONTEXT_SWITCHES.name), samples.get(MIGRATIONS.name)
    if switches and migrations is not None:
        samples[MIGRATIONS_PER_1000.name] = 1000 * migrations / switches
    return samples, _extra(runs, counters, each)


def _one(output: str, counters: Event, workload: Workload, case: Case) -> dict[str, float]:
    """What one measured command gave; raises _Problem."""
    try:
        samples = workload.parse(output, case)
    except ParseError as e:
        raise _Problem(Status.ERROR, e.reason) from None
    delta = _mapping(counters.get("delta"))
    return samples | {m.name: _number(delta[m.name], m.name) for m in COUNTERS if m.name in delta}


def _outputs(events: list[Event]) -> list[str]:
    """What each measured command printed, in order; empty for one that has no output event."""
    found, last = [], list[Event]()
    for event in events:
        if event["event"] == "output":
            last = [event]
        elif event["event"] == "run":
            found.append(_output(last))
            last = []
    return found


def _check_end(events: list[Event], output: str, runs: list[Event], workload: Workload) -> None:
    """Did the job come to its end, and the measured command with it?"""
    ends = _named(events, "end")
    for run in runs:
        ending = _ending(run)
        if ending:
            raise _Problem(Status.FAILED, f"{workload.name} {ending}{last_words(output)}")
    if not ends:
        what = "the guest stopped before the end of its job (crash, hang or time limit: see the console)"
        raise _Problem(Status.FAILED, f"{what}; the last that it said: {_last(events)}")
    if ends[-1].get("status") != "ok":
        reason = str(ends[-1].get("reason") or "the guest's agent failed without a reason")
        status = Status.FAILED if reason.startswith(("prep ", "mount ")) else Status.ERROR
        # mkfs says first what is wrong, and then how to use it.
        raise _Problem(status, reason + (f": {_first_line(output)}" if output else ""))


def _ending(run: Event) -> str:
    """How a command ended badly, in words; empty where it did not."""
    if run.get("timed_out"):
        elapsed = run.get("elapsed_ns")
        after = f" after {elapsed / 1e9:.0f} s of the guest's clock" if isinstance(elapsed, int) else ""
        return f"did not finish in time (ended{after})"
    if run.get("signal"):
        return f"was killed by signal {run['signal']}"
    if run.get("exit") != 0:
        return f"ended with exit status {run.get('exit')}"
    return ""


def _extra(runs: list[Event], counters: list[Event], each: Sequence[Mapping[str, float]]) -> dict[str, object]:
    """What explains the samples: times, resource usage, the other counters, residencies: totals of all runs; the counters' last hash.

    Frequency over time is that of the first run. Of several runs also what each of them gave.
    """
    own = {m.name for m in COUNTERS}
    deltas = [_mapping(one.get("delta")) for one in counters]
    total = {
        "argv": runs[0].get("argv"),
        "elapsed_ns": _total([run.get("elapsed_ns") for run in runs]),
        "rusage": _total([{key: run[key] for key in RUSAGE if key in run} for run in runs]),
        "counters": _total([{key: value for key, value in delta.items() if key not in own} for delta in deltas]),
        "time_in_state": _total([_mapping(one.get("time_in_state")) for one in counters]),
        "cpu_times": _total([_mapping(one.get("cpu_times")) for one in counters]),
        "frequency": _mapping(counters[0].get("frequency")),
        "schedstat_sum": counters[-1].get("schedstat_sum"),
    }
    return total if len(each) == 1 else {**total, "iterations": {key: [one[key] for one in each] for key in each[0]}}


def _total(values: Sequence[object]) -> object:
    """The sum of numbers, or of mappings key by key. What only some of them have, or what is no number, is the first's."""
    first = values[0]
    if len(values) == 1:
        return first
    if all(isinstance(value, dict) for value in values):
        maps = [_mapping(value) for value in values]
        return {key: _total([one[key] for one in maps if key in one]) for key in maps[0]}
    numbers = [value for value in values if isinstance(value, int | float)]
    return sum(numbers) if len(numbers) == len(values) else first


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST:
        raise _Problem(Status.ERROR, f"counter {name} is {str(value)[:40]}")
    return float(value)


_LARGEST = 2**64


def _first_line(output: str) -> str:
    return next((line for line in output.splitlines() if line.strip()), "")
