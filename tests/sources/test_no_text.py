"""Files that are no tables of text, or claim what they do not have: each ends with a sentence."""

from __future__ import annotations

import contextlib
import io
import json
import struct
import types

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensortide as tt
from tensortide.sources.files import open_feed
from tensortide.sources.sample import MOST_COLUMNS
from tensortide.sources.whole import read_source
from tests.sources.samples import created, csv_text, json_text, rows

GOOD = rows(3)
BINARY = {
    "excel.csv": b"PK\x03\x04\x14\x00\x06\x00\x08\x00 and so on\n",
    "database.csv": b"SQLite format 3\x00\x10\x00\x01\n",
    "zeros.csv": bytes(100_000),
    "zeros.jsonl": bytes(100_000),
    "wide.csv": "place,age\nKiel,1\n".encode("utf-16-le"),
}


@pytest.mark.parametrize("name", BINARY)
def test_a_binary_file_is_called_one(tmp_path, name):
    source = tmp_path / name
    source.write_bytes(BINARY[name])
    message = f"{name}, line 1: looks like a binary file"
    with created(tmp_path / "run") as run, pytest.raises(tt.FileError, match=message):
        run.track(source, on_bad="quarantine")
    with pytest.raises(tt.FileError, match=message):
        read_source(str(source))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_nul_bytes_within_a_text_are_a_bad_record(tmp_path, form):
    lines = (csv_text if form == "csv" else json_text)(GOOD).splitlines(keepends=True)
    lines[20] = lines[20].replace(b"2026", b"2026\0").replace(b"e", b"\0")
    source = tmp_path / f"a.{form}"
    source.write_bytes(b"".join(lines))
    with created(tmp_path / "run") as run:
        with pytest.raises(tt.InputError, match=f"a.{form}, line 21: it"):
            run.track(source, step_by="reported")
        done = run.track(source, on_bad="quarantine", step_by="reported")
        assert (done.bad, run.quarantined()[0].line) == (1, 21)
    with pytest.raises(tt.FileError, match=f"a.{form}, line 21: it"):
        read_source(str(source))


def test_a_json_list_in_a_pipe_is_called_one(monkeypatch):
    data = json.dumps([{"place": "Kiel", "count": 1}]).encode()
    buffer = io.BufferedReader(io.BytesIO(data))
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=buffer))
    with pytest.raises(tt.FileError, match="standard input: holds one JSON list"):
        open_feed(None)


DEEP = {
    "a list": '{"place": "Kiel", "x": ' + "[" * 100_000 + "]" * 100_000 + "}\n",
    "no end": '{"place": "Kiel", "x": ' + "[" * 100_000 + "\n",
    "objects": '{"x":' * 100_000 + "1" + "}" * 100_000 + "\n",
    "over lines": '{"place": "Kiel", "x": [\n' + "[\n" * 50_000,
    "objects over lines": '{"x":[\n' * 50_000,
}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("kind", DEEP)
def test_json_that_is_nested_deeply_is_a_bad_record(tmp_path, kind, first):
    source = tmp_path / "a.jsonl"
    good = json_text(GOOD)
    source.write_bytes(DEEP[kind].encode() + good if first else good + DEEP[kind].encode())
    line = 1 if first else len(GOOD) + 1
    with created(tmp_path / "run") as run:
        with pytest.raises(tt.TensortideError, match=f"a.jsonl, line {line}: it is n"):
            run.track(source, step_files=True)
        assert run.batches().num_rows == 0
        if kind == "a list" and not first:
            done = run.track(source, step_files=True, on_bad="quarantine")
            assert (done.records, done.bad) == (len(GOOD), 1)
    with pytest.raises(tt.FileError, match=f"a.jsonl, line {line}: it is n"):
        read_source(str(source))


def test_many_brackets_in_a_text_are_no_depth(tmp_path):
    source = tmp_path / "a.jsonl"
    records = [("[" * 3_000, *r[1:]) if r[0] == "Kiel" else r for r in GOOD]
    source.write_bytes(json_text(records))
    assert read_source(str(source)).num_rows == len(GOOD)
    with created(tmp_path / "run") as run:
        assert run.track(source, step_by="reported").records == len(GOOD)


