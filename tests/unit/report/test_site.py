# SPDX-License-Identifier: GPL-2.0-or-later
"""The nightly site: its pages, feed, mail and directory."""

from __future__ import annotations

import dataclasses
import json
import re
from email import message_from_bytes, policy
from html.parser import HTMLParser
from pathlib import Path

import feedparser
import pytest

from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.report.site import write
from kpatch_ci.report.site.data import Kind, News
from kpatch_ci.report.site.feed import feed
from kpatch_ci.report.site.mail import mail_html, mail_text, message, subject
from kpatch_ci.report.site.pages import open_events, pages, reach, run_page, series_page, slug
from kpatch_ci.report.site.write import MANIFEST, write_site
from kpatch_ci.store import atomic
from tests.fakes.site import ITEMS, SERIES, made_event, made_site

HOSTILE = '\x1b[31m<script>alert(1)</script> " onload=x ]]> & \u202e'


class Links(HTMLParser):
    """What a page refers to, and the elements that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.links += [str(given[name]) for name in ("href", "src") if name in given]
        self.ids += [str(given["id"])] if "id" in given else []


def report(run: str) -> str:
    return f"<!DOCTYPE html><title>{run}</title>"


def made(place: Path, nights: int = 10, **options: str) -> Path:
    write_site(made_site(nights, **options), place, report)  # type: ignore[arg-type]
    return place


def test_every_link_leads_to_a_page_of_the_site(tmp_path: Path) -> None:
    site = made(tmp_path / "s", 40)
    texts = {path.relative_to(site).as_posix(): Links(path.read_text()) for path in site.rglob("*.html")}
    count = 0
    for name, page in texts.items():
        for link in page.links:
            assert not re.match(r"\w+:|//", link), f"{name} refers to the outside: {link}"
            target, _, anchor = link.partition("#")
            there = (site / name).parent.joinpath(target).resolve() if target else site / name
            assert there.is_file(), f"{name}: {link}"
            if anchor:
                assert anchor in texts[there.relative_to(site.resolve()).as_posix()].ids, f"{name}: {link}"
            count += 1
    assert count > 1000
    assert len(set(texts["index.html"].ids)) == len(texts["index.html"].ids)


def test_tonight_is_at_the_top_and_bad_news_first() -> None:
    index = dict(pages(made_site(10), frozenset()))["index.html"]
    for before, after in (
        ("What changed", "Open regressions"),
        ("Open regressions", '<h2 id="items">'),
        ('class="badge regressed"', 'class="badge verdict"'),
    ):
        assert index.index(before) < index.index(after)
    assert "1 needs a look: 3 items, 3 ran, 0 unchanged." in index


def test_a_series_page_marks_the_change_point_with_its_range_and_has_a_table_behind_each_plot() -> None:
    text = dict(pages(made_site(100), frozenset()))[series_page("stable", SERIES[0])]
    assert 'href="#e1"' in text
    assert 'id="e1"' in text
    assert "git log --oneline aaaaaaaaaaaa..bbbbbbbbbbbb" in text
    assert text.count('<svg class="trend"') == 2 * text.count("Table: 100 nights") == 12
    assert text.count("Older nights, by month") == 6
    assert "2.00 (" not in text.partition("Older nights")[0]


def test_a_thousand_nights_stay_small(tmp_path: Path) -> None:
    texts = dict(pages(made_site(1000), frozenset()))
    assert len(texts["index.html"]) < 300_000
    assert max(len(texts[series_page(item, s)]) for item in ITEMS for s in SERIES) < 1_000_000
    assert len(texts) == 3000 + 6 + 33 + 1


def test_what_a_patch_or_a_guest_said_stays_text(tmp_path: Path) -> None:
    for name, text in pages(made_site(8, hostile=HOSTILE), frozenset()):
        assert "<script>alert" not in text, name
        assert "\x1b" not in text, name
        assert "\u202e" not in text, name
        assert Links(text).tags.count("script") == 1, name


def test_pages_forbid_every_request_and_allow_only_their_own_script() -> None:
    for text in dict(pages(made_site(3), frozenset())).values():
        assert re.search(
            r"default-src 'none'; style-src 'sha256-[\w+/=]+'; script-src 'sha256-[\w+/=]+'", text.replace("&#39;", "'")
        )


def test_names_of_files_stay_inside_and_apart() -> None:
    assert slug("stable", "wakeup-gran+off") == "stable--wakeup-gran+off"
    odd = [slug("../../x"), slug("..", "..", "x"), slug("a/b"), slug("a-b "), slug(".."), slug("")]
    assert all("/" not in name and not name.startswith(".") for name in odd)
    assert len(set(odd)) == len(odd)


def test_an_empty_history_has_an_index_too(tmp_path: Path) -> None:
    empty = dataclasses.replace(
        made_site(1), tonight=None, news=(), runs=(), trends={}, events=(), nights=(), older_news={}
    )
    write_site(empty, tmp_path, report)
    assert "No night has been held yet." in (tmp_path / "index.html").read_text()
    assert feedparser.parse((tmp_path / "feed.xml").read_text()).bozo == 0


@pytest.mark.parametrize(("url", "hostile"), [("https://ci.example/kpatch", ""), ("", HOSTILE)])
def test_the_feed_is_what_a_reader_takes(url: str, hostile: str) -> None:
    text = feed(made_site(10, url=url, hostile=hostile))
    read = feedparser.parse(text)
    assert (read.bozo, read.version) == (0, "atom10")
    assert read.feed.title == "kpatch-ci nightly"
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", read.feed.id)
    assert read.feed.updated_parsed is not None
    (entry,) = read.entries
    assert entry.title.startswith("regressed: stable: wakeup-gran (patched), arm64: hackbench time -5.00 %")
    assert entry.updated == "2026-01-10T02:00:00+00:00"
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", entry.id)
    assert entry.link == (f"{url}/" if url else "") + series_page("stable", SERIES[0])
    assert feed(made_site(10, url=url, hostile=hostile)) == text


def test_a_quiet_night_is_no_entry_and_three_lines() -> None:
    site = dataclasses.replace(made_site(10, quiet=True), events=())
    assert feedparser.parse(feed(dataclasses.replace(site, older_news={"20260110-020000": ()}))).entries == []
    text = mail_text(site)
    assert text == "Nothing changed: 3 items, 0 ran, 3 unchanged.\n\nhttps://ci.example/kpatch/index.html\n"
    assert subject(site) == "kpatch-ci nightly: nothing changed"


def test_a_regression_of_tonight_is_none_of_earlier_nights() -> None:
    site = made_site(10)
    assert "\nOne regression of an earlier night is open.\n" in mail_text(site)
    tonight = dataclasses.replace(site, events=(made_event(9),))
    assert "earlier night" not in mail_text(tonight)
    assert "earlier night" not in mail_html(tonight)


def test_open_regressions_are_newest_first() -> None:
    first, second = made_event(7), made_event(8)
    closed = dataclasses.replace(made_event(6), standing="recovered", closed_by="x")
    assert open_events(dataclasses.replace(made_site(10), events=(closed, first, second))) == [second, first]


def test_what_a_change_point_shows_in_stands_below_it() -> None:
    text = dict(pages(made_site(100), frozenset()))[series_page("stable", SERIES[0])]
    assert "shows in: groups=8 time -7.00 %, groups=4 context_switches -9.00 %" in text


def test_how_much_a_night_could_have_told_is_said_in_site_and_mail() -> None:
    site = made_site(10, quiet=True)
    words = "3 boots: no test of 40 figures together can tell any change from noise; 11 boots or more can"
    last = site.runs[-1]
    told = dataclasses.replace(site, runs=(*site.runs[:-1], dataclasses.replace(last, reach=words)), events=())
    assert reach(told) == [f"next, {words}"]
    assert f"Against the night before: next, {words}." in " ".join(mail_text(told).split())
    assert f"Against the night before: next, {words}." in mail_html(told)
    made = dict(pages(told, frozenset()))
    assert f"Against the night before: next, {words}." in made["index.html"]
    assert f"Figures against the night before: {words}." in made[run_page(last.run.run)]
    assert "Against the night before" not in mail_text(site)


def test_a_subject_that_is_too_long_ends_after_a_word() -> None:
    news = News(Kind.FIRST, "topic", f"{', '.join(['schedutil-iowait-boost'] * 3)}: no night before to compare with")
    site = dataclasses.replace(made_site(10), news=(news, news))
    said = "first night: topic: schedutil-iowait-boost, schedutil-iowait-boost, schedutil-iowait-boost: no..."
    assert subject(site) == f"kpatch-ci nightly: {said} (+1)"


def test_a_mail_tells_the_verdict_first_in_text_and_html() -> None:
    site = made_site(10, hostile=" <b>x</b> \u202e")
    read = message_from_bytes(
        bytes(message(site, "ci@b.example", ("a@b.example", "c@d.example"))), policy=policy.default
    )
    assert read["Subject"].startswith("kpatch-ci nightly: regressed: stable: wakeup-gran (patched), arm64")
    assert (read["To"], read["From"], read["Auto-Submitted"]) == (
        "a@b.example, c@d.example",
        "ci@b.example",
        "auto-generated",
    )
    text, html = (read.get_body((kind,)).get_content() for kind in ("plain", "html"))  # type: ignore[union-attr]
    assert text.splitlines()[0] == "1 needs a look: 3 items, 3 ran, 0 unchanged."
    assert text.splitlines()[2].startswith("REGRESSED: stable: ")
    assert max(map(len, text.splitlines())) <= 76
    assert "https://ci.example/kpatch/index.html" in text
    assert "<b>x</b>" not in html
    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert not set(Links(html).tags) & {"img", "script", "link", "style", "iframe"}


def test_what_is_no_more_is_removed_and_nothing_else_ever(tmp_path: Path) -> None:
    made(tmp_path, 40)
    (tmp_path / "runs" / "notes.txt").write_text("mine")
    (tmp_path / "logo.png").write_text("mine")
    made(tmp_path, 8)
    there = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert {"runs/notes.txt", "logo.png"} <= there
    assert not [name for name in there if "20260208" in name]
    assert set(json.loads((tmp_path / MANIFEST).read_text())["files"]) == there - {
        "runs/notes.txt",
        "logo.png",
        MANIFEST,
        f"{MANIFEST}.lock",
    }
    assert not (tmp_path / "nights" / "2026-02.html").exists()


def test_a_file_that_is_not_ours_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("my home page")
    with pytest.raises(UserError, match=r"index.html: is there already and was not made by us"):
        made(tmp_path)
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".lock"] == ["index.html"]
    assert (tmp_path / "index.html").read_text() == "my home page"


@pytest.mark.parametrize("text", ["{", "[]", '{"files": ["../x"]}', '{"files": ["/etc/passwd"]}', '{"files": [1]}'])
def test_a_damaged_list_of_our_files_removes_nothing(tmp_path: Path, text: str) -> None:
    made(tmp_path)
    before = (tmp_path / "index.html").read_text()
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(InfrastructureError, match="damaged"):
        made(tmp_path, 3)
    assert (tmp_path / "index.html").read_text() == before


def test_a_full_disk_leaves_the_index_as_it_was_and_the_next_time_repairs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, 5)
    before = (tmp_path / "index.html").read_text()
    real, count = atomic.write_text, 0

    def full(path: Path, text: str) -> None:
        nonlocal count
        count += 1
        if count > 7:
            raise InfrastructureError(f"no space left on the disk that holds {path.parent}", hint="free some")
        real(path, text)

    with monkeypatch.context() as patched:
        patched.setattr(write, "write_text", full)
        with pytest.raises(InfrastructureError, match="no space left"):
            made(tmp_path, 9)
    assert (tmp_path / "index.html").read_text() == before
    made(tmp_path, 2)
    there = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.html")}
    assert there == {name for name in json.loads((tmp_path / MANIFEST).read_text())["files"] if name.endswith(".html")}
    assert not [name for name in there if "20260109" in name]


def test_only_what_changed_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, 20)
    written: list[str] = []

    def noted(path: Path, text: str) -> None:
        written.append(path.name)
        atomic.write_text(path, text)

    monkeypatch.setattr(write, "write_text", noted)
    made(tmp_path, 20)
    assert written == [MANIFEST, MANIFEST]
