# SPDX-License-Identifier: GPL-2.0-or-later
"""What a workload is: options that make cases, the steps of a job, and a pure parser of its output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kpatch_ci.model.workload import Case, Metric, Scalar


class ParseError(Exception):
    """Output that gives no figure; ``reason`` says why, in words for people. Never leaves this package."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Label(StrEnum):
    """When an option shows in the case label."""

    ALWAYS = "always"
    GIVEN = "given"
    """Only where the configuration names it."""
    CHANGED = "changed"
    """Only where it differs from the default."""
    NEVER = "never"


class Kind(StrEnum):
    """What an option's value may look like."""

    CHOICE = "choice"
    INTEGER = "integer"
    SIZE = "size"
    """A number of bytes as dd writes it: ``512``, ``4k``, ``1M``."""
    FLAGS = "flags"
    """Choices joined by ``+`` (a comma separates settings in a label)."""
    PATH = "path"
    """An absolute path in the guest."""


@dataclass(frozen=True, slots=True)
class Option:
    """One key that a workload takes in pipeline.yaml.

    Its ``label`` tells settings (which show in the case label) from params (which never do). A ``default`` of None
    means that the workload's ``complete`` derives it, or that the option stays away.
    """

    name: str
    kind: Kind
    help: str
    default: Scalar | None = None
    choices: tuple[str, ...] = ()
    minimum: int = 1
    maximum: int = 1_000_000
    label: Label = Label.NEVER

    @property
    def valid(self) -> str:
        """The valid values, in words."""
        match self.kind:
            case Kind.CHOICE:
                return "one of " + ", ".join(self.choices)
            case Kind.INTEGER:
                return f"a whole number from {self.minimum} to {self.maximum}"
            case Kind.SIZE:
                return "bytes such as 512, 4k or 1M"
            case Kind.FLAGS:
                return "one or more of " + ", ".join(self.choices) + ", joined by +"
        return "an absolute path"


@dataclass(frozen=True, slots=True)
class Step:
    """One directive of a job, for the guest's agent: its name and its fields."""

    directive: str
    fields: tuple[str, ...]


Values = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Workload:
    """A benchmark. One constant in a file of its own and one line in table.py.

    ``metrics``: its own figures, the first is the one that a verdict rests on.
    ``steps``: the directives of one replicate; at least one of them is ``run``, all ``run``s are of one command.
    ``parse``: output of the ``run`` step (stdout and stderr) -> metric name -> value; raises ParseError.
    ``complete``: given values and defaults -> the derived values to add; raises ValueError with what is wrong.
    ``real_time``: parameters that are others where the guest's clock is the host's, whatever the configuration says.
    """

    name: str
    metrics: tuple[Metric, ...]
    options: tuple[Option, ...]
    steps: Callable[[Case], tuple[Step, ...]]
    parse: Callable[[str, Case], dict[str, float]]
    complete: Callable[[Values], Values] = lambda _: {}
    real_time: Values = field(default_factory=dict)

    def runs(self, case: Case) -> int:
        """How often a replicate of the case runs the measured command."""
        return sum(step.directive == "run" for step in self.steps(case))

    @property
    def settings(self) -> tuple[Option, ...]:
        """Options that may show in a case label."""
        return tuple(o for o in self.options if o.label is not Label.NEVER)

    @property
    def params(self) -> tuple[Option, ...]:
        """Options that never show in a case label."""
        return tuple(o for o in self.options if o.label is Label.NEVER)


TIMEOUT = Option(
    "timeout_s",
    Kind.INTEGER,
    "how long any command of the job may take, in seconds of the guest's clock",
    default=120,
    maximum=86_400,
)
"""Every workload takes it."""


def text(case: Case, key: str) -> str:
    """A setting or parameter, as text."""
    return str(case.get(key))


def number(case: Case, key: str) -> int:
    """A setting or parameter that is a whole number."""
    return int(case.get(key))


def last_words(output: str) -> str:
    """The last line of an output that gives no figure, to go behind a reason; empty where there is none."""
    last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")
    return f": {last[:200]}" if last else ""
