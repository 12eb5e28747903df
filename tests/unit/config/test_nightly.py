# SPDX-License-Identifier: GPL-2.0-or-later
"""``nightly:`` of pipeline.yaml: what it gives, and every error with its line and what would be right."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kpatch_ci.config.nightly import read_nightly
from kpatch_ci.model.errors import UserError

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A pipeline's directory with our series, machines and fragments."""
    for name in ("patches", "qemu", "kconfigs"):
        shutil.copytree(PROJECT / name, tmp_path / name)
    return tmp_path


def pipeline(root: Path, nightly: str) -> Path:
    """Our pipeline.yaml with ``nightly`` at its end."""
    path = root / "pipeline.yaml"
    path.write_text((PROJECT / "pipeline.yaml").read_text() + nightly)
    return path


def line_of(path: Path, text: str) -> int:
    return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def test_a_list_alone_is_the_items(root: Path) -> None:
    settings = read_nightly(
        pipeline(
            root,
            "nightly:\n  - {name: a, tree: 'debian:6.1', series: [wakeup-gran], profile: quick}\n  - {tree: ../linux@for-next}\n",
        )
    )
    first, second = settings.items
    assert (first.name, first.tree, first.series, first.profile) == ("a", "debian:6.1", ("wakeup-gran",), "quick")
    assert (second.name, second.series, second.profile) == ("linux-for-next", (), "default")
    assert settings.site == root / "nightly-site"
    assert settings.mail is None
    config = first.config(settings.path)
    assert [entry.name for entry in config.series] == ["wakeup-gran"]
    assert len(config.seeds) == 3


def test_everything_that_it_may_say(root: Path) -> None:
    settings = read_nightly(
        pipeline(
            root,
            "nightly:\n  site: /srv/site\n  url: https://ci.example/x/\n  thresholds: {time: 4%, hackbench.migrations: 10% and 20}\n"
            "  mail: {to: a@b.example, from: ci@b.example, send: news, sendmail: [sendmail, -t]}\n"
            "  items: [{name: n, arches: [arm64], workloads: [dbench], series: [stack-workqueue+no-kthread-stacking]}]\n",
        )
    )
    assert settings.site == Path("/srv/site")
    assert settings.url == "https://ci.example/x"
    assert settings.limits["time"].percent == 4
    assert settings.mail is not None
    assert (settings.mail.to, settings.mail.send, settings.mail.sendmail) == (
        ("a@b.example",),
        "news",
        ("sendmail", "-t"),
    )
    assert [m.arch for m in settings.items[0].config(settings.path).machines] == ["arm64"]


WRONG = [
    ("- {name: a, series: [wakeup-grain]}", "no series 'wakeup-grain'", "did you mean 'wakeup-gran'"),
    ("- {name: a, profile: quik}", "no profile 'quik'", "did you mean 'quick'"),
    ("- {name: a, workloads: [hackbnech]}", "no workloads 'hackbnech'", "did you mean 'hackbench'"),
    ("- {name: a, arches: [riscv64]}", "no arches 'riscv64'", "there are: arm64, x86_64"),
    ("- {name: 'a/b'}", "an item cannot be called 'a/b'", "letters, digits"),
    ("- {name: a, sries: [x]}", "unknown key", "did you mean 'series'"),
]


@pytest.mark.parametrize(("text", "what", "right"), WRONG)
def test_errors_name_their_line_in_both_forms(root: Path, text: str, what: str, right: str) -> None:
    for head in ("nightly:\n", "nightly:\n  site: s\n  items:\n"):
        path = pipeline(root, f"{head}    - {{name: first}}\n    {text}\n")
        with pytest.raises(UserError) as caught:
            read_nightly(path)
        assert what in str(caught.value)
        assert right in str(caught.value)
        assert f"pipeline.yaml:{line_of(path, text)}: " in str(caught.value)


def test_all_errors_at_once(root: Path) -> None:
    path = pipeline(
        root,
        "nightly:\n  thresholds: {time: soon}\n  mail: {to: nobody}\n  items:\n    - {name: a}\n    - {name: a, profile: x}\n",
    )
    with pytest.raises(UserError) as caught:
        read_nightly(path)
    for words in (
        "'soon' is no threshold",
        "'nobody' is no mail address",
        "two items are called 'a'",
        "no profile 'x'",
    ):
        assert words in str(caught.value)


def test_without_nightly_an_example_is_shown(root: Path) -> None:
    with pytest.raises(UserError, match=r"has no `nightly:`.*series: \[wakeup-gran\]"):
        read_nightly(pipeline(root, ""))
