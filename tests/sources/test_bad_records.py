"""Bad records: a sentence with file and line and nothing learned, or set aside with the reason."""

from __future__ import annotations

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tensortide as tt
from tensortide.tracker.quarantine import write_quarantine
from tests.models import fingerprint
from tests.sources.samples import arrow_table, created, csv_text, json_text, rows, write

GOOD = rows(4)
LINES = csv_text(GOOD).splitlines(keepends=True)
AT = 40  # a line in the middle; its record is GOOD[AT - 2]

#: what stands in line 40, and what is said about it
CSV = {
    "text for a number": (b"Kiel,1,2026-01-02,2,many\n", r"line 40: 'count' must be a number"),
    "decimal comma": (b'Kiel,1,2026-01-02,2,"1,5"\n', r"line 40: .*write it with a point"),
    "not finite": (b"Kiel,1,2026-01-02,2,inf\n", r"line 40: 'count' is not finite"),
    "nan": (b"Kiel,1,2026-01-02,2,nan\n", r"line 40: 'count' is not finite"),
    "no value": (b"Kiel,1,2026-01-02,2,\n", r"line 40: 'count' is missing"),
    "no label": (b",1,2026-01-02,2,5\n", r"line 40: 'place' is missing"),
    "no step": (b"Kiel,1,2026-01-02,,5\n", r"line 40: 'reported' is missing"),
    "no date": (b"Kiel,1,2026-13-02,2,5\n", r"line 40: the label .* of 'date' is not a date"),
    "missing field": (b"Kiel,1,2026-01-02,2\n", r"line 40: it has 4 fields, the header has 5"),
    "extra field": (b"Kiel,1,2026-01-02,2,5,6\n", r"line 40: it has 6 fields, the header has 5"),
    "broken quote": (b'"Kiel,1,2026-01-02,2,5\n', r"line 40: its quotes are broken"),
    "another encoding": (b"K\xf6ln,1,2026-01-02,2,5\n", r"line 40: byte 2 of the line is not"),
    "no text": (b"\x00\xff\xfe,,,,\n", r"line 40: byte 2 of the line is not UTF-8"),
}  # fmt: skip
JSON = {
    "no json": (b'{"place": "Kiel", \n', r"line 39: it is not JSON"),
    "a list": (b"[1, 2]\n", r"line 39: it is no JSON object"),
    "missing field": (b'{"place": "Kiel", "age": 1}\n', r"line 39: 'date' is missing"),
    "text for a number": (
        b'{"place": "Kiel", "age": 1, "date": "2026-01-02", "reported": 2, "count": "x"}\n',
        r"line 39: 'count' must be a number, not 'x'",
    ),
    "number for a text": (
        b'{"place": 7, "age": 1, "date": "2026-01-02", "reported": 2, "count": 5}\n',
        r"line 39: the label 7 of 'place' is not text",
    ),
    "half a character": (
        b'{"place": "\\ud800", "age": 1, "date": "2026-01-02", "reported": 2, "count": 5}\n',
        r"line 39: the label .* of 'place' is not text",
    ),
}


def with_bad(kind, form, tmp_path):
    if form == "csv":
        lines, bad = list(LINES), CSV[kind]
        lines[AT - 1] = bad[0]
    else:
        lines, bad = json_text(GOOD).splitlines(keepends=True), JSON[kind]
        lines[AT - 2] = bad[0]
    source = tmp_path / f"bad.{form}"
    source.write_bytes(b"".join(lines))
    return source, bad[1]


CASES = [("csv", k) for k in CSV] + [("jsonl", k) for k in JSON]


@pytest.mark.parametrize(("form", "kind"), CASES)
def test_stop_says_file_and_line_and_learns_nothing_of_the_step(tmp_path, form, kind):
    source, message = with_bad(kind, form, tmp_path)
    with created(tmp_path / "run") as run:
        with pytest.raises(tt.InputError, match=f"bad.{form}, {message}") as caught:
            run.track(source, step_by="reported")
        assert "Nothing of this step was learned" in str(caught.value)
        step = GOOD[AT - 2][3]
        assert run.batches()["label"].to_pylist() == [str(d) for d in range(step)]
        # the file is mended, and the same command goes on
        source.write_bytes(csv_text(GOOD) if form == "csv" else json_text(GOOD))
        assert run.track(source).steps == 4 - step
        whole = created(tmp_path / "whole")
        whole.track(source, step_by="reported")
        assert fingerprint(run.model) == fingerprint(whole.model)
        whole.close()


