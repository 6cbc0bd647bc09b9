"""What is removed from a run is in none of its files, also while the run is open."""

from __future__ import annotations

import contextlib
import sqlite3
import struct

import numpy as np
import pytest

import tensortide as tt
from tests.models import MODES, batches

VALUE = 99.5
MARKS = [struct.pack(">d", VALUE), f'{{"{MODES[0]}": "'.encode()]  # of surprises only


def stored(path):
    return b"".join(f.read_bytes() for f in path.rglob("*") if f.is_file())


@pytest.fixture
def surprised(tmp_path):
    """An open run with a surprise, and the batches that are left."""
    first, before, second, *rest = batches()
    odd = second | {"count": np.where(np.arange(len(second["count"])) == 3, VALUE, second["count"])}
    with tt.Tracker.create(
        tmp_path / "run", 2, modes=MODES, value="count", keep_surprises=True
    ) as run:
        for table in (first, before, odd):
            run.ingest(table)
        assert any(s.value == VALUE for s in run.surprises())
        assert all(mark in stored(run.path) for mark in MARKS)
        yield run, rest


def test_surprises_that_are_switched_off_are_gone_at_once(surprised):
    run, rest = surprised
    run.set_options(keep_surprises=False)
    assert not any(mark in stored(run.path) for mark in MARKS)
    run.ingest(rest[0])
    assert not any(mark in stored(run.path) for mark in MARKS)


def test_a_reader_that_is_open_does_not_keep_them(surprised):
    run, _ = surprised
    with tt.Tracker.open(run.path, read_only=True) as reader:
        assert reader.surprises()
        run.set_options(keep_surprises=False)
        assert not any(mark in stored(run.path) for mark in MARKS)
        assert reader.surprises() == []


@pytest.mark.parametrize("then", ["a step", "the end"])
def test_while_an_earlier_state_is_read_it_is_said_that_the_log_keeps_them(surprised, then):
    run, rest = surprised
    with contextlib.closing(sqlite3.connect(run.path / "run.sqlite")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM surprises").fetchone()
        with pytest.warns(tt.TensortideWarning, match="log keeps the surprises that were removed"):
            run.set_options(keep_surprises=False)
        assert run.surprises() == []
        run.ingest(rest[0])  # nobody has to wait for the reader
        reader.execute("ROLLBACK")
        if then == "a step":
            run.ingest(rest[1])
        else:
            run.close()
        assert not any(mark in stored(run.path) for mark in MARKS)


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
def test_labels_that_are_retired_are_gone_at_once(tmp_path, method):
    table = {"place": ["Kiel", "Wolkenkuckucksheim", "Ulm"] * 2, "day": [1, 1, 1, 2, 2, 2]}
    table |= {"count": [1.0, 2.0, 3.0, 4.0, 5.0, 7.0]}
    modes = ["place", "day"]
    with tt.Tracker.create(
        tmp_path / "run", 1, method, modes=modes, value="count", keep_surprises=False
    ) as run:
        run.ingest(table)
        assert b"Wolkenkuckucksheim" in stored(run.path)
        run.retire("place", ["Wolkenkuckucksheim"])
        assert b"Wolkenkuckucksheim" not in stored(run.path)