@pytest.mark.parametrize("depth", [600, 900, 990])
def test_a_label_that_is_nested_is_a_bad_record(tmp_path, depth):
    record = dict(zip(["place", "age", "date", "reported", "count"], GOOD[0], strict=True))
    text = json.dumps(record).replace(f'"{GOOD[0][0]}"', "[" * depth + "]" * depth)
    source = tmp_path / "a.jsonl"
    source.write_bytes(json_text(GOOD) + text.encode() + b"\n")
    message = f"a.jsonl, line {len(GOOD) + 1}: "
    with created(tmp_path / "run") as run, pytest.raises(tt.InputError, match=message):
        run.track(source, step_files=True)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.arrow"])
def test_a_table_of_too_many_columns_is_refused(tmp_path, name):
    source = tmp_path / name
    names = [f"c{i}" for i in range(MOST_COLUMNS + 1)]
    if name == "a.csv":
        source.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    elif name == "a.jsonl":
        source.write_text(json.dumps(dict.fromkeys(names, 1)) + "\n")
    else:
        table = pa.table({n: [1] for n in names})
        if name == "a.parquet":
            pq.write_table(table, source)
        else:
            with pa.ipc.new_file(source, table.schema) as writer:
                writer.write_table(table)
    with pytest.raises(tt.FileError, match="a.*: has 10,001 columns; at most 10,000 are read"):
        read_source(str(source))
    with created(tmp_path / "run") as run, pytest.raises(tt.TensortideError):
        run.track(source)


def test_columns_of_codes_and_dates_stay_in_their_places(tmp_path):
    names = [f"c{i}" for i in range(2_000)]
    fields = ["01" if i % 3 == 0 else "7" if i % 3 == 1 else "2026-01-01" for i in range(2_000)]
    late = ["x" if f == "2026-01-01" else f for f in fields]
    (tmp_path / "a.csv").write_text(
        "\n".join([",".join(names), *[",".join(fields)] * 19, ",".join(late), ""])
    )
    with contextlib.closing(open_feed(tmp_path / "a.csv")) as feed:
        table = feed.sample()
    assert table.column_names == names
    assert [str(t) for t in table.schema.types[:3]] == ["string", "int64", "date32[day]"]
    assert table.schema.types[3:6] == table.schema.types[:3]


@pytest.mark.parametrize("closed", [False, True])
def test_a_quote_that_never_ends_spoils_its_own_line_only(tmp_path, closed):
    records = GOOD * 40
    lines = csv_text(records).splitlines(keepends=True)
    last = b'Gera",1,2026-01-01,2,5\n' if closed else b""
    source = tmp_path / "a.csv"
    source.write_bytes(b"".join([lines[0], b'"Kiel,1,2026-01-01,0,5\n', *lines[1:], last]))
    with pytest.raises(tt.FileError, match="a.csv, line 2: its quotes are broken"):
        read_source(str(source))
    with created(tmp_path / "run") as run:
        done = run.track(source, step_files=True, on_bad="quarantine")
        assert (done.records, done.bad) == (len(records) + closed, 1)


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def test_a_parquet_file_that_claims_too_much_is_refused(tmp_path):
    source = tmp_path / "a.parquet"
    table = pa.table({"place": ["a", "b"] * 500, "count": [1.0, 2.0] * 500})
    pq.write_table(table, source, store_schema=False)
    data = source.read_bytes()
    (length,) = struct.unpack("<I", data[-8:-4])
    body, foot = data[: -8 - length], data[-8 - length : -8]
    thousand = varint(2 * 1_000)
    places = [i for i in range(len(foot)) if foot.startswith(thousand, i)]
    said = set()
    for i in places:
        claim = foot[:i] + varint(2 << 40) + foot[i + len(thousand) :]
        source.write_bytes(body + claim + struct.pack("<I", len(claim)) + b"PAR1")
        try:
            assert read_source(str(source)).num_rows == 1_000
        except tt.FileError as error:
            said.add(str(error))
    assert any("says that it has 1,099,511,627,776 records" in sentence for sentence in said)


@pytest.mark.parametrize("packing", [None, "zstd"])
def test_an_arrow_file_that_claims_too_much_ends(tmp_path, packing):
    source = tmp_path / "a.arrow"
    table = pa.table({"place": ["a", "b"] * 50, "count": [1.0, 2.0] * 50})
    options = pa.ipc.IpcWriteOptions(compression=packing)
    with pa.ipc.new_file(source, table.schema, options=options) as writer:
        writer.write_table(table)
    data = source.read_bytes()
    refused = 0
    for i in range(8, len(data) - 8, 8):
        source.write_bytes(data[:i] + struct.pack("<q", 1 << 40) + data[i + 8 :])
        try:
            assert read_source(str(source)).num_rows <= 100
        except tt.FileError:
            refused += 1
    assert refused > 20
