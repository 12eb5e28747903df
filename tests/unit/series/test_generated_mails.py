# SPDX-License-Identifier: GPL-2.0-or-later
"""Intake against generated mails: it never crashes, never hangs, and never loses a hunk of a mail that is whole.

A few hundred mails a property by default. ``KPATCH_CI_MAILS=100000`` feeds that many through each.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kpatch_ci.model.errors import UserError
from kpatch_ci.model.series import Intake, Patch
from kpatch_ci.series.archive import unpack
from kpatch_ci.series.forms import read_letters
from kpatch_ci.series.intake import draft_of
from kpatch_ci.series.letter import Source
from kpatch_ci.series.order import arrange
from tests.fakes.damage import damaged
from tests.fakes.generated_mails import mail, mbox

EXAMPLES = int(os.environ.get("KPATCH_CI_MAILS", "150"))
SECONDS = 5.0
"""CPU time that a mail of some kilobytes may take: a hundred times what the slowest was seen to need."""
MANY = EXAMPLES > 1000
chances = st.randoms(use_true_random=MANY)
"""Few mails: hypothesis makes each choice and shrinks what fails. Many: a seed a mail, which is twice as quick."""
generated = settings(
    max_examples=EXAMPLES,
    deadline=None,  # of wall time, and so of the machine's load: the tests look at CPU time themselves
    derandomize=not MANY,  # the same mails in every run of the unit tests
    database=None,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def read(data: bytes) -> tuple[tuple[Patch, ...], Intake]:
    """What read_series makes of a file with this content."""
    letters = [letter for file in unpack(Source(Path("lamp.eml"), data)) for letter in read_letters(file)]
    return arrange([draft_of(letter) for letter in letters])


def read_or_refuse(data: bytes) -> None:
    """Read it; a UserError with a place or a remedy is an answer, anything else is a bug."""
    began = time.process_time()
    said = ""
    patches: tuple[Patch, ...] = ()
    try:
        patches, account = read(data)
    except UserError as error:
        said = str(error).strip()
    else:
        assert len(account.taken) == len(patches)
    assert said or patches
    assert all(patch.diff.endswith(b"\n") and patch.paths for patch in patches)
    assert time.process_time() - began < SECONDS


@generated
@given(chances)
def test_a_whole_mail_is_read_byte_for_byte(chance: Random) -> None:
    made = mail(chance)
    patches, _ = read(made.data)
    assert [patch.diff for patch in patches] == [made.diff]
    assert len(re.findall(rb"^@@ -\d", patches[0].diff, re.MULTILINE)) == made.hunks


@generated
@given(chances)
def test_an_mbox_is_read_byte_for_byte_in_the_order_of_its_numbers(chance: Random) -> None:
    data, diffs = mbox(chance)
    patches, account = read(data)
    assert [patch.diff for patch in patches] == diffs
    assert account.left_out == ()


@generated
@given(chances)
def test_a_damaged_mail_is_read_or_refused(chance: Random) -> None:
    read_or_refuse(damaged(chance))


@generated
@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_anything_at_all_is_read_or_refused(data: bytes) -> None:
    read_or_refuse(data)
