# SPDX-License-Identifier: GPL-2.0-or-later
"""The two families of exceptions.

    KpatchError
    +-- UserError            your input: what, where, and what would be right   (exit code 2)
    +-- InfrastructureError  the machine's fault: what, and what to do about it (exit code 3)

A patch that does not apply, build, boot or finish is neither: it is a result.
"""

from __future__ import annotations


class KpatchError(Exception):
    """Root of both families; ``exit_code`` is what the command line returns."""

    exit_code = 3


class UserError(KpatchError):
    """Input that cannot be used. ``where`` is file:line or an option, ``expected`` what would be right."""

    exit_code = 2

    def __init__(self, what: str, *, where: str | None = None, expected: str | None = None) -> None:
        self.what, self.where, self.expected = what, where, expected
        text = f"{where}: {what}" if where else what
        super().__init__(f"{text} ({expected})" if expected else text)


class UserErrors(UserError):
    """Every error of one input at once, in the order of its lines."""

    def __init__(self, errors: list[UserError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(e) for e in errors))


class InfrastructureError(KpatchError):
    """This machine cannot do it now. ``hint`` is what to do, ``log`` the tail of what was said."""

    exit_code = 3

    def __init__(self, what: str, *, hint: str | None = None, log: str | None = None) -> None:
        self.what, self.hint, self.log = what, hint, log
        parts = [what]
        if log:
            parts.append(log.rstrip())
        if hint:
            parts.append(f"what to do: {hint}")
        super().__init__("\n".join(parts))
