# SPDX-License-Identifier: GPL-2.0-or-later
"""What a history must do, whatever database it is in. Subclasses give ``place``, an empty one for each test."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text

from kpatch_ci.model.errors import InfrastructureError, UserError
from kpatch_ci.model.history import Limit
from kpatch_ci.pipeline.nightsite import gather
from kpatch_ci.store.history import schema, tables
from kpatch_ci.store.history.database import Database
from kpatch_ci.store.history.figures import all_samples, figures, lines
from kpatch_ci.store.history.nights import night_fingerprints, night_parts, night_runs
from kpatch_ci.store.history.place import find_place
from kpatch_ci.store.history.query import Filter, list_runs, read_run, read_runs
from kpatch_ci.store.history.record import record
from kpatch_ci.store.history.rows import rows_of
from tests.fakes.recorded import comparisons, document
from tests.fakes.site import night_document, night_name

PROJECT = Path(__file__).resolve().parents[2]


def start_writer(place: str, first: int, count: int) -> subprocess.Popen[str]:
    """A process that records; its lines are the names that it was told are recorded."""
    argv = [sys.executable, "-m", "tests.contracts.history_writer", place, str(first), str(count)]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.Popen(argv, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True)


def check_whole(database: Database) -> list[str]:
    """Names of all runs; fails where one has more or fewer rows than its document gives."""
    runs = tables.runs.c
    with database.reading() as connection:
        found = {row.digest: row for row in connection.execute(select(runs.id, runs.name, runs.digest))}
        counts = {
            name: {
                row[0]: row[1] for row in connection.execute(select(table.c.run, func.count()).group_by(table.c.run))
            }
            for name, table in tables.metadata.tables.items()
            if name != "runs"
        }
    for made in read_runs(database, Filter()):
        wanted = rows_of(made, 0.0)
        row = found[wanted.run["digest"]]
        there = {table: counts[table].get(row.id, 0) for table in wanted.children}
        assert there == {table: len(rows) for table, rows in wanted.children.items()}, row.name
    keys = {row.id for row in found.values()}
    for table, by_run in counts.items():
        assert set(by_run) <= keys, f"{table} has rows of no run"
    return sorted(row.name for row in found.values())


class HistoryContract:
    """The tests."""

    writers = 30
    """Runs that each of two processes records at once."""
    kills = 5
    """Processes that are killed while they record."""

    @pytest.fixture
    def database(self, place: str) -> Database:
        return Database(find_place(place))

    def test_a_run_comes_back_as_it_was(self, database: Database) -> None:
        given = document(3)
        done = record(database, given)
        assert (done.name, done.new) == ("20260104-020000", True)
        assert read_run(database, done.name) == given

    def test_recording_again_changes_nothing(self, database: Database) -> None:
        first = record(database, document(3))
        assert record(database, document(3)) == type(first)(first.name, new=False)
        assert check_whole(database) == [first.name]

    def test_two_runs_of_one_second_are_both_kept(self, database: Database) -> None:
        record(database, document(3))
        other = record(database, document(3, seconds=99.0))
        assert other.new
        assert other.name.startswith("20260104-020000~")
        assert record(database, document(3, seconds=99.0)).name == other.name
        assert [run["seconds"] for run in read_runs(database, Filter())] == [3.5, 99.0]

    def test_rows_say_what_the_document_says(self, database: Database) -> None:
        given = document(0)
        record(database, given)
        found = figures(database, Filter())
        wanted = comparisons(given)
        assert [(f.workload, f.case, f.metric, f.verdict, f.change_percent) for f in found] == [
            (c["workload"], c["case"], c["metric"], c["verdict"], c["change_percent"]) for c in wanted
        ]
        assert [(s.seed, s.baseline, s.patched) for s in all_samples(database, Filter())] == [
            row for c in wanted for row in zip(c["seeds"], c["baseline"], c["patched"], strict=True)
        ]

    def test_filters(self, database: Database) -> None:
        for number in range(4):
            tree = {"label": "debian:6.1" if number < 3 else "debian:6.12", "release": f"6.{number}.1", "tree_id": "t"}
            record(database, document(number, status="failed" if number == 1 else "passed", tree=tree))
        days = [document(n)["run_id"] for n in range(4)]

        def names(**wanted: Any) -> list[str]:
            return [row.name for row in list_runs(database, Filter(**wanted))]

        assert names() == days
        assert names(status="failed") == days[1:2]
        assert names(tree="debian:6.12") == days[3:]
        assert names(tree="6.2") == days[2:3]
        assert names(tree="6_2") == []
        assert names(limit=2) == days[2:]
        assert names(series="worse") == days
        assert names(series="wors") == []
        assert names(series="worse", arch="x86_64", workload="dd") == []
        assert names(series="good", arch="arm64", workload="hackbench") == days
        assert names(since=_at(1), until=_at(2)) == days[1:3]

    def test_a_list_row_tells_series_and_verdicts(self, database: Database) -> None:
        given = document(0)
        record(database, given)
        (row,) = list_runs(database, Filter())
        primary = [c["verdict"] for c in comparisons(given) if c["primary"]]
        assert row.series == ("good", "worse")
        assert row.verdicts == {verdict: primary.count(verdict) for verdict in primary}

    def test_names(self, database: Database) -> None:
        for number in (0, 1):
            record(database, document(number))
        assert read_run(database, "latest")["run_id"] == "20260102-020000"
        assert read_run(database, "20260101")["run_id"] == "20260101-020000"
        with pytest.raises(UserError, match=r"several runs begin with 202601 .*20260101-020000, 20260102-020000"):
            read_run(database, "202601")
        with pytest.raises(UserError, match="no run 2027"):
            read_run(database, "2027")

    def test_text_that_databases_refuse(self, database: Database) -> None:
        given = document(0, command="a\0b \ud800 '; DROP TABLE runs; --")
        record(database, given)
        assert read_run(database, "latest") == given
        assert check_whole(database) == ["20260101-020000"]

    def test_lines_hold_samples_and_conditions(self, database: Database) -> None:
        for number in range(2):
            given = document(number)
            given["fingerprint"]["gcc_arm64"] = f"14.{number}"
            record(database, given)
        found = lines(database, Filter(series="good", case="groups=8", metric="time"))
        patched = next(nights for line, nights in found.items() if line.arm == "patched")
        assert [night.run for night in patched] == ["20260101-020000", "20260102-020000"]
        assert patched[0].values == {"1.1": 0.9, "1.2": 1.8, "2.1": 2.7}
        assert [night.conditions["compiler"] for night in patched] == ["14.0", "14.1"]

    def test_the_shared_baseline_is_one_line(self, database: Database) -> None:
        record(database, document(0))
        baseline = [line for line in lines(database, Filter(case="groups=8", metric="time")) if line.arm == "baseline"]
        assert [line.series for line in baseline] == ["baseline"]

    def test_a_primary_figure_over_other_cases_is_another_line(self, database: Database) -> None:
        fewer = document(1)
        for arch in (a for s in fewer["series"] for a in s["arches"]):
            arch["comparisons"] = [c for c in arch["comparisons"] if c["case"] != "groups=8"]
        for given in (document(0), fewer, document(2)):
            record(database, given)
        found = lines(database, Filter(series="good", workload="hackbench", case="all"))
        nights = {line.cases: [n.run for n in nights] for line, nights in found.items() if line.arm == "patched"}
        assert nights == {
            ("groups=8", "groups=8,mode=process-pipes"): ["20260101-020000", "20260103-020000"],
            ("groups=8,mode=process-pipes",): ["20260102-020000"],
        }

    def test_runs_of_nights_are_told_from_others(self, database: Database) -> None:
        _nights(database)
        found = night_runs(database)
        assert [(run.item, run.night) for run in found] == [
            (item, night_name(number)) for number in range(3) for item in ("stable", "mainline")
        ]
        assert [run.inputs for run in night_runs(database, "stable")] == ["i0", "i1", "i2"]
        last, made = found[-2], night_document(2, "stable")
        assert (last.run, last.status, last.mode) == (made["run_id"], made["status"], made["mode"])
        assert last.tree == "/srv/linux"
        assert (last.release, last.commit, last.seconds) == ("6.1.2", f"{2:040x}", 2.5)
        assert night_runs(database, "none") == []

    def test_parts_and_fingerprints_of_nights(self, database: Database) -> None:
        _nights(database)
        parts = night_parts(database)
        own = [part for part in parts if part.run == "20260103-020000"]
        wanted = night_document(2, "stable")["series"]
        assert [(p.series, p.arch, p.status, p.applied) for p in own] == [
            (s["name"], a["arch"], a["status"], a["apply"]["method"]) for s in wanted for a in s["arches"]
        ]
        assert [part.run for part in parts] == sorted(part.run for part in parts)
        prints = night_fingerprints(database)
        assert set(prints) == {run.run for run in night_runs(database)}
        assert [prints[run.run]["gcc_arm64"] for run in night_runs(database, "stable")] == ["14.0", "14.1", "14.2"]
        assert not [key for key in prints["20260103-020000"] if key.startswith("nightly")]

    def test_the_site_of_nights_is_the_same_in_any_database(self, database: Database, tmp_path: Path) -> None:
        reference = Database(find_place(str(tmp_path / "reference.sqlite3")))
        limits = {"time": Limit("time", percent=3)}
        sites = []
        for one in (reference, database):
            _nights(one, 12)
            sites.append(replace(gather(one, (), limits, ("stable", "mainline")), made=""))
        assert sites[0] == sites[1]
        slower = [e for e in sites[1].events if e.metric == "time" and e.item == "stable"]
        assert slower
        assert {e.run for e in slower} == {"20260107-020000"}
        assert {round(e.change or 0) for e in slower} == {-10}
        assert {e.git_range for e in slower} == {f"{5:040x}"[:12] + ".." + f"{6:040x}"[:12]}

    def test_the_migrations_make_what_the_code_expects(self, database: Database) -> None:
        from alembic.autogenerate import compare_metadata  # noqa: PLC0415
        from alembic.migration import MigrationContext  # noqa: PLC0415

        database.prepare()
        with database.reading() as connection:
            assert compare_metadata(MigrationContext.configure(connection), tables.metadata) == []

    def test_the_newest_migration_is_the_known_one(self) -> None:
        from alembic.config import Config  # noqa: PLC0415
        from alembic.script import ScriptDirectory  # noqa: PLC0415

        config = Config()
        config.set_main_option("script_location", str(schema.MIGRATIONS))
        scripts = ScriptDirectory.from_config(config)
        assert scripts.get_heads() == [schema.HEAD]
        assert [s.revision for s in scripts.walk_revisions()][::-1] == list(schema.KNOWN)

    def test_a_newer_schema_is_refused_and_left_alone(self, database: Database) -> None:
        record(database, document(0))
        with database.writing() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        for attempt in (lambda: record(database, document(1)), lambda: list_runs(database, Filter())):
            with pytest.raises(UserError, match=r"schema 9999, made by a newer kpatch-ci.*update kpatch-ci") as caught:
                attempt()
            assert database.place.shown in str(caught.value)
        with database.writing() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = :head"), {"head": schema.HEAD})
        assert check_whole(database) == ["20260101-020000"]

    def test_somebody_elses_tables_are_refused(self, database: Database) -> None:
        database.prepare()
        with database.writing() as connection:
            connection.execute(text("DROP TABLE alembic_version"))
        with pytest.raises(UserError, match="a table `runs` that is none of ours"):
            record(database, document(0))

    def test_making_the_tables_is_all_or_nothing(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        from alembic import command  # noqa: PLC0415

        whole = command.upgrade

        def cut_short(*arguments: Any) -> None:
            whole(*arguments)
            raise InfrastructureError("killed")

        with monkeypatch.context() as patched:
            patched.setattr(command, "upgrade", cut_short)
            with pytest.raises(InfrastructureError):
                record(database, document(0))
        with pytest.raises(UserError, match="there is no history yet"):
            list_runs(database, Filter())
        assert record(database, document(0)).new

    def test_a_run_that_cannot_be_stored_leaves_nothing(self, database: Database) -> None:
        record(database, document(0))
        broken = document(1)
        broken["series"][0]["arches"][0]["build"]["baseline"]["objects"] = 1 << 80
        with pytest.raises(UserError, match="does not fit into the history"):
            record(database, broken)
        assert check_whole(database) == ["20260101-020000"]

    def test_nothing_recorded_yet(self, database: Database) -> None:
        with pytest.raises(UserError, match="there is no history yet"):
            list_runs(database, Filter())
        database.prepare()
        assert list_runs(database, Filter()) == []
        with pytest.raises(UserError, match="holds no run"):
            read_run(database, "latest")

    def test_two_processes_lose_none(self, place: str, database: Database) -> None:
        writers = [start_writer(place, first, self.writers) for first in (0, self.writers)]
        said = [line for writer in writers for line in writer.communicate(timeout=600)[0].split()]
        assert [writer.returncode for writer in writers] == [0, 0]
        assert len(said) == 2 * self.writers
        assert check_whole(database) == sorted(said)

    def test_two_processes_with_the_same_runs_record_each_once(self, place: str, database: Database) -> None:
        writers = [start_writer(place, 0, self.writers) for _ in range(2)]
        said = [writer.communicate(timeout=600)[0].split() for writer in writers]
        assert [writer.returncode for writer in writers] == [0, 0]
        assert check_whole(database) == sorted(said[0]) == sorted(said[1])

    def test_killed_at_any_instant_it_is_whole(self, place: str, database: Database) -> None:
        dice = random.Random(6)  # noqa: S311 (instants, not secrets)
        said: list[str] = []
        for attempt in range(self.kills):
            writer = start_writer(place, attempt * 1000, 1000)
            assert writer.stdout is not None
            if dice.random() < 0.8:  # else: perhaps while it starts, or makes the tables
                said.append(writer.stdout.readline().strip())
            time.sleep(dice.uniform(0, 0.3))
            writer.kill()
            said += writer.communicate(timeout=60)[0].split()
        assert record(database, document(999_000 % 900_000)).new
        found = check_whole(database)
        assert set(said) <= set(found)
        assert len(found) <= len(said) + self.kills + 1  # at most one that it did not come to say


def _nights(database: Database, count: int = 3) -> None:
    """Nights of two items, of which ``stable`` is a tenth slower from the seventh on; and a person's run between them."""
    for number in range(count):
        tree = {"label": "/srv/linux", "release": f"6.1.{number}", "commit": f"{number:040x}", "tree_id": f"t{number}"}
        made = night_document(number, "stable", inputs=f"i{number}", slower=1.1 if number >= 6 else 1.0, tree=tree)
        made["fingerprint"]["gcc_arm64"] = f"14.{number}"
        record(database, made)
        record(database, night_document(number, "mainline"))
    record(database, document(1, "20260102-120000"))


def _at(number: int) -> float:
    return float(rows_of(document(number), 0).run["started_at"])
