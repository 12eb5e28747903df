# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims of whole mails: read, guessed, and placed by ``claims:`` of series.yaml."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpatch_ci.model.claim import Claim, ClaimKind
from kpatch_ci.model.errors import UserErrors
from kpatch_ci.model.series import Intake
from kpatch_ci.series.claims import NO_COUNTERPART, Beside, guessed, placed, read_mails, read_text
from kpatch_ci.series.folder import load_series, series_from_files
from tests.fakes.mails import body_of, diff_of, mail, mbox

ROW = "Amean     4        0.5217 (   0.00%)      0.4867 (   6.71%)\n"
HMEAN = "Hmean     4        1559.71 (   0.00%)      2525.42 (  61.92%)\n"
SENTENCE = "Throughput improves from 180MB/s to 200MB/s.\n"


def guess(text: str) -> str:
    (claim,) = guessed(read_text(text))
    return f"{claim.workload} {claim.metric} {claim.case}" if claim.workload else claim.unmeasured


@pytest.mark.parametrize(
    ("text", "beside"),
    [
        (f"hackbench-process-pipes\n{ROW}", "hackbench time groups=4"),
        (f"hackbench-process-sockets\n{ROW}", "hackbench time groups=4,transport=socket"),
        (f"hackbench-thread-pipes\n{ROW}", "hackbench time groups=4,mode=thread"),
        (f"hackbench-thread-sockets\n{ROW}", "hackbench time groups=4,mode=thread,transport=socket"),
        (f"hackbench\n{ROW}", "hackbench: the text names neither mode nor transport there"),
        (f"hackbench-process-pipes\n{HMEAN}", "hackbench: Hmean is no mean time"),
        (f"hackbench-process-pipes\n{ROW.replace('    4   ', 'elsp-4')}", NO_COUNTERPART),
        (f"schbench\n{ROW}", NO_COUNTERPART),
        (f"dbench on XFS\n{HMEAN}", "dbench throughput fs=xfs,clients=4"),
        (f"It was tested on ext4.\n\ndbench4\n{HMEAN}", "dbench throughput fs=ext4,clients=4"),
        (f"dbench\n{HMEAN}", "dbench: the text does not settle which file system of ours it is about"),
        (f"dbench\n{HMEAN}\nSo do XFS and ext4.", "dbench: the text does not settle which file system of ours it is about"),
        (f"dbench on btrfs\n{HMEAN}", "dbench: the text does not settle which file system of ours it is about"),
        (f"dbench on XFS\n{ROW}", "dbench: rows that are no Hmean are times; ours is a throughput"),
        (f"dd if=zeros of=/dev/null bs=1M count=64 iflag=direct\n{SENTENCE}", "dd throughput rw=read,bs=1M"),
        (f"dd if=/dev/zero of=/dev/sdb bs=4k count=64 oflag=direct\n{SENTENCE}", "dd throughput rw=write,bs=4k"),
        (f"dd if=zeros of=/dev/null bs=1M count=64\n{SENTENCE}",
         "dd: ours is direct reads or writes of a device, not `dd if=zeros of=/dev/null bs=1M count=64`"),
        (f"dd if=a of=b bs=1M oflag=direct\n{SENTENCE}",
         "dd: ours is direct reads or writes of a device, not `dd if=a of=b bs=1M oflag=direct`"),
        (f"dd if=/dev/zero of=b bs=1M oflag=direct,sync\n{SENTENCE}",
         "dd: ours is direct reads or writes of a device, not `dd if=/dev/zero of=b bs=1M oflag=direct,sync`"),
        (f"dd if=/dev/zero of=file bs=1M oflag=direct\n{SENTENCE}",
         "dd: ours is direct reads or writes of a device, not `dd if=/dev/zero of=file bs=1M oflag=direct`"),
        (SENTENCE, NO_COUNTERPART),
    ],
)  # fmt: skip
def test_a_workload_is_guessed_only_where_the_words_settle_its_settings(text: str, beside: str) -> None:
    assert guess(text) == beside


def test_a_guess_says_what_it_was_made_from() -> None:
    (claim,) = guessed(read_text(f"hackbench-process-pipes\n{ROW}"))
    assert claim.guessed == "`hackbench-process-pipes` above the table"
    (claim,) = guessed(read_text(f"dd if=z of=/dev/null bs=1M iflag=direct\n{SENTENCE}"))
    assert claim.guessed == "`dd if=z of=/dev/null bs=1M iflag=direct`"


THREE = """\
A
Amean 1  2.0 (   0.00%)  1.8 (  10.00%)  1.0 (  50.00%)

This is another table.

B
Amean 1  4.0 (   0.00%)  3.0 (  25.00%)
"""


