"""Every format gives the same run, and every source is taken once, by its content."""

from __future__ import annotations

import sqlite3
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensortide as tt
from tensortide.sources import bytestream as octets
from tensortide.sources.cut import Cut
from tensortide.tracker.feeding import FeedOptions, feed_files, first_sample, roles_of
from tensortide.tracker.follower import Taken
from tests.models import fingerprint
from tests.sources.samples import arrow_table, by_hand, created, csv_text, rows, write

FORMATS = [
    "a.csv", "a.tsv", "semicolon.csv", "a.csv.gz", "a.csv.bz2", "a.csv.xz", "a.csv.zst",
    "a.jsonl", "a.ndjson", "a.json", "a.jsonl.gz", "a.parquet", "a.pq", "a.arrow", "a.feather",
    "a.ipc",
]  # fmt: skip


@pytest.fixture(params=[4 << 20, 300], ids=["one block", "small blocks"])
def block_size(request, monkeypatch):
    """Blocks that hold a few records only show what goes on between them."""
    from tensortide.sources import columnar, text

    monkeypatch.setattr(octets, "BLOCK", request.param)
    monkeypatch.setattr(text, "BLOCK", request.param)
    monkeypatch.setattr(columnar, "_ROWS", 1 << 17 if request.param > 1000 else 7)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_run(tmp_path, name, block_size):
    records = rows()
    source = write(tmp_path / name, records)
    with created(tmp_path / "run") as run:
        done = run.track(source, step_by="reported")
        assert (done.steps, done.records, done.bad) == (12, len(records), 0)
        assert fingerprint(run.model) == fingerprint(by_hand(records))
        again = run.track(source, step_by="reported")
        assert (again.steps, again.skipped[0].known) == (0, True)
        assert run.batches()["label"].to_pylist() == [str(d) for d in range(12)]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.csv.gz", "a.parquet"])
def test_a_run_that_stopped_continues_in_the_middle_of_a_file(tmp_path, name, block_size):
    records = rows()
    source = write(tmp_path / name, records)
    created(tmp_path / "run").close()
    done = 0
    while done < 12:
        with tt.Tracker.open(tmp_path / "run") as run:
            sample, n_files = first_sample([source])
            roles = roles_of(run, sample, FeedOptions(cut=_cut("reported")), n_files)
            events = feed_files(run, [source], roles, FeedOptions())
            for _ in range(2):
                event = next(events, None)
                done += isinstance(event, Taken)
            events.close()
    with tt.Tracker.open(tmp_path / "run") as run:
        assert fingerprint(run.model) == fingerprint(by_hand(records))
        assert run.track(source).steps == 0


def _cut(column):
    from tensortide.sources.cut import Cut

    return Cut(column)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.csv.gz"])
def test_a_file_that_grew_is_continued(tmp_path, name, block_size):
    records = rows()
    half = [r for r in records if r[3] < 6]
    source = write(tmp_path / name, half)
    with created(tmp_path / "run") as run:
        assert run.track(source, step_by="reported").steps == 6
        write(source, records)
        assert run.track(source).steps == 6
        assert fingerprint(run.model) == fingerprint(by_hand(records))


def test_a_last_line_that_was_half_written_is_learned_anew_when_it_is_whole(tmp_path):
    records = rows(4)
    data = csv_text(records)
    source = tmp_path / "a.csv"
    source.write_bytes(data[:-3])  # the last value has lost its last digits, and its end
    with created(tmp_path / "run") as run:
        assert run.track(source, step_by="reported").steps == 4
        source.write_bytes(data)
        assert run.track(source).steps == 1  # only the step of the last line
        assert run.track(source).steps == 0


