# SPDX-License-Identifier: GPL-2.0-or-later
"""``kpatch-ci nightly`` with a fake pipeline and a real history: what it prints, writes, sends and returns."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from email import message_from_bytes, policy
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from kpatch_ci.cli.main import main
from kpatch_ci.cli.nightly import perform, work
from kpatch_ci.config.nightly import Item
from kpatch_ci.model.errors import UserError
from kpatch_ci.model.nightly import Night, NightRun
from kpatch_ci.pipeline.nightly import Measured, Prepared
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.nights import night_runs
from kpatch_ci.store.history.place import find_place
from kpatch_ci.store.history.record import record
from tests.fakes.results import arch_result, run_result
from tests.fakes.site import night_document

PROJECT = Path(__file__).resolve().parents[3]
Output = pytest.CaptureFixture[str]
SLOW = 1.2


class World:
    """The trees outside: ``inputs`` and ``slower`` by item, and what is broken."""

    def __init__(self) -> None:
        self.number = 0
        self.inputs: dict[str, str] = {}
        self.slower: dict[str, float] = {}
        self.gone: set[str] = set()
        self.measured: list[str] = []


class FakeWork:
    """Items whose figures are made up, recorded for real."""

    world = World()

    def __init__(self, settings: Any, place: Any, database: Database | None, **_: Any) -> None:
        self.settings, self.database = settings, database

    def prepare(self, item: Item, night: Night) -> Prepared:
        if item.name in self.world.gone:
            raise UserError(f"no such tree: {item.tree}", where="tree", expected="debian:X.Y or a directory")
        return Prepared(self.world.inputs.get(item.name, "i"), True, "linux 6.1", lambda: self._measure(item, night))

    def _measure(self, item: Item, night: Night) -> Measured:
        world = self.world
        world.measured.append(item.name)
        slower, inputs = world.slower.get(item.name, 1.0), world.inputs.get(item.name, "i")
        made = night_document(world.number, item.name, status="passed", slower=slower, inputs=inputs)
        made["fingerprint"]["nightly"]["night"] = night.name
        if self.database is None:
            return Measured(made["run_id"], "passed", str(self.settings.results / night.name), recorded=False)
        return Measured(record(self.database, made).name, "passed", str(self.settings.results / night.name))

    def newer(self, item: Item) -> str:
        return ""

    def last_good(self, item: Item) -> NightRun | None:
        found = night_runs(self.database, item.name) if self.database else []
        return found[-1] if found else None


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A directory with a pipeline.yaml of two items, a history and a cache of its own."""
    for name in ("patches", "qemu", "kconfigs"):
        (tmp_path / name).symlink_to(PROJECT / name)
    write_pipeline(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KPATCH_CI_HISTORY", str(tmp_path / "h.db"))
    monkeypatch.setenv("KPATCH_CI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(perform, "PipelineWork", FakeWork)
    monkeypatch.setattr(FakeWork, "world", World())
    return FakeWork.world


def write_pipeline(place: Path, extra: str = "") -> None:
    (place / "pipeline.yaml").write_text(
        (PROJECT / "pipeline.yaml").read_text()
        + f"\nnightly:\n  site: site\n{extra}  items:\n"
        + "    - {name: stable, tree: 'debian:6.1'}\n    - {name: next, tree: /srv/linux@next}\n"
    )


@pytest.fixture
def night(world: World, capsys: Output, tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """Holds the next night: exit status, stdout, stderr."""

    def hold(*arguments: str) -> tuple[int, str, str]:
        code = main(["nightly", *arguments])
        world.number += 1
        for path in (tmp_path / "cache/state/nightly").rglob(
            "night-*.json"
        ):  # a night a second is none: they are a day apart
            data = json.loads(path.read_text())
            if not data["name"].startswith("2025"):
                name = f"202512{10 + world.number:02d}-020000"
                path.with_name(f"night-{name}.json").write_text(json.dumps({**data, "name": name}))
                path.unlink()
                rename_night(tmp_path / "h.db", data["name"], name)
        said = capsys.readouterr()
        return code, said.out, said.err

    return hold


def rename_night(file: Path, old: str, new: str) -> None:
    """In the history, which may be no database."""
    try:
        with sqlite3.connect(file) as connection:
            connection.execute(
                "UPDATE fingerprints SET value = ? WHERE key = 'nightly.night' AND value = ?", (new, old)
            )
    except sqlite3.DatabaseError:
        return
    finally:
        connection.close()


def test_nights_from_the_first_to_a_regression(
    night: Callable[..., tuple[int, str, str]], world: World, tmp_path: Path
) -> None:
    code, out, _ = night()
    assert code == 1
    assert out.startswith(
        "2 need a look: 2 items, 2 ran, 0 unchanged.\n\nFAILED: stable: worse, arm64: hackbench regressed"
    )
    assert "no night before to compare with" in out
    code, out, err = night()
    assert (code, world.measured) == (0, ["stable", "next"])
    assert out.startswith("Nothing changed: 2 items, 0 ran, 2 unchanged.")
    assert "stable: unchanged, passed: unchanged since 20251211-020000, not run" in err
    world.inputs["next"], world.slower["next"] = "moved", SLOW
    code, out, _ = night("-q")
    assert code == 1
    assert world.measured == ["stable", "next", "next"]
    assert "REGRESSED: next: " in out
    assert "Unchanged, not run: stable." in out
    index = (tmp_path / "site/index.html").read_text()
    assert index.index("badge regressed") < index.index('<h2 id="items">')
    page = next((tmp_path / "site/series").glob("next--*.html")).read_text()
    assert "Change points" in page
    mails = sorted((tmp_path / "results/nightly").glob("*/mail.eml"), key=lambda path: path.stat().st_mtime_ns)
    assert message_from_bytes(mails[-1].read_bytes(), policy=policy.default)["Subject"].startswith(
        "kpatch-ci nightly: regressed"
    )
    world.slower["next"], world.inputs["next"] = 1.0, "reverted"
    code, out, _ = night()
    assert "recovered: next: " in out
    pages = []
    for _ in range(2):
        assert main(["nightly", "--site-only"]) == 0
        pages.append({p: p.read_bytes() for p in (tmp_path / "site").rglob("*.html") if p.name != "index.html"})
    assert pages[0] == pages[1]
    assert len(pages[0]) > 10


def test_quiet_says_nothing_on_a_quiet_night(night: Callable[..., tuple[int, str, str]]) -> None:
    night("-q")
    assert night("-q") == (0, "", "")


def test_a_tree_that_vanished_is_said_and_the_other_item_goes_on(
    night: Callable[..., tuple[int, str, str]], world: World, tmp_path: Path
) -> None:
    world.gone.add("next")
    code, out, err = night("-q")
    assert (code, world.measured) == (3, ["stable"])
    assert "next: not done: tree: no such tree: /srv/linux@next" in err
    assert "NOT DONE: next: tree: no such tree: /srv/linux@next" in out
    assert "1 could not be done" in (tmp_path / "site/index.html").read_text()


def test_one_item_and_json(night: Callable[..., tuple[int, str, str]], world: World) -> None:
    _, out, _ = night("--item", "next", "--json")
    told = json.loads(out)
    assert world.measured == ["next"]
    assert (told["items"], told["outcomes"][0]["state"], told["exit_status"]) == (["next"], "ran", told["exit_status"])
    code, _, err = night("--item", "nxt")
    assert code == 2
    assert "--item: no item 'nxt' (did you mean 'next'?" in err


def test_a_dry_run_records_nothing(night: Callable[..., tuple[int, str, str]], world: World, tmp_path: Path) -> None:
    code, out, _ = night("--dry-run")
    assert (code, world.measured) == (0, [])
    assert out.splitlines() == [
        "stable: would run: linux 6.1; its first night",
        "next: would run: linux 6.1; its first night",
    ]
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("damage", ["damaged", "newer"])
def test_a_history_that_cannot_be_used_costs_no_item(
    damage: str, night: Callable[..., tuple[int, str, str]], world: World, tmp_path: Path
) -> None:
    night()
    site = (tmp_path / "site/index.html").read_bytes()
    if damage == "damaged":
        for path in tmp_path.glob("h.db*"):
            path.write_bytes(b"no database, and longer than a header of one " * 100)
    else:
        with sqlite3.connect(tmp_path / "h.db") as connection:
            connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.close()
    before = (tmp_path / "h.db").read_bytes()
    code, out, err = night()
    assert code == 3
    assert "NOT DONE: stable: measured, but not in the history" in out
    assert out.count("NOT DONE:") == 3  # two items and the history
    assert world.measured == ["stable", "next"] * 2
    assert ("is damaged" if damage == "damaged" else "newer") in err
    assert "every item is run; its results are on disk" in err
    assert (tmp_path / "site/index.html").read_bytes() == site
    assert (tmp_path / "h.db").read_bytes() == before


def test_a_site_that_cannot_be_written_is_a_trouble_and_the_rest_is_kept(
    night: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/index.html").write_text("my own")
    code, _, err = night()
    assert code == 3
    assert "the site could not be written" in err
    assert (tmp_path / "site/index.html").read_text() == "my own"
    assert len(night_runs(Database(find_place(str(tmp_path / "h.db"))))) == 2
    assert len(list((tmp_path / "results/nightly").glob("*/mail.eml"))) == 1


@pytest.mark.parametrize(("send", "nights"), [("never", 0), ("news", 1), ("always", 2)])
def test_a_mail_is_sent_only_where_that_is_asked_for(
    send: str, nights: int, night: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    sent = tmp_path / "sent"
    sent.mkdir()
    tool = tmp_path / "fake-sendmail"
    tool.write_text(f'#!/bin/sh\nexec cat > "{sent}/$$"\n')
    tool.chmod(0o755)
    write_pipeline(tmp_path, f"  mail: {{to: a@b.example, send: {send}, sendmail: [{tool}]}}\n")
    night()
    night()
    assert len(list(sent.iterdir())) == nights
    for path in sent.iterdir():
        assert message_from_bytes(path.read_bytes(), policy=policy.default)["To"] == "a@b.example"


def test_a_sendmail_that_fails_is_said(night: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    write_pipeline(tmp_path, "  mail: {to: a@b.example, send: always, sendmail: [/bin/false]}\n")
    code, _, err = night()
    assert code == 3
    assert "the mail was not sent: false failed with exit status 1" in err


def test_the_exports_of_the_file_are_beside_an_item_s_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "run", lambda *_, **__: run_result(("good", arch_result())))
    settings = cast(Any, SimpleNamespace(results=tmp_path))
    real = work.PipelineWork(settings, find_place(str(tmp_path / "h.db")), None, jobs=1, console=Console(quiet=True))
    left: list[str] = []
    config = SimpleNamespace(exports=("csv",), engine=None, timeouts=None)
    session = cast(Any, SimpleNamespace(config=config, close=lambda: left.append("hosts")))
    session.with_hosts = lambda _: session
    done = real._measure(Item("stable", "debian:6.1"), session, (), tmp_path / "out", ("20260101-020000", "i"))
    assert done.recorded
    assert (tmp_path / "out/samples.csv").read_text().count("hackbench") > 0
    (night,) = night_runs(Database(find_place(str(tmp_path / "h.db"))))
    assert (night.item, night.night, night.inputs) == ("stable", "20260101-020000", "i")
    assert left == ["hosts"], "they are left when the item is done"