@pytest.mark.parametrize(("form", "kind"), CASES)
def test_quarantine_sets_the_record_aside_and_learns_the_rest(tmp_path, form, kind):
    source, _ = with_bad(kind, form, tmp_path)
    rest = [r for i, r in enumerate(GOOD) if i != AT - 2]
    clean = write(tmp_path / f"clean.{form}", rest)
    with created(tmp_path / "run") as run, created(tmp_path / "clean") as other:
        done = run.track(source, step_by="reported", on_bad="quarantine")
        assert (done.bad, done.records) == (1, len(rest))
        other.track(clean, step_by="reported")
        assert fingerprint(run.model) == fingerprint(other.model)
        (bad,) = run.quarantined()
        name, line, reason, text = bad.source, bad.line, bad.reason, bad.text
        assert (name, line) == (str(source), AT if form == "csv" else AT - 1)
        assert reason
        assert text
        file = write_quarantine(run)
        lines = file.read_text(encoding="utf-8").splitlines()
        assert lines[0] == "source,line,reason,record"
        assert len(lines) >= 2
        assert run.track(source, on_bad="quarantine").steps == 0
        assert len(run.quarantined()) == 1


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (b"one,2026-01-02", "the label 'one' of 'age' is not a whole number, as its labels are"),
        (b"1,2026-13-02", "the label '2026-13-02' of 'date' is not a date"),
        (b"1,2026-01-02T10:00", "of 'date' is not a date"),
        (b"1.5,2026-01-02", "of 'age' is not a whole number"),
    ],
)
def test_labels_stay_of_the_kind_that_they_are(tmp_path, field, message):
    write(tmp_path / "a.csv", GOOD)
    (tmp_path / "b.csv").write_bytes(LINES[0] + b"Kiel," + field + b",5,3.5\n")
    with created(tmp_path / "run") as run:
        run.track(tmp_path / "a.csv", step_by="reported")
        with pytest.raises(tt.InputError, match=f"b.csv, line 2: .*{message}"):
            run.track(tmp_path / "b.csv")


def test_a_field_over_several_lines_is_one_record(tmp_path):
    records = [("Bad\nElster", 1, "2026-01-01", 0, 5.0), ('5" pipe', 1, "2026-01-01", 0, 6.0)]
    text = csv_text([*records, ("Ulm", 2, "2026-01-01", 0, 7.5)])
    text += b'5" tube,2,2026-01-01,1,8\nx,2,2026-01-01,1\n'
    source = tmp_path / "a.csv"
    source.write_bytes(text)
    with tt.Tracker.create(tmp_path / "run", 1, modes=["place", "age"], value="count") as run:
        with pytest.raises(tt.InputError, match="line 7: it has 4 fields"):
            run.track(source, step_by="reported")
        assert run.model.labels_["place"].tolist() == ["Bad\nElster", '5" pipe', "Ulm"]
        run.track(source, on_bad="quarantine")
        assert run.model.labels_["place"].tolist()[3] == '5" tube'


def test_two_broken_quotes_spoil_two_lines_only(tmp_path):
    lines = list(LINES)
    lines[10] = b'"Kiel,1,2026-01-02,1,5\n'
    lines[14] = b'Ulm","1,2026-01-02,1,5\n'
    source = tmp_path / "a.csv"
    source.write_bytes(b"".join(lines))
    with created(tmp_path / "run") as run:
        assert run.track(source, step_files=True, on_bad="quarantine").bad == 2
        assert [q.line for q in run.quarantined()] == [11, 15]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.arrow"])
def test_an_empty_file_is_no_mistake_beside_others(tmp_path, name):
    folder = tmp_path / "reports"
    folder.mkdir()
    if name in ("a.csv", "a.jsonl"):
        (folder / name).write_bytes(b"")
    else:
        write(folder / name, GOOD[:1])
        empty = pq.read_table(folder / name) if name == "a.parquet" else None
        if empty is not None:
            pq.write_table(empty.slice(0, 0), folder / name)
        else:
            table = pa.ipc.open_file(folder / name).read_all().slice(0, 0)
            with pa.ipc.new_file(folder / name, table.schema) as writer:
                writer.write_table(table)
    with created(tmp_path / "run") as run:
        with pytest.raises(tt.FileError, match="no records yet"):
            run.track(folder)
        write(folder / "b.csv", GOOD)
        done = run.track(folder, step_by="reported")
        assert done.steps == 4
        assert [s.why for s in done.skipped] == ["is empty"]


