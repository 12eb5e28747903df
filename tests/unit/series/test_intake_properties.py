# SPDX-License-Identifier: GPL-2.0-or-later
"""What holds for any mail: the way there and back changes nothing, and no damage loses a hunk without a word."""

from __future__ import annotations

import difflib
import random
from collections.abc import Callable
from pathlib import Path

import git
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.series import Intake, Patch
from kpatch_ci.series.intake import read_series
from tests.fakes.mails import diff_of, encoded, mail, mbox, multipart, words_of

QUICK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A damaged mail of a few lines is small enough: shrinking one takes minutes."""
RELAXED = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None, phases=QUICK
)
FILES = ("kernel/a.c", "kernel/b c.c", "include/lamp.h")
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12)
SENTENCE = st.lists(WORDS, min_size=1, max_size=8).map(" ".join).filter(lambda text: text[0].isalpha())


def tell(action: Callable[[], tuple[tuple[Patch, ...], Intake]]) -> tuple[tuple[Patch, ...], Intake] | None:
    """What intake says; None where it refuses, which has to be with a place and what would be right."""
    try:
        return action()
    except UserError as error:
        refused = error.errors if isinstance(error, UserErrors) else (error,)
    assert all(one.where and one.expected for one in refused)
    return None


def made_diff(rng: random.Random) -> bytes:
    """A diff over several files with several hunks, and its diffstat above it."""
    made, stat, added, removed = b"", b"", 0, 0
    for name in FILES:
        old = [f"\tline_{name}_{i}();\n" if rng.random() < 0.8 else "\n" for i in range(60)]
        new = [line for line in old if rng.random() > 0.04]
        new.insert(rng.randrange(len(new)), f"\tint new{rng.randrange(99)};\n")
        lines = list(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"))
        tab = "\t" if " " in name else ""
        lines[:2] = [f"diff --git a/{name} b/{name}\n", f"--- a/{name}{tab}\n", f"+++ b/{name}{tab}\n"]
        made += "".join(lines).encode()
        plus, minus = (sum(line[0] == sign for line in lines[3:]) for sign in "+-")
        stat += f" {name} | {plus + minus} +-\n".encode()
        added, removed = added + plus, removed + minus
    return stat + f" {len(FILES)} files changed, {added} insertions(+), {removed} deletions(-)\n\n".encode() + made


def damaged(body: bytes, rng: random.Random) -> bytes:
    """A body with lines lost, doubled, swapped, moved, cut short, wrapped or slipped in."""
    lines = body.splitlines(keepends=True)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at, count = rng.randrange(len(lines)), rng.choice((1, 1, 2, 7, 30))
        kind = rng.randrange(7)
        if kind == 0:
            del lines[at : at + count]
        elif kind == 1:
            lines[at:at] = lines[at : at + count]
        elif kind == 2:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 3:
            del lines[at:]
        elif kind == 4:
            lines[at] = lines[at][: len(lines[at]) // 2] + b"\n" + lines[at][len(lines[at]) // 2 :]
        elif kind == 5:
            lines.insert(
                at,
                rng.choice(
                    (b"\n", b"words\n", b"> quoted\n", b"-- \n", b"---\n", b"diff --git a/x b/x\n", b"@@ -1 +1 @@\n")
                ),
            )
        else:
            lines[at] = lines[at].lstrip() or b"\n"
        lines = lines or [b"\n"]
    return b"".join(lines)


@RELAXED
@given(seed=st.integers(0, 2**32))
def test_a_damaged_patch_is_refused_or_whole_or_its_loss_is_said(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    whole = made_diff(rng)
    stat, _, diff = whole.partition(b"diff --git")
    diff = b"diff --git" + diff
    file = tmp_path / "x.eml"
    file.write_bytes(mail(body=damaged(b"Words.\n---\n" + whole + b"-- \n2.47.1\n", rng)))
    told = tell(lambda: read_series([file]))
    if told is None:
        return
    ((patch,), account) = told
    if patch.diff != diff and not patch.notes and not account.notes:
        assert patch.diff.count(b"\n@@ -") == diff.count(b"\n@@ -"), stat.decode()
        assert signs(patch.diff) == signs(diff)


def signs(diff: bytes) -> tuple[int, ...]:
    """How many lines a diff adds and removes."""
    lines = [line for line in diff.split(b"\n") if not line.startswith((b"--- ", b"+++ "))]
    return tuple(sum(line[:1] == sign for line in lines) for sign in (b"+", b"-"))


@RELAXED
@given(seed=st.integers(0, 2**32))
def test_a_damaged_mbox_never_gives_what_no_mail_of_the_series_holds(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    made = {name: diff_of(name) for name in ("a", "b", "c")}
    mails = [mail(f"[PATCH {n}/3] {name}", diff=diff) for n, (name, diff) in enumerate(made.items(), 1)]
    mails += [mail("[PATCH 0/3] cover", b"words\n\n" + diff_of("cover"))]
    mails += [mail("Re: [PATCH 1/3] a", b"words\n\n" + diff_of("reply"))]
    rng.shuffle(mails)
    file = tmp_path / "x.mbox"
    text = mbox(*mails)
    at = rng.randrange(len(text))
    file.write_bytes(text[:at] + text[at + rng.randrange(1, 200) :])
    told = tell(lambda: read_series([file]))
    if told is None:
        return
    patches, account = told
    said = [
        *account.notes,
        *(note for patch in patches for note in patch.notes),
        *(one.reason for one in account.left_out),
    ]
    assert len(patches) == 3 or len(said) > 2, "the cover letter and the reply are always named"
    foreign = any(name in patch.diff for patch in patches for name in (b"int reply", b"int cover"))
    doubted = any(words.startswith("the diffstat says") for words in said)
    assert not foreign or doubted or len(said) > 2


@RELAXED
@given(
    subject=SENTENCE, author=SENTENCE, message=st.lists(SENTENCE, max_size=6), seed=st.integers(0, 2**32),
    coding=st.sampled_from(["8bit", "quoted-printable", "base64", "base64-crlf"]), crlf=st.booleans(),
    shape=st.sampled_from(["plain", "mbox", "attached", "attached mail"]), raw=st.binary(max_size=30),
)  # fmt: skip
def test_the_way_there_and_back_keeps_author_date_message_and_diff(
    *,
    tmp_path: Path,
    subject: str,
    author: str,
    message: list[str],
    seed: int,
    coding: str,
    crlf: bool,
    shape: str,
    raw: bytes,
) -> None:
    text = "\n".join(message)
    if text.lower().startswith(("from:", "subject:", "date:")) or any("---" in line for line in message):
        return
    diff = made_diff(random.Random(seed)).partition(b"diff --git")  # noqa: S311
    data = diff[1] + diff[2].replace(b"\tint new", b"\tint /* " + raw.translate(None, b"\0\n\r") + b" */ new")
    sender = f"{words_of(author, 'utf-8')} <ada@lamps.example>"
    body = f"{text}\n---\n".encode() + diff[0] + data + b"-- \n2.47.1\n"
    if shape.startswith("attached"):
        part, content = encoded(
            data if shape == "attached" else mail(words_of(subject, "utf-8"), body, sender=sender), coding
        )
        part.pop("MIME-Version")
        part |= {"Content-Type": "text/x-patch", "Content-Disposition": 'attachment; filename="x.patch"'}
        words, words_body = encoded(f"{text}\n".encode(), coding)
        headers, whole = multipart([(words, words_body), (part, content)])
    else:
        headers, whole = encoded(body, coding)
    letter = mail(
        words_of(f"[PATCH v2] {subject}", "utf-8") if shape != "attached mail" else "x",
        whole,
        sender=sender,
        headers=headers,
    )
    if shape == "mbox":
        letter = mbox(letter)
    file = tmp_path / "x.eml"
    file.write_bytes(letter.replace(b"\n", b"\r\n") if crlf and coding != "8bit" else letter)
    ((patch,), _) = read_series([file])
    assert patch.diff == data
    assert (patch.author, patch.email) == (" ".join(author.split()), "ada@lamps.example")
    assert patch.subject == " ".join(subject.split())
    assert patch.date == "Mon, 5 Jan 2026 10:00:00 +0100"
    assert patch.message == text


@RELAXED
@given(data=st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    for head in (
        b"",
        b"From: a@lamps.example\n",
        b"Content-Type: multipart/mixed; boundary=x\nFrom: a\n\n--x\n",
        b"<html>",
        b"commit 1234567\n",
    ):
        (tmp_path / "x").write_bytes(head + data)
        assert tell(lambda: read_series([tmp_path / "x"])) is None


def test_a_commit_that_is_mailed_and_read_gives_the_same_tree(tmp_path: Path) -> None:
    """git itself makes the mails: what git am would commit is what we would."""
    repo = git.Repo.init(tmp_path / "r")
    work = tmp_path / "r"
    (work / "kernel").mkdir()
    (work / "kernel/lamp.c").write_bytes(b"/* a lamp */\n\n" + b"".join(b"\tline%d();\n" % i for i in range(60)))
    (work / "pic").write_bytes(bytes(range(256)) * 4)
    who = {"GIT_AUTHOR_NAME": "Adä Example", "GIT_AUTHOR_EMAIL": "ada@lamps.example", "GIT_COMMITTER_NAME": "x",
           "GIT_COMMITTER_EMAIL": "x", "GIT_AUTHOR_DATE": "Mon, 5 Jan 2026 10:00:00 +0100"}  # fmt: skip
    repo.git.update_environment(**who, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")
    repo.git.add("-A")
    repo.git.commit("-q", "-m", "base")
    base = repo.head.commit.tree.hexsha
    text = (work / "kernel/lamp.c").read_bytes()
    (work / "kernel/lamp.c").write_bytes(
        text.replace(b"line7", b"zeile7").replace(b"line50();\n", "zürich();\r\n".encode())[:-1]
    )
    (work / "pic").write_bytes(bytes(range(255, -1, -1)) * 3)
    repo.git.add("-A")
    repo.git.commit("-q", "-m", "lamp: Für die Füße, a subject that is long enough to be folded over two lines\n\nFrom here on.\n\n\n"
                    "  indented\n\nSigned-off-by: Adä Example <ada@lamps.example>")  # fmt: skip
    repo.git.mv("kernel/lamp.c", "kernel/light.c")
    (work / "run.sh").write_text("x\n")
    (work / "run.sh").chmod(0o755)
    repo.git.add("-A")
    repo.git.rm("-q", "pic")
    repo.git.commit("-q", "-m", "lamp: Rename")
    for options in (
        (),
        ("--attach",),
        ("--inline",),
        ("--cover-letter", "--base=HEAD~2"),
        ("--no-prefix",),
        ("-U10", "--full-index"),
    ):
        mails = repo.git.format_patch(
            "HEAD~2", "--stdout", "--binary", *options, strip_newline_in_stdout=False, stdout_as_string=False
        )
        (tmp_path / "x.mbox").write_bytes(mails)
        patches, _ = read_series([tmp_path / "x.mbox"])
        repo.git.read_tree(base)
        for patch, commit in zip(patches, [repo.commit("HEAD~1"), repo.commit("HEAD")], strict=True):
            (tmp_path / "diff").write_bytes(patch.diff)
            repo.git.apply("--cached", str(tmp_path / "diff"))
            assert repo.git.write_tree() == commit.tree.hexsha, options
            assert (patch.author, patch.email) == (commit.author.name, commit.author.email)
            assert f"{patch.subject}\n\n{patch.message}".strip() == str(commit.message).strip()
            assert patch.date == "Mon, 5 Jan 2026 10:00:00 +0100"
