"""A line without end, a bomb, bytes that are no text: a sentence, in bounded memory and work."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import tracemalloc
import types

import pyarrow as pa
import pytest

import tensortide as tt
from tensortide.sources import bytestream as octets
from tensortide.sources import text
from tensortide.sources.cells import read_cells
from tensortide.sources.columns import ColumnSpec
from tensortide.sources.files import open_feed
from tensortide.sources.resume import ResumeAt
from tensortide.sources.text import TextFeed
from tensortide.sources.whole import read_source
from tests.sources.samples import MODES, created, csv_text, json_text, rows

GOOD = rows(5)
LONGEST, BLOCK = 10_000, 1_000
FORMS = ["a.csv", "a.jsonl", "a.csv.gz", "a.jsonl.xz", "a.csv.zst"]
WANTED = ColumnSpec({"place": "text", "age": "integer", "date": "date"}, "count")


@pytest.fixture
def small(monkeypatch):
    """Make blocks and the longest line small."""
    monkeypatch.setattr(octets, "LONGEST", LONGEST)
    for module in (octets, text):
        monkeypatch.setattr(module, "BLOCK", BLOCK)


def packed(name, data):
    if name.endswith(".zst"):
        return pa.Codec("zstd").compress(data, asbytes=True)
    return {"gz": gzip.compress, "xz": lzma.compress}.get(name.split(".")[-1], bytes)(data)


def lines_of(name):
    return (json_text if "json" in name else csv_text)(GOOD).splitlines(keepends=True)


def endless(name, before):
    """A text of some good lines and then one without end."""
    return b"".join(lines_of(name)[:before]) + b"x" * (5 * LONGEST)


def taken(feed):
    """All pieces of a feed, which is closed then."""
    with contextlib.closing(feed):
        return list(feed.pieces(WANTED, ResumeAt()))


def piped(monkeypatch, data, size):
    """Make bytes standard input that brings a few at a time."""
    buffer = io.BufferedReader(io.BytesIO(data), size)
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=buffer))


def test_the_longest_line_is_longer_than_a_block():
    assert octets.LONGEST >= octets.BLOCK


@pytest.mark.parametrize("on_bad", ["stop", "quarantine"])
@pytest.mark.parametrize("before", [0, 1, 50])
@pytest.mark.parametrize("name", FORMS)
def test_a_line_without_end_is_refused_by_file_and_line(tmp_path, small, name, before, on_bad):
    source = tmp_path / name
    source.write_bytes(packed(name, endless(name, before)))
    with created(tmp_path / "run") as run:
        with pytest.raises(tt.FileError) as caught:
            run.track(source, step_by="reported", on_bad=on_bad)
        assert f"{name}, line {before + 1}: it is longer than 0.00954 MB" in str(caught.value)
        assert run.batches().num_rows == 0
        assert run.quarantined() == []
    with pytest.raises(tt.FileError, match=f"{name}, line {before + 1}: it is longer than"):
        read_source(str(source))  # as `compare` and `nowcast` do
    with pytest.raises(tt.FileError, match=f"{name}, line {before + 1}: it is longer than"):
        taken(open_feed(source, growing=True))


def test_cells_that_are_asked_for_have_the_same_limit(tmp_path, small):
    source = tmp_path / "cells.csv"
    source.write_bytes(endless("a.csv", 9))
    with created(tmp_path / "run") as run:
        run.ingest(dict(zip([*MODES, "reported", "count"], zip(*GOOD, strict=True), strict=True)))
        modes = run.model._model.modes
    with pytest.raises(tt.FileError, match="cells.csv, line 10: it is longer than"):
        read_cells(modes, str(source))


@pytest.mark.parametrize("before", [0, 1, 50])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_pipe_has_the_same_limit(small, monkeypatch, name, before):
    for read in (taken, TextFeed.whole):
        if before or "csv" in name:
            piped(monkeypatch, endless(name, before), 64)
            with pytest.raises(
                tt.FileError, match=f"standard input, line {before + 1}: it is long"
            ):
                read(open_feed(None))


@pytest.mark.parametrize("block", [777, 1_000, 9_999, 10_000])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.csv.gz"])
def test_the_limit_is_exact_wherever_blocks_end(tmp_path, small, monkeypatch, name, block):
    for module in (octets, text):
        monkeypatch.setattr(module, "BLOCK", block)
    source = tmp_path / name
    lines = lines_of(name)
    at = max(i for i, line in enumerate(lines) if b"Kiel" in line)
    spare = LONGEST + 1 - len(lines[at])  # the line end does not count
    name_at = lines[at].index(b"Kiel")
    for extra in (0, 1):
        long = lines[at][:name_at] + b"G" * (spare + extra) + lines[at][name_at:]
        source.write_bytes(packed(name, b"".join([*lines[:at], long, *lines[at + 1 :]])))
        if extra:
            with pytest.raises(tt.FileError, match=f"line {at + 1}: it is longer"):
                taken(open_feed(source))
        else:
            pieces = taken(open_feed(source))
            assert sum(p.table.num_rows for p in pieces) == len(GOOD)
            assert not any(p.bad for p in pieces)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_long_line_that_comes_in_small_pieces_is_looked_through_once(small, monkeypatch, name):
    lines = lines_of(name)
    long = [line.replace(b"Kiel", b"Kiel" * 2_000) for line in lines]
    data = b"".join(long)
    looked = []
    inner = text.split
    monkeypatch.setattr(
        text, "split", lambda d, *a, **k: looked.append(len(d)) or inner(d, *a, **k)
    )
    piped(monkeypatch, data, 64)
    pieces = taken(open_feed(None))
    assert sum(p.table.num_rows for p in pieces) == len(GOOD)
    assert sum(looked) <= 3 * len(data)


@pytest.mark.parametrize("filling", [b"x", b"\0"])
@pytest.mark.parametrize("before", [0, 40])
def test_a_bomb_is_read_no_farther_than_the_limit(tmp_path, small, monkeypatch, filling, before):
    source = tmp_path / "a.csv.gz"
    source.write_bytes(gzip.compress(b"".join(lines_of("a.csv")[:before]) + filling * (20 << 20)))
    opened = []
    inner = octets.ByteStream.__init__
    monkeypatch.setattr(octets.ByteStream, "__init__", lambda s, p: opened.append(s) or inner(s, p))
    for read in (taken, TextFeed.whole):
        tracemalloc.start()
        with pytest.raises(tt.FileError):
            read(open_feed(source))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1 << 20
    assert all(o.at <= 2_000 + LONGEST + BLOCK for o in opened)


def test_packed_text_larger_than_the_limit_is_no_bomb(tmp_path, small):
    source = tmp_path / "a.csv.gz"
    lines = lines_of("a.csv")
    source.write_bytes(gzip.compress(lines[0] + b"".join(lines[1:]) * 50))
    pieces = taken(open_feed(source))
    assert sum(p.table.num_rows for p in pieces) == 50 * len(GOOD)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_first_lines_longer_than_a_block_are_read_whole(tmp_path, small, monkeypatch, name):
    monkeypatch.setattr(text, "_SAMPLE", 1_000)
    source = tmp_path / name
    wide = [f"further column {i}" for i in range(300)]
    if name == "a.csv":
        lines = [",".join(["place", "count", *wide]), ",".join(["Kiel", "1.5", *("0" * 300)])]
    else:
        fields = ", ".join(f'"{w}": 0' for w in wide)
        lines = [f'{{"place": "Kiel", "count": 1.5, {fields}}}'] * 2
    source.write_text("\n".join(lines) + "\n")
    with contextlib.closing(open_feed(source)) as feed:
        assert feed.sample().num_columns == 302
        pieces = list(feed.pieces(ColumnSpec({"place": "text"}, "count"), ResumeAt()))
    values = [value for piece in pieces for value in piece.table["count"].to_pylist()]
    assert values == [1.5] * (1 if name == "a.csv" else 2)