def place(text: str, *entries: Beside) -> list[Claim]:
    found, unused = placed(read_text(text), entries)
    assert unused == ()
    return list(found)


def test_an_entry_names_rows_by_their_first_words_and_fills_in_their_label() -> None:
    text = f"{ROW}{ROW.replace(' 4 ', ' 48 ')}{HMEAN}"
    found = place(text, Beside("Amean", "hackbench", "time", "groups={x}"), Beside("Hmean 4", "dbench", "throughput"))
    assert [(c.workload, c.case) for c in found] == [
        ("hackbench", "groups=4"),
        ("hackbench", "groups=48"),
        ("dbench", ""),
    ]
    only = place(text, Beside("Amean 4", "hackbench", "time", "groups={x}"))
    assert [c.case for c in only] == ["groups=4", "", ""]
    assert [c.unmeasured for c in only] == ["", NO_COUNTERPART, NO_COUNTERPART]


def test_an_entry_may_name_the_table_and_the_columns() -> None:
    found = place(THREE, Beside("Amean", "hackbench", "time", "groups={x}", table=1, columns=(1, 2)))
    assert [(c.workload, c.change_percent) for c in found] == [("hackbench", 10.0), ("", 25.0)]
    found = place(THREE, Beside("Amean", "hackbench", "time", "groups={x}", table=1, columns=(2, 3)))
    assert found[0].change_percent == pytest.approx(100 * 0.8 / 1.8)
    assert (found[0].stated_percent, found[0].note) == ("", "")  # the mail's percentages are of its first column


def test_an_entry_may_be_a_regular_expression_and_a_sentence_may_stand_beside_several_figures() -> None:
    entries = [Beside("/improves from .* to/", "dd", "throughput", case) for case in ("rw=read", "rw=write")]
    assert [c.case for c in place(SENTENCE, *entries)] == ["rw=read", "rw=write"]


@pytest.mark.parametrize("line", ["Stddev 1  2.0 (   0.00%)  1.8 (  10.00%)", "Duration User  10.0  9.0"])
def test_no_entry_sets_a_figure_beside_what_cannot_be_compared(line: str) -> None:
    (claim,) = place(line, Beside("/./", "hackbench", "time", "groups={x}"))
    assert claim.workload == ""
    assert claim.unmeasured


def test_an_entry_that_fits_nothing_is_told() -> None:
    entry = Beside("Gmean", "hackbench", "time")
    assert placed(read_text(ROW), [entry])[1] == (entry,)