def test_a_header_alone_has_no_records(tmp_path):
    (tmp_path / "a.csv").write_bytes(LINES[0])
    write(tmp_path / "b.csv", GOOD)
    with created(tmp_path / "run") as run:
        done = run.track([tmp_path / "a.csv", tmp_path / "b.csv"], step_files=True)
        assert [s.why for s in done.skipped] == ["has no records"]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.csv.gz", "a.parquet", "a.arrow"])
def test_a_file_that_shrinks_while_it_is_read_is_noticed(tmp_path, monkeypatch, name):
    from tensortide.sources import bytestream as octets
    from tensortide.sources import columnar, text

    for module in (octets, text):
        monkeypatch.setattr(module, "BLOCK", 2_000)
    monkeypatch.setattr(columnar, "_ROWS", 10)
    many = rows(60, seed=1) if name.endswith(("parquet", "arrow")) else rows(28)
    if name.endswith(("parquet", "arrow")):
        many = [(*r[:2], "2026-01-01", *r[3:]) for r in many]
    source = write(tmp_path / name, many)
    size = source.stat().st_size
    with created(tmp_path / "run") as run:
        from tensortide.tracker.feeding import FeedOptions, feed_files, first_sample, roles_of

        sample, n_files = first_sample([source])
        how = FeedOptions(cut=drive_cut())
        events = feed_files(run, [source], roles_of(run, sample, how, n_files), how)
        next(events)
        os.truncate(source, size // 3)
        with pytest.raises(tt.TensortideError) as caught:
            list(events)
        assert name in str(caught.value)
        assert run.batches().num_rows >= 1


def drive_cut():
    from tensortide.sources.cut import Cut

    return Cut(rows=15)


@pytest.mark.parametrize("on_bad", ["stop", "quarantine"])
def test_missing_fields_in_columns_are_bad_records_too(tmp_path, on_bad):
    counts = [1.0, float("inf"), 3.0, None]
    labels = {"place": ["a", "b", None, "a"], "day": [1, 1, 2, 2]}
    table = pa.table(labels | {"count": counts, "note": ["x", "y", "z", "w"]})
    pq.write_table(table, tmp_path / "a.parquet")
    with tt.Tracker.create(tmp_path / "run", 1, modes=["place", "day"], value="count") as run:
        run.ingest({"place": ["a", "b"], "day": [1, 2], "count": [1.0, 2.0]})
        if on_bad == "stop":
            with pytest.raises(tt.InputError, match=r"record 2: 'count' is not finite \(2 more"):
                run.track(tmp_path / "a.parquet")
            assert run.batches().num_rows == 1
        else:
            done = run.track(tmp_path / "a.parquet", on_bad="quarantine")
            assert (done.records, done.bad) == (1, 3)
            assert [(q.line, q.reason) for q in run.quarantined()] == [
                (2, "'count' is not finite"), (3, "'place' is missing"), (4, "'count' is missing")
            ]  # fmt: skip
            assert json.loads(run.quarantined()[0].text)["count"] == float("inf")


def test_a_step_of_bad_records_only_is_passed_over_for_good(tmp_path):
    lines = [LINES[0], b"Kiel,1,2026-01-01,0,x\n", *LINES[1:]]
    source = tmp_path / "a.csv"
    source.write_bytes(
        b"".join(lines).replace(b",0,", b",1,").replace(b"2026-01-01,1,x", b"2026-01-01,0,x")
    )
    with created(tmp_path / "run") as run:
        done = run.track(source, step_by="reported", on_bad="quarantine")
        assert done.bad == 1
        assert len(run.quarantined()) == 1
        assert run.track(source, on_bad="quarantine").steps == 0


WRONG = {
    "utf16.csv": ("place,count\n".encode("utf-16"), "UTF-16"),
    "list.json": (b'[{"place": 1}]', "one object per line"),
    "parquet.csv": (b"PAR1....", "Parquet"),
    "twice.csv": (b"place,place,count\n1,2,3\n", "two columns 'place'"),
    "other.csv": (b"location,value\nx,1\n", "there is no column 'place'"),
    "latin.csv": ("größe,count\n".encode("latin-1"), "line 1: byte 3 of the line is not UTF-8"),
    "cut.csv.gz": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03abc", "compressed, but cut"),
    "no.parquet": (b"not parquet at all", "cannot be read"),
    "no.arrow": (b"not arrow at all", "cannot be read"),
    "old.feather": (b"FEA1 and so on", "version 1"),
    "what.xyz": (b"a,b\n", "unknown kind"),
    "text.jsonl": (b"place,age\nKiel,1\n", "line 1: it is not JSON"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_with_a_sentence_and_its_name(tmp_path, name):
    data, message = WRONG[name]
    (tmp_path / name).write_bytes(data)
    with created(tmp_path / "run") as run:
        with pytest.raises(tt.TensortideError, match=message) as caught:
            run.track(tmp_path / name)
        assert name in str(caught.value) or "no column" in str(caught.value)
        assert run.batches().num_rows == 0


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + csv_text(GOOD))
    with created(tmp_path / "run") as run:
        assert run.track(tmp_path / "a.csv", step_by="reported").steps == 4


def test_windows_line_ends_blank_lines_and_leading_zeros(tmp_path):
    data = csv_text(GOOD, newline="\r\n").replace(b"Kiel", b"04109").replace(b"Gera", b"99")
    data = data.replace(b"\r\n", b"\r\n\r\n", 9) + b"\r\n\n"
    (tmp_path / "a.csv").write_bytes(data)
    with created(tmp_path / "run") as run:
        assert run.track(tmp_path / "a.csv", step_by="reported").records == len(GOOD)
        assert "04109" in run.model.labels_["place"].tolist()


def test_numbers_with_leading_zeros_are_codes_and_stay_text(tmp_path):
    lines = ["code,day,count", "01234,1,2.5", "99999,1,3.5", "01234,2,4.5"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    with tt.Tracker.create(tmp_path / "run", 1, modes=["code", "day"], value="count") as run:
        run.track(tmp_path / "a.csv", step_by="day")
        assert run.model.labels_["code"].tolist() == ["01234", "99999"]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.arrow", "table"])
@pytest.mark.parametrize(
    ("loss", "value", "takes"),
    [
        ("poisson", -3.0, "from 0 on"),
        ("negative_binomial", -0.5, "from 0 on"),
        ("gamma", 0.0, "above 0"),
        ("bernoulli", 1.5, "from 0 to 1"),
    ],
)
def test_values_that_the_loss_does_not_take_are_bad_records(tmp_path, name, loss, value, takes):
    good = [(*r[:4], float(k % 2) + (loss != "bernoulli")) for k, r in enumerate(GOOD)]
    spoilt = [(*r[:4], value) if k == AT - 2 else r for k, r in enumerate(good)]
    rest = [r for k, r in enumerate(good) if k != AT - 2]
    source = arrow_table(spoilt) if name == "table" else write(tmp_path / name, spoilt)
    line = AT if name == "a.csv" else AT - 1
    reason = f"'count' is {value:g}, but loss '{loss}' takes values {takes}"
    stops = pytest.raises(tt.InputError, match=f"{line}: {reason}. Nothing of this step")
    with created(tmp_path / "run", loss=loss) as run, stops:
        run.track(source, step_by="reported", name="t")
    with created(tmp_path / "aside", loss=loss) as run, created(tmp_path / "b", loss=loss) as other:
        done = run.track(source, step_by="reported", on_bad="quarantine", name="t")
        assert (done.bad, done.records) == (1, len(rest))
        assert [(bad.line, bad.reason) for bad in run.quarantined()] == [(line, reason)]
        other.track(arrow_table(rest), step_by="reported")
        assert fingerprint(run.model) == fingerprint(other.model)


@pytest.mark.parametrize("options", [{"duplicates": "sum"}, {"combine": "add"}])
def test_of_values_that_are_put_together_the_loss_judges_what_comes_out(tmp_path, options):
    again = [(*r[:4], -0.25) for r in GOOD[:3]]
    source = write(tmp_path / "a.csv", sorted([*GOOD, *again], key=lambda r: r[3]))
    options = {"loss": "poisson", "duplicates": "sum"} | options
    with created(tmp_path / "run", "gocpt", **options) as run:
        assert run.track(source, step_by="reported").records == len(GOOD) + 3
