"""A run: what is committed is what an estimator in memory would have, bit by bit."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
import struct

import numpy as np
import pytest

import tensortide as tt
from tensortide.tracker import history
from tensortide.tracker.verify import check_run
from tests import checks
from tests.models import MODES, batches, fingerprint


def created(path, method="gocpte", **options):
    return tt.Tracker.create(path, 2, method, modes=MODES, value="count", **options)


def in_memory(tables, method="gocpte", **options):
    model = tt.OnlineCP(2, method, modes=MODES, value="count", **options)
    for table in tables:
        model.update(table)
    return model


@pytest.mark.parametrize("name", tt.METHODS)
def test_every_method_goes_on_after_reopening_as_if_nothing_had_been(tmp_path, name):
    x = checks.tensor()
    tables = [checks.table(x, range(8)), *(checks.table(x, [day]) for day in range(8, 13))]
    modes = ["place", "kind", "day"]
    model = tt.OnlineCP(2, name, modes=modes, value="count")
    tt.Tracker.create(tmp_path / "run", 2, name, modes=modes, value="count").close()
    for table in tables:
        model.update(table)
        with tt.Tracker.open(tmp_path / "run") as run:
            run.ingest(table)
            assert fingerprint(run.model) == fingerprint(model)
    with tt.Tracker.open(tmp_path / "run", read_only=True) as run:
        assert fingerprint(run.model) == fingerprint(model)
    assert all(finding.good for finding in check_run(tmp_path / "run"))


@pytest.mark.parametrize("prior", ["paper", "learned"])
def test_a_mode_may_outgrow_the_room_that_it_began_with(tmp_path, prior):
    """Many new labels beside old ones, over many steps: blocks of rows are written whole."""
    rng, model = np.random.default_rng(0), None
    with created(tmp_path / "run", prior=prior) as run:
        model = tt.OnlineCP(2, "gocpte", modes=MODES, value="count", prior=prior)
        for step in range(40):
            places = np.append(rng.integers(0, 3 * step + 3, 5), 3 * step + np.arange(3))
            table = {
                "place": [f"p{i}" for i in places], "day": [step // 2] * 8,
                "delay": [i % 4 for i in range(8)], "count": rng.random(8) + 1.0,
            }  # fmt: skip
            run.ingest(table)
            model.update(table)
        assert fingerprint(run.model) == fingerprint(model)
        assert fingerprint(run.model.copy()) == fingerprint(model)
    with tt.Tracker.open(tmp_path / "run", read_only=True) as run:
        assert fingerprint(run.model) == fingerprint(model)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (tt.gocpt(forgetting=0.5), {}),
        (tt.gocpt(), {"combine": "add"}),
        (tt.gocpt(), {"absent": "zero", "duplicates": "sum"}),
        (tt.gocpte(forgetting=0.9), {"duplicates": "mean"}),
    ],
)
def test_history_is_read_back_as_it_was(tmp_path, monkeypatch, method, options):
    monkeypatch.setattr(history, "TOGETHER", 4)  # so that segments are put together on the way
    tables = batches()
    with created(tmp_path / "run", method, **options) as run:
        for table in tables:
            run.ingest(table)
    with tt.Tracker.open(tmp_path / "run") as run:
        assert fingerprint(run.model) == fingerprint(in_memory(tables, method, **options))
        if run.model._model.store is not None:
            assert 1 <= len(list((tmp_path / "run" / "history").iterdir())) <= 5


def test_retraction_is_in_the_history(tmp_path):
    tables = batches()[:3]
    cell = {name: tables[0][name][:1] for name in MODES}
    model = in_memory(tables, "gocpt")
    model.update(retract=cell)
    with created(tmp_path / "run", "gocpt") as run:
        for table in tables:
            run.ingest(table)
        assert run.ingest(retract=cell, batch_id="taken back").retracted == 1
    with tt.Tracker.open(tmp_path / "run") as run:
        assert fingerprint(run.model) == fingerprint(model)


def test_a_batch_is_applied_once_and_the_second_time_it_is_said(tmp_path):
    first, second, *_ = batches()
    with created(tmp_path / "run") as run:
        run.ingest(first, batch_id="a")
        info = run.ingest(second, batch_id="b")
        before = fingerprint(run.model)
        again = run.ingest(second, batch_id="b")
        assert again.repeated
        assert str(again) == "batch 'b' was applied at step 2: nothing done"
        assert (again.entries, again.prequential_error) == (info.entries, info.prequential_error)
        assert fingerprint(run.model) == before
    with tt.Tracker.open(tmp_path / "run") as run:
        assert run.ingest(second, batch_id="b").repeated
        assert fingerprint(run.model) == before
        assert run.batches()["batch_id"].to_pylist() == ["a", "b"]


def test_an_id_that_is_used_for_other_records_is_warned_of(tmp_path):
    first, second, *_ = batches()
    with created(tmp_path / "run") as run:
        run.ingest(first, batch_id="a")
        with pytest.warns(tt.TensortideWarning, match="'a' was applied at step 1 with .* records"):
            assert run.ingest(second, batch_id="a").repeated


@pytest.mark.parametrize("batch_id", ["", 7])
def test_an_id_is_a_text(tmp_path, batch_id):
    with created(tmp_path / "run") as run, pytest.raises(tt.InputError, match="batch_id"):
        run.ingest(batches()[0], batch_id=batch_id)


def test_a_batch_that_fails_leaves_no_trace(tmp_path):
    first, second, third, *_ = batches()
    with created(tmp_path / "run") as run:
        run.ingest(first)
        run.ingest(second)
        before = fingerprint(run.model)
        with pytest.raises(tt.InputError, match="NaN"):
            run.ingest(third | {"count": [np.nan] * len(third["count"])}, batch_id="bad")
        assert fingerprint(run.model) == before
        assert run.batches().num_rows == 2
        assert not run.ingest(third, batch_id="bad").repeated


def test_rank_and_labels_change_for_good(tmp_path):
    tables = batches()
    for method in ("gocpte", "gocpt"):
        model = in_memory(tables[:4], method)
        with created(tmp_path / method, method) as run:
            for table in tables[:4]:
                run.ingest(table)
            assert run.change_rank(3) == model.change_rank(3)
            run.retire("place", ["p1"])
            model.retire("place", ["p1"])
        with tt.Tracker.open(tmp_path / method) as run:
            assert fingerprint(run.model) == fingerprint(model)
            run.ingest(tables[4])
            model.update(tables[4])
        with tt.Tracker.open(tmp_path / method) as run:
            assert fingerprint(run.model) == fingerprint(model)
            assert run.batches()["kind"].to_pylist()[-3:] == ["rank", "retire", "step"]
        assert all(finding.good for finding in check_run(tmp_path / method))


def test_the_model_of_a_run_learns_through_its_tracker_only(tmp_path):
    with created(tmp_path / "run") as run:
        with pytest.raises(tt.NotFittedError, match="no data yet"):
            _ = run.model
        run.ingest(batches()[0])
        for call in (
            lambda m: m.update(batches()[1]),
            lambda m: m.fit(batches()[1]),
            lambda m: m.change_rank(3),
            lambda m: m.retire("place", ["p0"]),
        ):
            with pytest.raises(tt.InputError, match=r"tracker\."):
                call(run.model)
        copy = run.model.copy()
        copy.update(batches()[1])
        assert run.model.n_steps_ == 1


def test_an_empty_batch_leaves_its_line_only(tmp_path):
    first, *_ = batches()
    with created(tmp_path / "run") as run:
        run.ingest(first)
        before = fingerprint(run.model)
        nothing = {name: column[:0] for name, column in first.items()}
        info = run.ingest(nothing, batch_id="none")
        assert info.entries == 0
        assert fingerprint(run.model) == before
        assert run.ingest(nothing, batch_id="none").repeated


def test_positions_and_arrays_can_be_tracked_too(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.random((4, 3, 6))
    model = tt.OnlineCP(2, "gocpt").fit(x)
    with tt.Tracker.create(tmp_path / "run", 2, "gocpt") as run:
        run.ingest(x)
        for _ in range(2):
            more = tt.Batch(rng.integers(0, 4, (5, 3)) % [4, 3, 6], rng.random(5), (4, 3, 6))
            run.ingest(more)
            model.update(more)
    with tt.Tracker.open(tmp_path / "run") as run:
        assert fingerprint(run.model) == fingerprint(model)


def test_an_economy_run_holds_no_raw_value(tmp_path):
    rng = np.random.default_rng(3)
    tables = [t | {"count": rng.normal(1000, 300, len(t["count"]))} for t in batches()]
    tables.append({name: column[:1] for name, column in tables[2].items()} | {"count": [777.125]})
    with created(tmp_path / "run") as run:
        for table in tables:
            run.ingest(table)
    stored = b"".join(f.read_bytes() for f in (tmp_path / "run").rglob("*") if f.is_file())
    for table in tables:
        for value in table["count"]:
            for form in (struct.pack("<d", value), struct.pack(">d", value), repr(value).encode()):
                assert form not in stored


def test_surprises_are_raw_values_and_kept_only_when_asked(tmp_path):
    first, before, second, *_ = batches()
    odd = second | {"count": np.where(np.arange(len(second["count"])) == 3, 99.5, second["count"])}
    for name, keep in (("no", None), ("yes", True)):
        with created(tmp_path / name, keep_surprises=keep) as run:
            run.ingest(first)
            run.ingest(before)
            run.ingest(odd)
            found = run.surprises()
        assert bool(found) == (keep is True)
        file = (tmp_path / name / "run.sqlite").read_bytes()
        assert (struct.pack(">d", 99.5) in file) == (keep is True)
    assert found[0].value == 99.5
    assert found[0].cell == {m: str(np.asarray(second[m])[3]) for m in MODES}
    assert found[0].fresh == ["day"]
    assert found[0].low < found[0].high < 99.5
    chances = [s.probability for s in found]
    assert chances == sorted(chances)


def _written(path, n_labels):
    """The bytes that one small economy step adds to the log of a run with many labels."""
    rng = np.random.default_rng(0)
    with tt.Tracker.create(path, 3, "gocpte") as run:
        run.ingest(tt.Batch(rng.integers(0, 8, (300, 3)), rng.random(300), shape=(8, 8, 8)))
        run.ingest(tt.Batch([[0, 0, 0]], [1.0], shape=(n_labels, 8, 8)))
        run._ledger.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        wal = path / "run.sqlite-wal"
        before = wal.stat().st_size
        run.ingest(tt.Batch([[5, 1, 1], [6, 2, 3]], [1.0, 2.0]))
        return wal.stat().st_size - before


def test_an_economy_step_writes_what_its_batch_is(tmp_path):
    small, large = _written(tmp_path / "small", 100), _written(tmp_path / "large", 50_000)
    assert large <= small + 2 * 1024  # a deeper tree, a page or two


LAST_RESORT = 600.0  # seconds; ends a hang, and is far from what a busy machine needs


def _hold(path, ready, go):
    with tt.Tracker.open(path):
        ready.set()
        go.wait(LAST_RESORT)


def test_a_second_writer_is_refused_with_a_sentence_and_readers_are_not(tmp_path):
    path = tmp_path / "run"
    with created(path) as run:
        run.ingest(batches()[0])
    context = multiprocessing.get_context("spawn")
    ready, go = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(path, ready, go))
    other.start()
    try:
        assert ready.wait(LAST_RESORT)
        with pytest.raises(tt.FileError, match=f"process {other.pid} .*is writing to this run"):
            tt.Tracker.open(path)
        with tt.Tracker.open(path, read_only=True) as reader:
            assert reader.model.n_steps_ == 1
            with pytest.raises(tt.FileError, match="reading only"):
                reader.ingest(batches()[1])
        go.set()
        with tt.Tracker.open(path, wait=LAST_RESORT) as run:  # waits for its turn
            assert run.ingest(batches()[1]).step == 2
    finally:
        go.set()
        other.join(LAST_RESORT)


def test_a_reader_sees_steps_that_are_committed_while_it_reads(tmp_path):
    with created(tmp_path / "run") as run:
        run.ingest(batches()[0])
        with tt.Tracker.open(tmp_path / "run", read_only=True) as reader:
            run.ingest(batches()[1])
            assert reader.batches().num_rows == 2
            assert reader.model.n_steps_ == 1  # the model is as of its opening


def test_a_run_is_not_made_twice_and_not_out_of_a_file(tmp_path):
    with created(tmp_path / "run") as run:
        run.ingest(batches()[0])
    with pytest.raises(tt.FileError, match="there is a run already"):
        created(tmp_path / "run")
    with pytest.raises(tt.InputError, match=r"Tracker\.open"):
        tt.Tracker(tmp_path / "run")
    created(tmp_path / "unused").close()
    with created(tmp_path / "unused", "gocpt") as run:  # nothing was learned: it may begin anew
        assert run.params["method"].name == "gocpt"
    (tmp_path / "file").write_text("x")
    with pytest.raises(tt.FileError, match="is a file"):
        created(tmp_path / "file")
    with pytest.raises(tt.FileError, match="no run here"):
        tt.Tracker.open(tmp_path / "nowhere")
    with pytest.raises(tt.InputError, match="function of your own"):
        created(tmp_path / "own", tt.gocpte(alpha=lambda now: 1.0), prior="paper")
    assert not (tmp_path / "own").exists()


def _changed(path, statement, *values):
    db = sqlite3.connect(path / "run.sqlite")
    db.execute(statement, values)
    db.commit()
    db.close()


DAMAGE = {
    "newer": ("UPDATE meta SET value = '99' WHERE key = 'version'", "please upgrade"),
    "foreign": ("UPDATE meta SET value = '\"x\"' WHERE key = 'format'", "not a Tensortide run"),
    "row": ("UPDATE factors SET rows = zeroblob(length(rows)) WHERE place = 0", "checksum"),
    "cut row": ("UPDATE factors SET rows = x'00' WHERE place = 0", "size"),
    "lost row": ("DELETE FROM factors WHERE place = 0", "size"),
    "lost label": ("DELETE FROM labels WHERE mode = 0 AND position = 1", "labels of mode 0"),
    "facts": ("UPDATE meta SET value = '{}' WHERE key = 'facts'", "damaged"),
    "no json": ("UPDATE meta SET value = '{' WHERE key = 'facts'", "no text|damaged"),
    "array": ("UPDATE arrays SET data = x'00' WHERE name = 'gram_total'", "damaged"),
    "label": ("UPDATE labels SET label = 'px' WHERE mode = 0 AND position = 1", "labels of mode 0"),
    "count of cells": (
        "UPDATE arrays SET data = zeroblob(length(data)) WHERE name = 'seen_registers'",
        "statistics",
    ),
    "lost table": ("DROP TABLE arrays", "damaged"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_or_newer_run_is_refused_and_check_tells(tmp_path, kind):
    statement, message = DAMAGE[kind]
    with created(tmp_path / "run") as run:
        for table in batches()[:3]:
            run.ingest(table)
    assert all(finding.good for finding in check_run(tmp_path / "run"))
    _changed(tmp_path / "run", statement)
    for read_only in (True, False):
        with pytest.raises(tt.FileError, match=message):
            tt.Tracker.open(tmp_path / "run", read_only=read_only)
    assert not all(finding.good for finding in check_run(tmp_path / "run"))


def test_check_finds_a_label_that_was_changed(tmp_path):
    with created(tmp_path / "run") as run:
        run.ingest(batches()[0])
    _changed(tmp_path / "run", "UPDATE labels SET label = 'px' WHERE mode = 0 AND position = 1")
    bad = [f for f in check_run(tmp_path / "run") if not f.good]
    assert [f.what for f in bad] == ["labels", "model"]


def test_check_finds_a_lost_line_and_bits_in_the_database(tmp_path):
    with created(tmp_path / "run") as run:
        for table in batches()[:3]:
            run.ingest(table)
    _changed(tmp_path / "run", "DELETE FROM batches WHERE seq = 2")
    assert "batches" in [f.what for f in check_run(tmp_path / "run") if not f.good]
    file = tmp_path / "run" / "run.sqlite"
    data = bytearray(file.read_bytes())
    data[1024:4096] = bytes(3072)
    file.write_bytes(data)
    assert not all(f.good for f in check_run(tmp_path / "run"))
    file.write_bytes(b"no database at all, whatever its name")
    findings = list(check_run(tmp_path / "run"))
    assert [f.good for f in findings] == [False]


@pytest.mark.parametrize("harm", ["delete", "change"])
def test_a_lost_or_changed_part_of_the_history_is_found(tmp_path, harm):
    with created(tmp_path / "run", "gocpt") as run:
        for table in batches()[:3]:
            run.ingest(table)
    part = sorted((tmp_path / "run" / "history").iterdir())[1]
    if harm == "delete":
        part.unlink()
    else:
        part.write_bytes(part.read_bytes().replace(b"tensortide", b"tensortime"))
    with pytest.raises(tt.FileError, match=r"history.*(damaged|cannot be read)"):
        tt.Tracker.open(tmp_path / "run")
    assert "history" in [f.what for f in check_run(tmp_path / "run") if not f.good]


def test_files_that_no_commit_knows_are_removed_by_the_next_writer(tmp_path):
    with created(tmp_path / "run", "gocpt") as run:
        run.ingest(batches()[0])
    stray = tmp_path / "run" / "history" / "0000000099-step.arrow"
    stray.write_bytes(b"left by a crash")
    with tt.Tracker.open(tmp_path / "run", read_only=True):
        assert stray.exists()
    with tt.Tracker.open(tmp_path / "run") as run:
        assert not stray.exists()
        run.ingest(batches()[1])


def test_the_clock_may_go_backwards(tmp_path, monkeypatch):
    import datetime as dt

    from tensortide.tracker import batches as lines

    years = iter(range(2030, 2000, -1))

    class Backwards(dt.datetime):
        @classmethod
        def now(cls, tz=None):
            return dt.datetime(next(years), 1, 1, tzinfo=tz)

    monkeypatch.setattr(lines, "datetime", Backwards)
    tables = batches()[:5]
    with created(tmp_path / "run") as run:
        for i, table in enumerate(tables):
            run.ingest(table, batch_id=str(i))
    with tt.Tracker.open(tmp_path / "run") as run:
        assert fingerprint(run.model) == fingerprint(in_memory(tables))
        assert run.batches()["batch_id"].to_pylist() == ["0", "1", "2", "3", "4"]
        assert run.ingest(tables[3], batch_id="3").repeated
    assert all(finding.good for finding in check_run(tmp_path / "run"))


def test_check_is_not_disturbed_by_a_writer(tmp_path):
    with created(tmp_path / "run", "gocpt") as run:
        run.ingest(batches()[0])
        for table in batches()[1:]:
            checking = check_run(tmp_path / "run")
            first = next(checking)
            run.ingest(table)
            assert all(finding.good for finding in [first, *checking])


def test_surprises_that_are_switched_off_are_gone(tmp_path):
    first, before, second, *_ = batches()
    odd = second | {"count": np.where(np.arange(len(second["count"])) == 3, 99.5, second["count"])}
    with created(tmp_path / "run", keep_surprises=True) as run:
        run.ingest(first)
        run.ingest(before)
        run.ingest(odd)
        assert run.surprises()
        run.set_options(keep_surprises=False)
        assert run.surprises() == []
    stored = b"".join(f.read_bytes() for f in (tmp_path / "run").iterdir())
    assert struct.pack(">d", 99.5) not in stored


def test_an_array_that_comes_again_is_no_cause_for_a_warning(tmp_path):
    x = np.random.default_rng(0).random((4, 5, 6))
    with tt.Tracker.create(tmp_path / "run", 2) as run:
        run.ingest(x, batch_id="x")
        assert run.ingest(x, batch_id="x").repeated


def test_labels_of_every_kind_come_back(tmp_path):
    import datetime as dt

    labels = {
        "text": ["a", "ä\0b", "", "long" * 50, "🙂"],
        "number": [-5, 0, 2**62, 7, 8],
        "day": [dt.date(2026, 1, d) for d in range(1, 6)],
        "time": [dt.datetime(2026, 1, 1, h, 30, 0, 12) for h in range(5)],
        "flag": [True, False, True, False, True],
    }
    value = [1.0, 2.0, 3.0, 4.0, 5.0]
    with tt.Tracker.create(tmp_path / "run", 1, modes=list(labels), value="v") as run:
        run.ingest(labels | {"v": value})
        run.ingest({name: column[:2] for name, column in labels.items()} | {"v": [1.5, 2.5]})
        kept = {name: array.tolist() for name, array in run.model.labels_.items()}
    with tt.Tracker.open(tmp_path / "run") as run:
        assert {name: a.tolist() for name, a in run.model.labels_.items()} == kept
    assert json.loads(json.dumps(kept["text"])) == labels["text"]


def test_repr_says_where_and_what(tmp_path):
    with created(tmp_path / "run") as run:
        assert "no data yet" in repr(run)
        run.ingest(batches()[0])
        assert "6 place x 10 day" in repr(run)
    with pytest.raises(tt.FileError, match="closed"):
        run.ingest(batches()[0])
