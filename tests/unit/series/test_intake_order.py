# SPDX-License-Identifier: GPL-2.0-or-later
"""Which of the mails are the series: revisions, missing patches, replies, covers, prerequisites."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.series import Intake, Patch
from kpatch_ci.series.intake import read_series
from kpatch_ci.series.prerequisites import patch_id
from tests.fakes.mails import ADA, body_of, diff_of, mail, mbox, thread_mail

BOB = "Bob Example <bob@lamps.example>"


def read(tmp_path: Path, *mails: bytes, revision: int | None = None) -> tuple[tuple[Patch, ...], Intake]:
    file = tmp_path / "thread.mbox"
    file.write_bytes(mbox(*mails))
    return read_series([file], revision)


def prefixes(patches: Sequence[Patch]) -> list[str]:
    return [patch.prefix for patch in patches]


def posting(tag: str, names: Sequence[str], *, answers: str = "", cover: bool = True) -> list[bytes]:
    """A series such as ``v2 `` of patches called ``lamp: <name>``, threaded below its cover letter."""
    top = f"{tag.strip() or 'v1'}-0"
    made = [
        thread_mail(
            f"[PATCH {tag}0/{len(names)}]", "lamps", ident=top, answers=answers, body=f"Cover of {tag}\n".encode()
        )
    ]
    for number, name in enumerate(names, 1):
        diff = diff_of(f"{name}_{tag.strip() or 'v1'}")
        made.append(
            thread_mail(f"[PATCH {tag}{number}/{len(names)}]", f"lamp: {name}", ident=f"{tag.strip() or 'v1'}-{number}",
                        answers=top if cover else answers, diff=diff)
        )  # fmt: skip
    return made if cover else made[1:]


def reply(to: str, subject: str, words: str, *, ident: str = "r", sender: str = BOB, diff: bytes = b"") -> bytes:
    return thread_mail("", f"Re: {subject}", ident=ident, answers=to, sender=sender, body=words.encode() + diff)


def test_whatever_the_order_of_the_mails_the_series_is_the_same(tmp_path: Path) -> None:
    mails = [
        *posting("", "ab"),
        *posting("v2 ", "ab"),
        reply("v2-1", "[PATCH v2 1/2] lamp: a", "no\n\n", diff=diff_of("no")),
    ]
    rng = random.Random(4)  # noqa: S311
    for _ in range(40):
        rng.shuffle(mails)
        patches, account = read(tmp_path, *mails)
        assert [patch.diff for patch in patches] == [diff_of("a_v2"), diff_of("b_v2")]
        assert (account.revision, account.cover) == (2, "Cover of v2")
        assert "several revisions in it: v2 is the newest and is taken, v1 left out" in account.notes
        reasons = sorted(one.reason for one in account.left_out)
        assert reasons == sorted([
            "v1, another revision", "v1, another revision", "a cover letter, never applied",
            "the cover letter, never applied", "a reply, never applied",
        ])  # fmt: skip


def test_a_revision_may_be_asked_for(tmp_path: Path) -> None:
    mails = [*posting("", "ab"), *posting("v2 ", "ab"), *posting("v3 ", "abc")]
    for revision, count in ((1, 2), (2, 2), (3, 3)):
        patches, account = read(tmp_path, *mails, revision=revision)
        assert [patch.diff for patch in patches] == [diff_of(f"{name}_v{revision}") for name in "abc"[:count]]
        assert (account.revision, account.cover) == (
            revision,
            f"Cover of {f'v{revision}' if revision > 1 else ''}".strip(),
        )
        assert any(f"v{revision} was asked for" in note for note in account.notes)
    with pytest.raises(UserError, match=r"no patch of revision 4 \(one of v1, v2, v3\)"):
        read(tmp_path, *mails, revision=4)


@pytest.mark.parametrize("answers", ["", "v1-0"])
def test_a_new_revision_in_a_thread_of_its_own_or_below_the_old_one_takes_its_place(
    tmp_path: Path, answers: str
) -> None:
    patches, _ = read(tmp_path, *posting("", "ab"), *posting("v2 ", "ab", answers=answers))
    assert prefixes(patches) == ["[PATCH v2 1/2]", "[PATCH v2 2/2]"]


def test_a_new_revision_with_other_subjects_and_another_count_takes_its_place(tmp_path: Path) -> None:
    patches, account = read(tmp_path, *posting("", "ab"), *posting("v2 ", "xyz"))
    assert [patch.diff for patch in patches] == [diff_of(f"{name}_v2") for name in "xyz"]
    assert len([one for one in account.left_out if one.reason == "v1, another revision"]) == 2


def test_threads_that_share_no_subject_are_revisions_of_one_author_and_series_of_two(tmp_path: Path) -> None:
    new = [one.replace(b"lamp: ", b"cord: ").replace(b"] lamps", b"] cords") for one in posting("v2 ", "xy")]
    patches, _ = read(tmp_path, *posting("", "ab"), *new)
    assert [patch.diff for patch in patches] == [diff_of("x_v2"), diff_of("y_v2")]
    patches, account = read(tmp_path, *posting("", "ab"), *(one.replace(ADA.encode(), BOB.encode()) for one in new))
    assert [patch.diff for patch in patches] == [diff_of(name) for name in ("a_v1", "b_v1", "x_v2", "y_v2")]
    assert account.notes[0].startswith("2 series in it")


def test_revisions_of_a_patch_without_a_number_are_revisions(tmp_path: Path) -> None:
    for subjects in (("lamp: a", "lamp: a"), ("lamp: a", "lamp: A better a")):
        first = thread_mail("[PATCH]", subjects[0], ident="a", diff=diff_of("old"))
        second = thread_mail("[PATCH v2]", subjects[1], ident="b", answers="a", diff=diff_of("new"))
        for mails in ((first, second), (second, first)):
            patches, account = read(tmp_path, *mails)
            assert [patch.diff for patch in patches] == [diff_of("new")]
            assert account.left_out[0].reason == "v1, another revision"


def test_revisions_in_files_of_their_own_are_revisions_too(tmp_path: Path) -> None:
    for name, tag in (("a.mbox", "v3 "), ("b.mbox", "")):
        (tmp_path / name).write_bytes(mbox(*posting(tag, "ab")))
    patches, _ = read_series([tmp_path / "b.mbox", tmp_path / "a.mbox"])
    assert prefixes(patches) == ["[PATCH v3 1/2]", "[PATCH v3 2/2]"]


def test_a_series_of_another_author_and_thread_is_applied_after_not_taken_for_a_revision(tmp_path: Path) -> None:
    (tmp_path / "first.mbox").write_bytes(mbox(*posting("v4 ", "ab")))
    others = [one.replace(b"lamp: ", b"cord: ").replace(b"lamps\n", b"cords\n") for one in posting("", "xyz")]
    (tmp_path / "second.mbox").write_bytes(mbox(*others))
    for paths, wanted in (
        (("first.mbox", "second.mbox"), ["a_v4", "b_v4", "x_v1", "y_v1", "z_v1"]),
        (("second.mbox", "first.mbox"), ["x_v1", "y_v1", "z_v1", "a_v4", "b_v4"]),
    ):
        patches, account = read_series([tmp_path / path for path in paths])
        assert [patch.diff for patch in patches] == [diff_of(name) for name in wanted]
        assert any(note.startswith("2 series in it, applied one after another") for note in account.notes)


def test_what_is_sent_again_takes_the_place_of_what_was_sent_first(tmp_path: Path) -> None:
    first, again = (
        mail("[PATCH v2 1/1] a", diff=diff_of("first")),
        mail("[PATCH v2 RESEND 1/1] a", diff=diff_of("again")),
    )
    for mails in itertools.permutations((first, again)):
        patches, account = read(tmp_path, *mails)
        assert [patch.diff for patch in patches] == [diff_of("again")]
        assert "several revisions in it: v2 RESEND is the newest and is taken, v2 left out" in account.notes


def test_single_patches_sent_anew_are_taken_with_the_rest_of_the_series(tmp_path: Path) -> None:
    anew = thread_mail("[PATCH v2 2/3]", "lamp: b", ident="v2-2", answers="v1-2", diff=diff_of("b_v2"))
    patches, account = read(tmp_path, *posting("", "abc"), anew)
    assert [patch.diff for patch in patches] == [diff_of("a_v1"), diff_of("b_v2"), diff_of("c_v1")]
    assert "2/3 sent anew, each in answer to the patch it replaces; taken with 1/3 of v1, 3/3 of v1" in account.notes


def test_a_part_of_a_new_revision_that_answers_nothing_is_that_part(tmp_path: Path) -> None:
    patches, account = read(
        tmp_path, *posting("", "abc"), thread_mail("[PATCH v2 2/3]", "lamp: b", ident="x", diff=diff_of())
    )
    assert prefixes(patches) == ["[PATCH v2 2/3]"]
    assert "1/3, 3/3 are missing: tested without" in account.notes


def test_missing_patches_are_named_in_any_number(tmp_path: Path) -> None:
    _, account = read(tmp_path, mail("[PATCH 2/3] b"))
    assert account.notes == ("1/3, 3/3 are missing: tested without",)
    _, account = read(tmp_path, mail("[PATCH 30/30] z"))
    assert account.notes[0].endswith("19/30, 20/30 and 9 more are missing: tested without")


def test_a_mail_that_came_over_two_lists_is_one(tmp_path: Path) -> None:
    mails = posting("", "ab")
    patches, account = read(tmp_path, *mails, *mails)
    assert prefixes(patches) == ["[PATCH 1/2]", "[PATCH 2/2]"]
    assert len([one for one in account.left_out if one.reason.startswith("the same patch again")]) == 2
    alone = thread_mail("[PATCH]", "lamp: a", ident="a")
    assert len(read(tmp_path, alone, alone)[0]) == 1


def test_a_damaged_copy_of_a_mail_does_no_harm_to_the_whole_one(tmp_path: Path) -> None:
    whole = thread_mail("[PATCH 1/1]", "lamp: a", ident="a")
    damaged = whole.replace(b"+int lamp;", b"int lamp;")
    assert [patch.diff for patch in read(tmp_path, whole, damaged)[0]] == [diff_of()]
    with pytest.raises(UserError):
        read(tmp_path, damaged)


def test_files_with_one_subject_and_different_diffs_are_both_taken(tmp_path: Path) -> None:
    (tmp_path / "1.patch").write_bytes(mail("lamp: Clean up", diff=diff_of("a")))
    (tmp_path / "2.patch").write_bytes(mail("lamp: Clean up", diff=diff_of("b")))
    patches, account = read_series([tmp_path])
    assert [patch.diff for patch in patches] == [diff_of("a"), diff_of("b")]
    assert account.notes == ("two different patches are called `lamp: Clean up`: both are taken",)


def test_an_answer_without_a_number_in_the_thread_of_a_series_is_left_out(tmp_path: Path) -> None:
    aside = thread_mail("[PATCH]", "lamp: Rather so", ident="x", answers="v1-1", sender=BOB, diff=diff_of("aside"))
    patches, account = read(tmp_path, *posting("", "ab"), aside)
    assert prefixes(patches) == ["[PATCH 1/2]", "[PATCH 2/2]"]
    assert any(
        one.reason.startswith("has no number, in the thread") and "Rather so" in one.subject for one in account.left_out
    )


@pytest.mark.parametrize(
    "mark", ["Re:", "RE:", "re[2]:", "AW:", "Sv:", "Antwort:", "[EXT] Re:", "Re: Re:", "回复:", "Fwd:"]
)
def test_replies_are_never_applied_in_any_language(tmp_path: Path, mark: str) -> None:
    answer = thread_mail(
        "", f"{mark} [PATCH 1/2] lamp: a", ident="r", answers="v1-1", sender=BOB, diff=diff_of("reply")
    )
    patches, account = read(tmp_path, answer, *posting("", "ab"))
    assert [patch.diff for patch in patches] == [diff_of("a_v1"), diff_of("b_v1")]
    assert any(one.reason == "a reply, never applied" for one in account.left_out)


@pytest.mark.parametrize(
    "quoted",
    [
        b"".join(b"> " + line for line in diff_of("quoted").splitlines(keepends=True)),
        diff_of("unquoted"),
        b"On Monday Ada wrote:\n" + diff_of("half")[:150],
        b"@@ -1,7 +1,7 @@ a hunk alone\n-x\n",
        b"\xff\xfe broken",
    ],
)
def test_a_reply_with_any_sort_of_diff_never_stops_or_changes_a_series(tmp_path: Path, quoted: bytes) -> None:
    answer = thread_mail("", "Re: [PATCH 2/2] lamp: b", ident="r", answers="v1-2", sender=BOB, body=b"Hm.\n\n" + quoted)
    assert [patch.diff for patch in read(tmp_path, *posting("", "ab"), answer)[0]] == [diff_of("a_v1"), diff_of("b_v1")]


def test_an_html_reply_never_stops_a_series(tmp_path: Path) -> None:
    answer = mail("Re: [PATCH 1/2] lamp: a", b"<p>nice</p>\n", headers={"Content-Type": "text/html"})
    patches, account = read(tmp_path, *posting("", "ab"), answer)
    assert len(patches) == 2
    assert "a reply, never applied" in [one.reason for one in account.left_out]


def test_a_patch_of_a_series_that_is_html_without_a_diff_stops_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no plain text"):
        read(
            tmp_path, mail("[PATCH 1/2] a"), mail("[PATCH 2/2] b", b"<p>x</p>\n", headers={"Content-Type": "text/html"})
        )


def test_every_damaged_patch_is_named_at_once_and_none_of_an_old_revision(tmp_path: Path) -> None:
    mails = [one.replace(b"+int", b"int") if b"[PATCH v2 3/3]" not in one else one for one in posting("v2 ", "abc")]
    with pytest.raises(UserErrors) as caught:
        read(tmp_path, *mails)
    assert len(caught.value.errors) == 2
    old = [one.replace(b"+int", b"int") for one in posting("", "ab")]
    assert len(read(tmp_path, *old, *posting("v2 ", "ab"))[0]) == 2


@pytest.mark.parametrize("words", [b"", b"A range-diff, and an example:\n\n"])
def test_a_cover_letter_with_a_diff_is_never_applied(tmp_path: Path, words: bytes) -> None:
    cover = thread_mail("[PATCH v2 0/2]", "lamps", ident="v2-0", body=words + diff_of("example"))
    patches, account = read(tmp_path, cover, *posting("v2 ", "ab")[1:])
    assert [patch.diff for patch in patches] == [diff_of("a_v2"), diff_of("b_v2")]
    assert account.left_out[-1].reason == "the cover letter, never applied"
    with pytest.raises(UserError, match="only a cover letter"):
        read(tmp_path, cover)


def test_a_reply_alone_with_a_patch_below_scissors_is_that_patch_and_that_is_said(tmp_path: Path) -> None:
    words = "Rather so?\n\n-- >8 --\nFrom: Bob Example <bob@lamps.example>\nSubject: [PATCH] lamp: Rather so\n\nSo."
    answer = mail("Re: [PATCH 1/2] lamp: a", body_of(diff_of("so"), words), sender=ADA)
    patches, account = read(tmp_path, answer)
    assert (patches[0].subject, patches[0].author, patches[0].message) == ("lamp: Rather so", "Bob Example", "So.")
    assert patches[0].diff == diff_of("so")
    assert account.notes[0].startswith("the only diff is in a reply")
    with pytest.raises(UserError, match="no patch, but 2 replies with diffs"):
        read(tmp_path, answer, answer.replace(b"int so", b"int no"))


@pytest.mark.parametrize(
    "line", ["-- >8 --", "--- 8< ---", "-----------8<------- cut here -------", ">8 -----", "- - >8 - - 8< - -"]
)
def test_words_above_scissors_are_no_part_of_the_message(tmp_path: Path, line: str) -> None:
    patches, _ = read(tmp_path, mail(body=body_of(diff_of(), f"Hi all,\n\n{line}\nThe message.")))
    assert patches[0].message == "The message."


@pytest.mark.parametrize("line", ["-- ", "a >8 b", "8< is a scissor", "-> 8", "------", "rate -- > 8 --"])
def test_what_is_no_scissors_cuts_nothing(tmp_path: Path, line: str) -> None:
    patches, _ = read(tmp_path, mail(body=body_of(diff_of(), f"Hi all,\n\n{line}\nThe message.")))
    assert patches[0].message.startswith("Hi all,")


def test_trailers_of_replies_are_collected_for_the_patch_they_answer(tmp_path: Path) -> None:
    mails = [
        *posting("v2 ", "ab"),
        reply("v2-1", "[PATCH v2 1/2] lamp: a", f"Good.\n\nReviewed-by: {BOB}\n> Acked-by: {ADA}\n"),
        reply("v2-0", "[PATCH v2 0/2] lamps", f"Tested-by: {BOB} # on a lamp\n", ident="s"),
        reply("r", "[PATCH v2 1/2] lamp: a", f"Acked-by: {ADA}\n", ident="t", sender=ADA),
        reply("v2-2", "[PATCH v2 2/2] lamp: b", "Reviewed-by: Eve Example <eve@lamps.example>\n", ident="u"),
        reply("v1-9", "[PATCH 1/2] lamp: a", f"Nacked-by: {BOB}\nAcked-by: {BOB}\n", ident="v"),
        reply("v2-2", "[PATCH v2 2/2] lamp: b", f"Signed-off-by: {ADA}\n", ident="w", sender=ADA),
    ]
    patches, account = read(tmp_path, *mails)
    assert patches[0].trailers == (f"Reviewed-by: {BOB}", f"Tested-by: {BOB} # on a lamp", f"Acked-by: {ADA}")
    assert patches[1].trailers == (f"Tested-by: {BOB} # on a lamp",)
    assert patches[0].message.endswith(f"Signed-off-by: {ADA}")
    box = tmp_path / "thread.mbox"
    assert account.notes == (
        f"`Reviewed-by: Eve Example <eve@lamps.example>` was sent by bob@lamps.example: not taken ({box} (mail 7))",
        f"`Acked-by: {BOB}` answers none of the patches that are taken ({box} (mail 8))",
    )


def test_trailers_find_their_patch_by_its_subject_where_there_are_no_ids(tmp_path: Path) -> None:
    answer = mail("Re: [PATCH 2/2] b", f"Reviewed-by: {BOB}\n".encode(), sender=BOB)
    patches, _ = read(
        tmp_path, mail("[PATCH 1/2] a", diff=diff_of("a")), mail("[PATCH 2/2] b", diff=diff_of("b")), answer
    )
    assert [patch.trailers for patch in patches] == [(), (f"Reviewed-by: {BOB}",)]


def test_the_base_and_prerequisites_of_a_cover_letter_are_the_first_patchs(tmp_path: Path) -> None:
    tail = f"words\n\nbase-commit: {'1' * 40}\nprerequisite-patch-id: {'2' * 40}\n-- \n2.47\n"
    cover = thread_mail("[PATCH v2 0/2]", "lamps", ident="v2-0", body=tail.encode())
    patches, account = read(tmp_path, cover, *posting("v2 ", "ab")[1:])
    assert [patch.base_commit for patch in patches] == ["1" * 40, ""]
    assert (account.base_commit, account.prerequisites) == ("1" * 40, ("2" * 40,))
    assert account.notes == (
        f"patches that it says have to be there first, and were not given: {'2' * 12} (patch ids)",
    )


def test_prerequisites_that_are_given_are_applied_first(tmp_path: Path) -> None:
    needed = diff_of("needed")
    assert len(patch_id(needed)) == 40
    tail = f"prerequisite-patch-id: {patch_id(needed)}\n-- \n2.47".encode()
    (tmp_path / "a.patch").write_bytes(mail("lamp: a", body=body_of(diff_of("a")).replace(b"-- \n2.47", tail)))
    (tmp_path / "z.patch").write_bytes(mail("lamp: z", diff=needed))
    patches, account = read_series([tmp_path / "a.patch", tmp_path / "z.patch"])
    assert [patch.diff for patch in patches] == [needed, diff_of("a")]
    assert account.notes == ("prerequisites are applied first, though they came later",)


def test_a_patch_id_is_that_of_git_and_does_not_depend_on_line_numbers(tmp_path: Path) -> None:
    assert patch_id(diff_of(line=1)) == patch_id(diff_of(line=900)) != patch_id(diff_of("other"))
    assert patch_id(b"words\n") == ""


@pytest.mark.parametrize(
    "subjects",
    [
        ("[RFC PATCH 1/2]", "[RFC PATCH 2/2]"),
        ("[PATCH v2 RESEND 1/2]", "[PATCH v2 RESEND 2/2]"),
        ("[PATCH1/2]", "[PATCH2/2]"),
        ("[PATCH net-next V2 01/02]", "[PATCH net-next V2 02/02]"),
        ("[patch v3 1/2]", "[patch v3 2/2]"),
        ("[PATCH 6.6.y 1/2]", "[PATCH 6.6.y 2/2]"),
        ("[PATCH,v2,1/2]", "[PATCH,v2,2/2]"),
        ("[v2,1/2]", "[v2,2/2]"),
        ("[lamps] [PATCH 1 of 2]", "[lamps] [PATCH 2 of 2]"),
    ],
)
def test_numbering_of_all_kinds_orders_a_series(tmp_path: Path, subjects: tuple[str, str]) -> None:
    mails = [mail(f"{subject} lamp: {name}", diff=diff_of(name)) for subject, name in zip(subjects, "ab", strict=True)]
    patches, account = read(tmp_path, *mails[::-1])
    assert [patch.diff for patch in patches] == [diff_of("a"), diff_of("b")]
    assert account.notes == ()


def test_patches_without_any_brackets_stay_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    patches, account = read(tmp_path, *(mail(f"lamp: {name}", diff=diff_of(name)) for name in "zay"))
    assert [patch.diff for patch in patches] == [diff_of(name) for name in "zay"]
    assert account.revision is None


def test_patches_without_numbers_in_a_mailbox_sorted_newest_first_are_turned(tmp_path: Path) -> None:
    made = [
        diff_of(f"n{i}").replace(b"1111111..2222222", b"%d..%d" % (1111111 * i, 1111111 * (i + 1))) for i in (1, 2, 3)
    ]
    mails = [mail(f"lamp {number}", diff=diff) for number, diff in enumerate(made)]
    patches, account = read(tmp_path, *mails[::-1])
    assert [patch.diff for patch in patches] == made
    assert account.notes == (
        "patches without numbers, newest first as their blob ids show: applied the other way round",
    )
    patches, account = read(tmp_path, *mails)
    assert ([patch.diff for patch in patches], account.notes) == (made, ())


def test_one_patch_without_a_number_between_numbered_ones_keeps_its_place(tmp_path: Path) -> None:
    for name, subject in (("1", "[PATCH 1/3] a"), ("2", "b"), ("3", "[PATCH 3/3] c")):
        (tmp_path / f"{name}.patch").write_bytes(mail(subject, diff=diff_of(f"n{name}")))
    patches, account = read_series([tmp_path])
    assert [patch.diff for patch in patches] == [diff_of(f"n{name}") for name in "123"]
    assert account.notes == ("2/3 is missing: tested without",)


def test_files_of_one_series_given_one_by_one_are_one_series(tmp_path: Path) -> None:
    for number in (3, 1, 2):
        (tmp_path / f"{number}.eml").write_bytes(mail(f"[PATCH {number}/3] lamp {number}", diff=diff_of(f"n{number}")))
    patches, account = read_series([tmp_path / f"{number}.eml" for number in (3, 1, 2)])
    assert prefixes(patches) == ["[PATCH 1/3]", "[PATCH 2/3]", "[PATCH 3/3]"]
    assert (account.notes, account.left_out) == ((), ())


def test_patches_that_do_not_agree_on_their_number_are_named(tmp_path: Path) -> None:
    _, account = read(tmp_path, mail("[PATCH 1/2] a", diff=diff_of("a")), mail("[PATCH 2/3] b", diff=diff_of("b")))
    assert account.notes == (
        "3/3 is missing: tested without",
        "the patches do not agree on how many they are: [PATCH 1/2], [PATCH 2/3]",
    )
