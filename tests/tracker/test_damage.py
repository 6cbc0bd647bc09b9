"""Every bit of a ledger that decides anything is watched, and so is its end."""

from __future__ import annotations

import shutil
import sqlite3

import numpy as np
import pytest

import tensortide as tt
from tensortide.tracker.summary import summarise
from tensortide.tracker.verify import check_run
from tests.sources.samples import created, csv_text, rows

COLUMNS = {
    "meta": ("key", "value", "checksum"),
    "batches": (
        "batch_id", "kind", "at", "source", "path", "generation", "renamed", "digest", "head",
        "position", "part", "label", "records", "bad", "step", "shape", "report", "chain",
    ),
    "quarantine": ("seq", "source", "line", "reason", "record"),
    "segments": ("name", "kind", "checksum"),
    "surprises": ("seq", "cell", "value", "expected", "low", "high", "probability", "new_labels"),
    "labels": ("label",),
    "factors": ("rows",),
    "arrays": ("name", "dtype", "shape", "data"),
}  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run with history, surprises and a bad record."""
    folder = tmp_path_factory.mktemp("whole")
    source = folder / "a.csv"
    records = [list(r) for r in rows(8)]
    records[-3][4] = 5_000.0
    source.write_bytes(csv_text(records) + b"Kiel,1,2026-01-08,7,many\n")
    with created(folder / "run", "gocpt", keep_surprises=True) as run:
        run.track(source, step_by="reported", on_bad="quarantine", first=2)
        assert run.surprises()
        assert run.quarantined()
    assert all(found.good for found in check_run(folder / "run"))
    return folder / "run"


def flip(value, rng):
    """One bit of a value as SQLite holds it."""
    if isinstance(value, int):
        return value ^ (1 << int(rng.integers(0, 20)))
    if isinstance(value, float):
        return float(np.frombuffer(_bit(np.float64(value).tobytes(), rng, most=52))[0])
    data = value if isinstance(value, bytes) else value.encode()
    return _bit(data, rng) if isinstance(value, bytes) else _bit(data, rng, 7).decode("latin-1")


def _bit(data, rng, bits=8, most=None):
    changed = bytearray(data)
    at = int(rng.integers(0, len(changed) * 8 if most is None else most))
    changed[at // 8] ^= 1 << (at % 8 if bits == 8 else at % bits)
    return bytes(changed)


@pytest.mark.parametrize("table", COLUMNS)
def test_check_tells_of_every_changed_value(whole, tmp_path, table):
    rng = np.random.default_rng(5)
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    clean = (folder / "run.sqlite").read_bytes()
    key = "rowid" if table not in ("meta", "labels", "arrays") else None
    for column in COLUMNS[table]:
        (folder / "run.sqlite").write_bytes(clean)
        db = sqlite3.connect(folder / "run.sqlite")
        found = db.execute(f"SELECT {column} FROM {table}").fetchall()
        values = [v for (v,) in found if v is not None and v != ""]
        if not values:
            db.close()
            continue
        old = values[int(rng.integers(0, len(values)))]
        new = flip(old, rng)
        limit = f"AND {key} = (SELECT min({key}) FROM {table} WHERE {column} = ?)" if key else ""
        db.execute(
            f"UPDATE {table} SET {column} = ? WHERE {column} = ? {limit}",
            (new, old, *([old] if key else [])),
        )
        assert db.total_changes
        db.commit()
        db.close()
        findings = list(check_run(folder))
        assert not all(f.good for f in findings), (table, column, old, new)
        _only_sentences(folder)


@pytest.mark.parametrize("dtype", ["=f8", "(,)f8", "O", "", None])
def test_check_tells_of_a_type_that_is_written_in_another_way(whole, tmp_path, dtype):
    """`=f8` is what `<f8` is here, and one bit away from it."""
    damaged = _updated(whole, tmp_path, "arrays", "dtype", dtype, "name = 'gram_sums'")
    assert [f.what for f in check_run(damaged) if not f.good] == ["statistics", "model"]


@pytest.mark.parametrize("version", ["null", "[]", "two", "2.5", ""])
def test_check_tells_of_a_version_that_is_none(whole, tmp_path, version):
    damaged = _updated(whole, tmp_path, "meta", "value", version, "key = 'version'")
    (finding,) = check_run(damaged)
    assert not finding.good
    _only_sentences(damaged)


def _updated(whole, tmp_path, table, column, value, where):
    """A copy of a run with one field changed, also to what its column would not take."""
    shutil.copytree(whole, tmp_path / "run")
    db = sqlite3.connect(tmp_path / "run" / "run.sqlite")
    if value is None:
        db.execute("PRAGMA writable_schema = ON")
        db.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE name = ?", (table,)
        )
        db.commit()
        db.close()
        db = sqlite3.connect(tmp_path / "run" / "run.sqlite")
    db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value,))
    db.commit()
    db.close()
    return tmp_path / "run"


def _only_sentences(folder):
    """Whatever is asked of a damaged run, the answer is right or a sentence."""
    try:
        with tt.Tracker.open(folder, read_only=True) as run:
            run.batches(), run.surprises(), run.quarantined(), run.places(), repr(run)
            summarise(run)
    except tt.TensortideError:
        pass


def test_commands_answer_flipped_ledgers_with_sentences(whole, tmp_path, run):
    """A seeded sample of bits anywhere in the file; `make soak` has thousands."""
    _flip_anywhere(whole, tmp_path, run, n_flips=12, seed=3)


@pytest.mark.soak
def test_commands_answer_many_flipped_ledgers_with_sentences(whole, tmp_path, run):
    _flip_anywhere(whole, tmp_path, run, n_flips=1_000, seed=4)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(8))
def test_check_tells_of_every_flipped_bit_that_changes_what_the_ledger_says(whole, tmp_path, part):
    """All 254,000 of them, an eighth of the bytes at a time; about ten minutes on two cores."""
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    file = folder / "run.sqlite"
    clean, content = file.read_bytes(), _content(file)
    n_changes = 0
    for at in range(100 + part, len(clean), 8):
        for bit in range(8):
            data = bytearray(clean)
            data[at] ^= 1 << bit
            file.write_bytes(data)
            if _content(file) != content:
                n_changes += 1
                assert not all(found.good for found in check_run(folder)), (at, bit)
    assert n_changes > 1_000


def _flip_anywhere(whole, tmp_path, run, n_flips, seed):
    rng = np.random.default_rng(seed)
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    file = folder / "run.sqlite"
    clean = file.read_bytes()
    content = _content(file)
    silent = []
    for _ in range(n_flips):
        at = int(rng.integers(100, len(clean)))
        data = bytearray(clean)
        data[at] ^= 1 << int(rng.integers(0, 8))
        file.write_bytes(data)
        told = not all(found.good for found in check_run(folder))
        if not told and _content(file) != content:
            silent.append(at)
        for words in (["info"], ["report", "-o", str(tmp_path / "page.html")], ["check"]):
            done = run(words[0], str(folder), *words[1:])
            assert done.returncode in (0, 1, 2), (at, words, done.stderr)
            assert "Traceback" not in done.stderr, (at, words, done.stderr)
    assert not silent


def _content(file):
    """All that a ledger says, or None where it cannot be read."""
    db = sqlite3.connect(file)
    try:
        return {
            name: db.execute(f"SELECT {', '.join(columns)} FROM {name}").fetchall()
            for name, columns in COLUMNS.items()
        }
    except (sqlite3.Error, UnicodeDecodeError):
        return None
    finally:
        db.close()


def test_a_lost_log_is_told(tmp_path):
    """Killed, and its write-ahead log deleted: the rest is a ledger of an earlier time."""
    with created(tmp_path / "run") as run:
        for day in range(6):
            run.ingest(_day(day), batch_id=f"day {day}")
        for end in ("", "-wal"):  # as a kill would leave them
            shutil.copy(f"{tmp_path}/run/run.sqlite{end}", f"{tmp_path}/kept{end}")
        shutil.copytree(tmp_path / "run", tmp_path / "killed")
    killed = tmp_path / "killed"
    assert (killed / "run.sqlite-wal").stat().st_size > 0
    (killed / "run.sqlite-wal").unlink()
    (killed / "run.sqlite-shm").unlink(missing_ok=True)
    for read_only in (True, False):
        with pytest.raises(tt.FileError, match=r"6 batches were committed.*run\.sqlite-wal"):
            tt.Tracker.open(killed, read_only=read_only)
    assert not all(found.good for found in check_run(killed))
    (killed / "last-commit").unlink()  # what the sentence says
    with tt.Tracker.open(killed) as run:
        n_left = run.batches().num_rows
        assert n_left < 6
        assert not run.ingest(_day(5), batch_id="day 5").repeated


def test_a_mark_that_is_behind_or_half_written_is_harmless(tmp_path):
    mark = tmp_path / "run" / "last-commit"
    with created(tmp_path / "run") as run:
        run.ingest(_day(0))
        early = mark.read_bytes()
        run.ingest(_day(1))
    now = mark.read_bytes()
    for content in (early, now[: len(now) // 2], b"", None):
        mark.unlink(missing_ok=True)
        if content is not None:
            mark.write_bytes(content)
        with tt.Tracker.open(tmp_path / "run", read_only=True) as run:
            assert run.model.n_steps_ == 2


def test_the_log_is_moved_into_the_database_now_and_then(tmp_path):
    """A copy of the database alone has all but the newest steps."""
    with created(tmp_path / "run") as run:
        for day in range(70):
            run.ingest(_day(day))
        (tmp_path / "copy").mkdir()
        shutil.copy(tmp_path / "run" / "run.sqlite", tmp_path / "copy" / "run.sqlite")
    with tt.Tracker.open(tmp_path / "copy", read_only=True) as run:
        assert run.batches().num_rows >= 64


def _day(day):
    places = ["Kiel", "Ulm", "Gera"]
    return {
        "place": places, "age": [1, 2, 3], "date": [f"2026-01-{day % 28 + 1:02d}"] * 3,
        "count": [day + 1.0, 2.0 * day, 3.0],
    }  # fmt: skip
