"""Runs of earlier versions open, are brought up to date in one transaction, and go on."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import tensortide as tt
from tensortide.tracker import schema
from tensortide.tracker.state import block_size
from tensortide.tracker.verify import check_run

OLD = Path(__file__).with_name("runs_0_4_0")
RUNS = ["economy", "history", "counts"]


@pytest.fixture
def old(tmp_path, monkeypatch):
    """A copy of the runs of 0.4.0 with their sources, as the folder that one is in."""
    shutil.copytree(OLD, tmp_path / "old")
    monkeypatch.chdir(tmp_path / "old")
    return tmp_path / "old"


def rows_on_disk(run):
    """The factors as the ledger of 0.4.0 has them, read without the package."""
    db = sqlite3.connect(run / "run.sqlite")
    facts = json.loads(db.execute("SELECT value FROM meta WHERE key = 'facts'").fetchone()[0])
    found = []
    for mode, size in enumerate(facts["shape"]):
        blocks = db.execute(
            "SELECT rows FROM factors WHERE place >= ? AND place < ? ORDER BY place",
            (mode << 40, (mode + 1) << 40),
        ).fetchall()
        assert len(blocks) == -(-size // block_size(facts["rank"]))
        found.append(np.frombuffer(b"".join(b for (b,) in blocks)).reshape(size, -1))
    db.close()
    return found


@pytest.mark.parametrize("name", RUNS)
def test_a_reader_reads_an_old_run_and_changes_nothing(old, name):
    expected = rows_on_disk(old / name)
    before = {f: f.read_bytes() for f in sorted((old / name).rglob("*")) if f.is_file()}
    with tt.Tracker.open(old / name, read_only=True) as run:
        for rows, stored in zip(run.model.factors_, expected, strict=True):
            assert rows.tobytes() == stored.tobytes()
        assert run.batches().num_rows
    assert all(found.good for found in check_run(old / name))
    after = {f: f.read_bytes() for f in before}
    assert after == before
    assert _version(old / name) == 1


@pytest.mark.parametrize("name", RUNS)
def test_a_writer_brings_an_old_run_up_to_date_and_goes_on(old, name):
    expected = rows_on_disk(old / name)
    with tt.Tracker.open(old / name) as run:
        for rows, stored in zip(run.model.factors_, expected, strict=True):
            assert rows.tobytes() == stored.tobytes()
        assert _version(old / name) == schema.VERSION
        copy = run.model.copy()
        new = {"place": ["Kiel", "Bonn"], "age": ["old", "young"], "count": [40.0, 60.0],
               "date": ["2026-03-09"] * 2}  # fmt: skip
        info = run.ingest(new, batch_id="new")
        assert info.step == copy.n_steps_ + 1
        copy.update(new)
        for rows, also in zip(run.model.factors_, copy.factors_, strict=True):
            assert rows.tobytes() == also.tobytes()
    assert all(found.good for found in check_run(old / name))
    with tt.Tracker.open(old / name) as run:
        assert run.ingest(new, batch_id="new").repeated


def test_sources_of_an_old_run_are_known(old):
    with tt.Tracker.open("economy") as run:
        assert run.track("reports", on_bad="quarantine").records == 0
        with Path("reports/day7.csv").open("a") as file:
            file.write("Kiel,old,2026-03-07,70\n")
        assert run.track("reports", on_bad="quarantine").records == 1
        day1 = Path("reports/day1.csv")
        day1.write_text(day1.read_text().replace("Kiel", "Kehl"))
        with pytest.raises(tt.InputError, match="has changed since it was learned"):
            run.track("reports")
        (surprise,) = [s for s in run.surprises() if s.value == 5_000]
        assert surprise.low < surprise.high < 5_000
        assert surprise.probability < 1e-3
        assert surprise.cell["place"] == "Kiel"
        assert len(run.quarantined()) == 1
    with tt.Tracker.open("history") as run:
        assert run.track("events.jsonl").records == 0
        assert run.knows("late")


def test_sources_of_an_old_run_are_known_wherever_the_command_is_given(old, tmp_path, monkeypatch):
    """0.4.0 kept names as they were given; they are looked for beside the run, too."""
    monkeypatch.chdir(tmp_path)
    day1 = old / "reports" / "day1.csv"
    day1.write_text(day1.read_text().replace("Kiel", "Kehl"))
    changed = pytest.raises(tt.InputError, match="has changed since it was learned")
    with tt.Tracker.open("old/economy") as run, changed:
        run.track("old/reports", on_bad="quarantine")


@pytest.mark.parametrize("name", RUNS)
def test_a_migration_that_is_killed_anywhere_leaves_the_old_run(old, name, monkeypatch):
    """The disk has the old version or the new one, never something between."""
    from tests.tracker.test_machine import Crash, CrashingDatabase

    real, n_statements = schema.migrate, 0
    while _version(old / name) == 1:
        n_statements += 1

        def crashing(db, version, left=n_statements):
            real(CrashingDatabase(db, left, after=False), version)

        monkeypatch.setattr("tensortide.tracker.ledger.migrate", crashing)
        try:
            tt.Tracker.open(old / name).close()
        except Crash:
            assert _version(old / name) == 1
    assert n_statements > 10
    assert all(found.good for found in check_run(old / name))


def _version(run):
    db = sqlite3.connect(run / "run.sqlite")
    (found,) = db.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    db.close()
    return json.loads(found)


def test_a_new_run_has_the_tables_that_migrations_lead_to(old, tmp_path):
    def tables(path):
        db = sqlite3.connect(path / "run.sqlite")
        found = {}
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            columns = db.execute(f"PRAGMA table_info({name})")
            found[name] = {(c[1], c[2], c[3], c[5]) for c in columns}
        indices = db.execute("SELECT name FROM sqlite_master WHERE type = 'index'")
        found["indices"] = {name for (name,) in indices}
        db.close()
        return found

    tt.Tracker.create(tmp_path / "new", 2, modes=["a", "b"], value="v").close()
    tt.Tracker.open(old / "economy").close()
    assert tables(tmp_path / "new") == tables(old / "economy")


@pytest.mark.parametrize("name", RUNS)
def test_an_old_run_says_why_it_has_no_forecast(old, name):
    said = "has penalties" if name == "counts" else "begun by an earlier version"
    with tt.Tracker.open(old / name, read_only=True) as run:
        for model in (run.model, run.model.copy()):
            with pytest.raises(tt.InputError, match=said):
                model.forecast(3)