def test_steps_by_rows_and_by_file(tmp_path, block_size):
    records = rows()
    source = write(tmp_path / "a.csv", records)
    with created(tmp_path / "rows") as run:
        done = run.track(source, step_rows=40)
        assert done.steps == -(-len(records) // 40)
        sizes = run.batches()["records"].to_pylist()
        assert sizes == [40] * (len(records) // 40) + [len(records) % 40]
    with created(tmp_path / "file") as run:
        assert run.track(source, step_files=True).steps == 1
        assert run.model.n_entries_ == len({r[:3] for r in records})


def test_a_folder_is_taken_file_by_file_in_the_order_of_names(tmp_path):
    records = rows()
    folder = tmp_path / "reports"
    folder.mkdir()
    for day in range(12):
        endings = [".csv", ".jsonl", ".parquet", ".feather"]
        write(folder / f"{day:02d}{endings[day % 4]}", [r for r in records if r[3] == day])
    (folder / "readme.txt").write_text("not data")
    (folder / ".hidden.csv").write_text("not yet")
    with created(tmp_path / "run") as run:
        assert run.track(folder).steps == 12
        assert fingerprint(run.model) == fingerprint(by_hand(records))
        write(folder / "12.csv", [("Kiel", 1, "2026-01-13", 12, 5.0)])
        assert run.track(folder).steps == 1
        sources = run.batches()["source"].to_pylist()
        assert [s.rsplit("/", 1)[1][:2] for s in sources] == [f"{d:02d}" for d in range(13)]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("stops", [False, True])
def test_a_file_that_is_not_in_order_is_sorted(tmp_path, name, stops, block_size):
    import numpy as np

    records = rows()
    order = np.random.default_rng(1).permutation(len(records))
    shuffled = [records[i] for i in order]
    source = write(tmp_path / name, shuffled)
    with created(tmp_path / "run") as run:
        if stops:
            sample, n_files = first_sample([source])
            roles = roles_of(run, sample, FeedOptions(cut=_cut("reported")), n_files)
            events = feed_files(run, [source], roles, FeedOptions())
            for _ in range(5):
                next(events)
            events.close()
        done = run.track(source, step_by="reported")
        assert done.steps == (7 if stops else 12)
        ordered = sorted(shuffled, key=lambda r: r[3])
        assert fingerprint(run.model) == fingerprint(by_hand(ordered))
        assert run.track(source).steps == 0
        if name == "a.csv":  # and when it grows, the new part is a stretch of its own
            write(source, [*shuffled, ("Kiel", 1, "2026-01-13", 13, 5.0), records[3]])
            assert run.track(source).steps == 2
            assert run.track(source).steps == 0


def test_the_first_steps_can_be_learned_together(tmp_path):
    records = rows()
    folder = tmp_path / "reports"
    folder.mkdir()
    for day in range(12):
        write(folder / f"{day:02d}.csv", [r for r in records if r[3] == day])
    one = write(tmp_path / "one.csv", records)
    with created(tmp_path / "folder") as run:
        assert run.track(folder, first=5).steps == 8
        assert fingerprint(run.model) == fingerprint(by_hand(records, first=5))
        assert run.track(folder, first=5).steps == 0
        assert run.batches()["kind"].to_pylist()[:6] == ["joined"] * 4 + ["prepare", "step"]
    with created(tmp_path / "one") as run:
        assert run.track(one, step_by="reported", first=5).steps == 8
        assert fingerprint(run.model) == fingerprint(by_hand(records, first=5))
    with created(tmp_path / "few") as run:  # fewer steps than wanted: all of them
        assert run.track(one, step_by="reported", first=50).steps == 1


def test_what_came_first_counts_as_it_would_step_by_step(tmp_path):
    """Two steps report a cell: the later report replaces it, also where duplicates are summed."""
    records = [
        ("Kiel", 1, "2026-01-01", 0, 4.0), ("Kiel", 1, "2026-01-01", 0, 5.0),
        ("Ulm", 1, "2026-01-01", 0, 2.0), ("Kiel", 1, "2026-01-01", 1, 7.0),
        ("Ulm", 2, "2026-01-02", 1, 1.0), ("Kiel", 2, "2026-01-02", 1, 3.0),
    ]  # fmt: skip
    source = write(tmp_path / "a.csv", records)
    with created(tmp_path / "run", "gocpt", duplicates="sum") as run:
        run.track(source, step_by="reported", first=2)
        entries = run.model._model.store.entries
        assert sorted(entries.all_values().tolist()) == [1.0, 2.0, 3.0, 7.0]
    with (
        created(tmp_path / "add", "gocpt", combine="add") as run,
        pytest.raises(tt.InputError, match="combine='add'"),
    ):
        run.track(source, step_by="reported", first=2)


def _sources(records):
    import duckdb
    import pandas as pd
    import polars as pl

    table = source = arrow_table(records)
    days = [table.filter(pa.array([r[3] == d for r in records])) for d in range(12)]
    database = sqlite3.connect(":memory:")
    database.execute(
        "CREATE TABLE r (place TEXT, age INTEGER, date TEXT, reported INT, count REAL)"
    )
    database.executemany("INSERT INTO r VALUES (?, ?, ?, ?, ?)", records)
    assert source is table  # DuckDB finds it by its name
    return {
        "pyarrow": table,
        "pandas": pd.DataFrame(table.to_pydict()),
        "polars": pl.from_arrow(table),
        "dict": table.to_pydict(),
        "iterator": iter(days),
        "reader": pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
        "duckdb": duckdb.sql("SELECT * FROM source ORDER BY reported"),
        "cursor": database.execute("SELECT * FROM r ORDER BY reported"),
    }


@pytest.mark.parametrize(
    "kind", ["pyarrow", "pandas", "polars", "dict", "iterator", "reader", "duckdb", "cursor"]
)
def test_tables_queries_and_cursors_are_sources_too(tmp_path, monkeypatch, kind):
    from tensortide.sources import memory as tables

    monkeypatch.setattr(tables, "ROWS", 13)  # chunks that have nothing to do with steps
    records = rows()
    modes = ["place", "age"] if kind == "cursor" else ["place", "age", "date"]
    with tt.Tracker.create(tmp_path / "run", 2, modes=modes, value="count") as run:
        done = run.track(_sources(records)[kind], step_by="reported", name="reports")
        assert (done.steps, done.records) == (12, len(records))
        if kind != "cursor":
            assert fingerprint(run.model) == fingerprint(by_hand(records))
        # the name and the number of records tell what is new
        assert run.track(_sources(records)[kind], name="reports").steps == 0
        more = [*records, ("Kiel", 1, "2026-01-13", 13, 5.0)]
        assert run.track(arrow_table(more), name="reports").steps == 1
        assert run.track(arrow_table(more)).steps == 13  # without a name all is new


def test_an_iterator_is_one_step_a_table(tmp_path):
    records = rows()
    with created(tmp_path / "run") as run:
        assert run.track(_sources(records)["iterator"]).steps == 12
        assert fingerprint(run.model) == fingerprint(by_hand(records))


@pytest.mark.parametrize("source", [17, [1, 2], None])
def test_what_has_no_records_is_refused(tmp_path, source):
    with created(tmp_path / "run") as run, pytest.raises(tt.InputError, match=r"iterator|taken"):
        run.track(source)


def test_a_folder_is_watched_until_it_is_stopped(tmp_path, monkeypatch):
    records = rows(4)
    folder = tmp_path / "reports"
    folder.mkdir()
    write(folder / "0.csv", [r for r in records if r[3] == 0])

    def arrivals():
        for day in (1, 2):
            yield write(folder / f"{day}.csv", [r for r in records if r[3] == day])
        data = csv_text([r for r in records if r[3] == 3])
        yield (folder / "3.csv").write_bytes(data[:-5])  # half a line stays for later
        yield None  # a look at a folder without news
        yield (folder / "3.csv").write_bytes(data)
        yield None

    coming = arrivals()
    # something arrives whenever all was looked at; one more look than news, and the test ends
    monkeypatch.setattr(time, "sleep", lambda _: next(coming))
    with created(tmp_path / "run") as run:
        sample, n_files = first_sample([folder])
        how = FeedOptions(cut=_cut("reported"), watch=True, every=0.05)
        roles = roles_of(run, sample, how, n_files)
        n_records = 0
        for event in feed_files(run, [folder], roles, how):
            n_records += event.records if isinstance(event, Taken) else 0
            if n_records == len(records):
                break
        assert next(coming, "all came") is None
        assert run.model.score(arrow_table(records)) > 0.8
        assert len(set(run.batches()["batch_id"].to_pylist())) == run.batches().num_rows


def broken(records, rng):
    """The text of records with bad and blank lines strewn in."""
    lines = csv_text(records).splitlines(keepends=True)
    out = lines[:1]
    for line in lines[1:]:
        while rng.random() < 0.25:
            out.append([b"\n", b"bad,line\n", b"\r\n"][rng.integers(3)])
        out.append(line)
    return b"".join(out)


@pytest.mark.parametrize("seed", range(25))
def test_stopped_anywhere_no_record_is_learned_twice(tmp_path, monkeypatch, seed):
    """Blocks, bad lines, blank lines and stops at random; counts that add up show every repeat."""
    import numpy as np

    from tensortide.sources import text

    rng = np.random.default_rng(seed)
    size = int(rng.integers(60, 900))
    for module in (octets, text):
        monkeypatch.setattr(module, "BLOCK", size)
    records = rows(8, seed=seed)
    source = tmp_path / "a.csv"
    data = broken(records, rng)
    source.write_bytes(data)
    how = {"duplicates": "sum", "combine": "add"}
    created(tmp_path / "run", "gocpt", **how).close()
    cut = _cut("reported") if seed % 2 else Cut(rows=int(rng.integers(5, 40)))
    drive = FeedOptions(cut=cut, on_bad="quarantine")
    for _ in range(40):
        with tt.Tracker.open(tmp_path / "run") as run:
            sample, several = first_sample([source])
            roles = roles_of(run, sample, drive, several)
            events = feed_files(run, [source], roles, drive)
            for _ in range(int(rng.integers(1, 4))):
                if next(events, None) is None:
                    break
            events.close()
    with tt.Tracker.open(tmp_path / "run") as run:
        assert sum(run.batches()["records"].to_pylist()) == len(records)
        assert len(run.quarantined()) == data.count(b"bad,line")
        total = run.model._model.store.entries.all_values().sum()
        assert total == pytest.approx(sum(r[4] for r in records))


def test_bad_records_after_the_last_good_one_belong_to_its_step(tmp_path):
    lines = ["place,day,n", "A,1,1", "B,1,2", "A,2,2", "B,2,four", "A,3,3", "B,3,6"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    with tt.Tracker.create(tmp_path / "run", 1, modes=["place", "day"], value="n") as run:
        with pytest.raises(tt.InputError, match="line 5"):
            run.track(tmp_path / "a.csv", step_by="day")
        assert run.batches()["label"].to_pylist() == ["1"]
        (tmp_path / "a.csv").write_text("\n".join(lines).replace("four", "4") + "\n")
        assert run.track(tmp_path / "a.csv").steps == 2


def test_a_file_of_columns_is_judged_before_its_first_step(tmp_path):
    """Mended, it is another file: nothing of it may have been learned."""
    table = {"place": ["A", "B"] * 3, "day": [1, 1, 2, 2, 3, 3], "n": [1.0, 2, 3, 4, 5, None]}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    with tt.Tracker.create(tmp_path / "run", 1, modes=["place", "day"], value="n") as run:
        with pytest.raises(tt.InputError, match="record 6: 'n' is missing"):
            run.track(tmp_path / "a.parquet", step_by="day")
        assert run.batches().num_rows == 0
        pq.write_table(pa.table(table | {"n": [1.0, 2, 3, 4, 5, 6]}), tmp_path / "a.parquet")
        assert run.track(tmp_path / "a.parquet").steps == 3


def test_a_line_that_grew_is_told_and_never_added_twice(tmp_path):
    for combine in ("replace", "add"):
        source = tmp_path / f"{combine}.csv"
        source.write_text("place,day,n\nA,1,1\nB,1,2\nA,2,3\nB,2,4")
        made = {"modes": ["place", "day"], "value": "n", "combine": combine}
        with tt.Tracker.create(tmp_path / combine, 1, "gocpt", **made) as run:
            run.track(source, step_files=True)
            with source.open("a") as file:
                file.write("0\nA,3,9\n")
            if combine == "add":
                with pytest.raises(tt.InputError, match="last line was learned when it was not"):
                    run.track(source)
            else:
                done = run.track(source)
                assert "not complete when it was learned" in done.skipped[0].why
                assert run.model.n_steps_ == 2


KINDS = {
    "boolean": ["true", "1", "0", "FALSE", " true", "yes", "2"],
    "date": ["2026-01-03", " 2026-01-03", "2026-01-03 ", "2026-1-3", "20260103"],
    "integer": ["7", " 7", "-7", "+7", "7.0", "007", "9223372036854775808"],
    "datetime": ["2026-01-03T10:00", " 2026-01-03 10:00:00", "2026-01-03T10", "10:00"],
    "value": ["1", " 1.5 ", "1e3", "-.5", "1_0", "0x10", "1,5", "nan", "inf", "+3"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_good_in_a_clean_block_is_good_beside_a_bad_record(kind):
    """The slow way takes whatever the fast way takes, as the same."""
    from tensortide.sources.columns import ColumnSpec
    from tensortide.sources.lines import split
    from tensortide.sources.parse import csv_record, csv_table, parse_block

    wanted = ColumnSpec({}, "x") if kind == "value" else ColumnSpec({"x": kind}, None)
    for field in KINDS[kind]:
        found = []
        for extra in (b"", b"a,b,c,d\n"):
            data = f'"{field}",z\n'.encode() + extra
            records = split(data, 1, ",", 2, final=True)
            table_of = lambda d, types: csv_table(d, ["x", "y"], ",", types)  # noqa: E731
            piece = parse_block(data, records, wanted, 0, table_of, csv_record(["x", "y"], ","))
            found.append(piece.table["x"].to_pylist())
        assert found[0] == found[1], field