def folder(tmp_path: Path, claims: str, text: str = ROW) -> Path:
    (tmp_path / "one").mkdir()
    (tmp_path / "one/m.eml").write_bytes(mail("[PATCH] lamp: one", body_of(diff_of("one"), text)))
    (tmp_path / "one/series.yaml").write_text(f"title: One\nfiles: [m.eml]\nclaims:\n{claims}")
    return tmp_path / "one"


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ("- {match: Gmean, workload: hackbench, metric: time}", "no claim in the mails' text is 'Gmean'.*those there begin: Amean"),
        ("- {workload: hackbench, metric: time}", "neither match nor text"),
        ("- {match: Amean, text: a, says: better, workload: hackbench, metric: time}", "both match and text"),
        ("- {text: a, workload: hackbench, metric: time}", "text without says"),
        ("- {match: Amean, says: better, workload: hackbench, metric: time}", "match with says"),
        ("- {match: Amean, columns: [1, 1], workload: hackbench, metric: time}", "columns"),
        ("- {match: /a(/, workload: hackbench, metric: time}", "no regular expression"),
        ("- {match: Amean, workload: hackbench, metric: time, change_percent: 1}", "unknown key 'claims.0.change_percent'"),
        ("- {text: a, says: nicer, workload: hackbench, metric: time}", "says"),
        ("- {match: Amean, metric: time}", "'claims.0.workload' is missing"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_claims_is_said_with_its_line(tmp_path: Path, claims: str, said: str) -> None:
    with pytest.raises(UserErrors, match=f"series.yaml:4: .*{said}"):
        load_series(folder(tmp_path, claims), tmp_path)


def test_a_stack_has_no_text_of_its_own_to_match(tmp_path: Path) -> None:
    folder(tmp_path, "- {match: Amean, workload: hackbench, metric: time}")
    (tmp_path / "both").mkdir()
    claims = 'claims: [{match: Amean, workload: dd, metric: throughput}, {text: "more", says: better, workload: dd, metric: throughput}]'
    (tmp_path / "both/series.yaml").write_text(f"title: Both\nstack: [one]\n{claims}\n")
    with pytest.raises(UserErrors, match=r"series.yaml:3: .*those there begin: none"):
        load_series(tmp_path / "both", tmp_path)
    (tmp_path / "both/series.yaml").write_text("title: Both\nstack: [one]\n")
    assert load_series(tmp_path / "both", tmp_path).claims == ()


def test_a_folder_without_claims_is_guessed_like_a_patch_from_elsewhere(tmp_path: Path) -> None:
    text = f"hackbench-process-pipes\n{ROW}"
    place = folder(tmp_path, "", text)
    (place / "series.yaml").write_text("title: One\nfiles: [m.eml]\n")
    (claim,) = load_series(place, tmp_path).claims
    assert (claim.case, bool(claim.guessed)) == ("groups=4", True)
    assert series_from_files([place / "m.eml"], "x").claims == (claim,)


def test_the_cover_letters_claims_come_first_and_say_where_they_stand(tmp_path: Path) -> None:
    cover = mail("[PATCH 0/1] lamp", ROW.encode())
    patch = mail("[PATCH 1/1] lamp: one", body_of(diff_of("one"), HMEAN))
    (tmp_path / "a.mbox").write_bytes(mbox(cover, patch))
    claims = series_from_files([tmp_path / "a.mbox"], "x").claims
    assert [(c.statistic, c.source == "cover letter") for c in claims] == [("Amean", True), ("Hmean", False)]


def test_mails_without_claims_have_none() -> None:
    assert read_mails(()) == ()
    assert read_mails((), Intake(cover="Nothing.")) == ()


WORDS = st.sampled_from(
    ["Amean", "Hmean", "1", "4", "0.5217", "(   0.00%)", "*  11.54%*", "Duration", "User", "9.5", "throughput", "improves", "from",
     "to",
     "180MB/s", "200", "ms", "(~5 percent)", "by", "12%", "faster", "dd", "if=a", "of=/dev/null", "bs=1M", "hackbench-process-pipes",
     "dbench",
     "xfs", "\n", "\n\n", "\t", ".", "-", ">", "5-10%", "nan", "9" * 320, "%", "*", "(", ")", "1e999", "\u2013", "\x00", "\ud800"]
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=300), st.lists(WORDS, max_size=60).map(" ".join), st.lists(WORDS, max_size=60).map("".join)
)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_no_text_breaks_the_reader_and_every_claim_stands_in_it(text: str) -> None:
    lines = text.split("\n")
    for claim in guessed(read_text(text)):
        assert 1 <= claim.line <= len(lines)
        flat = " ".join(" ".join(lines[claim.line - 1 :]).split())
        assert " ".join(claim.text.split()) in flat
        assert all(f.text in claim.text for f in claim.figures)
        assert claim.stated_percent.lstrip("~") in claim.text
        assert claim.workload or claim.unmeasured
        assert claim.kind is not ClaimKind.WORDS
        numbers = [claim.change_percent or 0.0, *(f.value for f in claim.figures)]
        assert all(math.isfinite(number) for number in numbers)


@pytest.mark.parametrize("huge", ["9" * 16, "9" * 320, "1." + "0" * 390])
def test_a_number_that_no_computer_holds_is_none(huge: str) -> None:
    assert read_text(f"Amean 1 {huge} (0.00%) 1 (0.00%)") == ()
    assert read_text(f"Amean 1 1 (0.00%) 1 ({huge}%)") == ()
    assert read_text(f"User {huge} 1") == ()
    assert read_text(f"Throughput went from {huge} MB/s to 1 MB/s.") == ()
    assert read_text(f"Throughput went from 1 MB/s to {huge} MB/s.") == ()
    assert read_text(f"Throughput improves by {huge}%.") == ()


NUMBERS = st.decimals(min_value="0.01", max_value="99999", places=4)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 999), NUMBERS, NUMBERS, st.booleans()), min_size=1, max_size=12))
def test_a_table_that_is_printed_as_mmtests_does_is_read_back(rows: list[tuple[int, object, object, bool]]) -> None:
    text = "title\n" + " " * 26 + "6.1-rc1" + " " * 16 + "6.1-rc1\n"
    for label, before, after, star in rows:
        change = 100 * (float(str(before)) - float(str(after))) / float(str(before))
        marked = f"*{change:>8.2f}%*" if star else f"({change:>8.2f}%)"
        text += f"Amean     {label:<8} {before:>12} ({0:>8.2f}%) {after:>12} {marked}\n"
    claims = [one.claim for one in read_text(text)]
    assert [(c.label, c.figures[0].text, c.figures[1].text, c.figures[1].star) for c in claims] == [
        (str(label), str(before), str(after), star) for label, before, after, star in rows
    ]
    assert [c.note for c in claims] == [""] * len(rows)
