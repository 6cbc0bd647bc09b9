"""`tensortide compare` and the files it reads, with the real command."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import tensortide as tt
from tensortide.experiments.compare import Task, final_cells, judge_method, prepare
from tensortide.sources.whole import read_source


def table(seed=0, shape=(6, 4, 16)):
    x = tt.simulate.low_rank(shape, 2, seed=seed, noise=0.02).dense()
    cells = np.argwhere(np.ones(shape, bool))
    return pa.table(
        {
            "place": [f"p{i}" for i in cells[:, 0]],
            "kind": cells[:, 1],
            "day": cells[:, 2],
            "count": x[tuple(cells.T)],
        }
    )


TASK = {"modes": ["place", "kind", "day"], "value": "count", "step_by": "day", "rank": 2}


def results_of(task, methods):
    steps = task.steps()
    start, final = prepare(task, steps), final_cells(task, steps)
    return [judge_method(task, name, steps, start, final) for name in methods]


def test_all_methods_are_compared_on_the_same_batches():
    results = results_of(Task(table=table(), **TASK), list(tt.METHODS))
    assert [r.method for r in results] == list(tt.METHODS)
    for r in results:
        assert r.refused is None
        assert r.steps == 8
        assert r.fitness > 0.9
        assert r.error == pytest.approx(results[0].error, rel=0.2)
        assert len(r.errors) == len(r.errors_after) == 8
        assert r.bytes > 0


def test_methods_that_cannot_say_why():
    holes = table().filter(pa.array([i % 7 != 0 for i in range(6 * 4 * 16)]))
    able, unable = results_of(Task(table=holes, **TASK), ["gocpte", "rlst"])
    assert able.refused is None
    assert "needs every cell" in unable.refused
    assert unable.refused_at == 0


def test_steps_are_the_values_of_a_column_in_order():
    shuffled = table().take(np.random.default_rng(0).permutation(6 * 4 * 16))
    steps = Task(table=shuffled, **TASK, start=0.25).steps()
    parts = [steps.first, *steps.batches]
    assert steps.labels == list(range(4, 16))
    assert [p.num_rows for p in parts] == [4 * 24] + [24] * 12
    assert set(parts[0]["day"].to_pylist()) == {0, 1, 2, 3}
    assert [set(p["day"].to_pylist()) for p in parts[1:]] == [{d} for d in range(4, 16)]


def test_sums_of_duplicates_are_scored_as_sums():
    once = table()
    half = once.set_column(3, "count", pa.array(once["count"].to_numpy() / 2))
    twice = pa.concat_tables([half, half])
    (plain,) = results_of(Task(table=once, **TASK, hold_out=0.2), ["gocpt"])
    (summed,) = results_of(Task(table=twice, **TASK, duplicates="sum", hold_out=0.2), ["gocpt"])
    assert summed.fitness == pytest.approx(plain.fitness, abs=1e-9)
    assert summed.error_held == pytest.approx(plain.error_held, abs=1e-9)
    (mean,) = results_of(Task(table=twice, **TASK, duplicates="mean", hold_out=0.2), ["gocpt"])
    assert mean.error_held == pytest.approx(plain.error_held, rel=1e-3)  # but for the ridge


def test_cells_held_out_are_never_learned_and_judge_after_the_rest_is():
    """Another value of a cell held out changes its error and nothing else."""
    once = table()
    task = Task(table=once, **TASK, hold_out=0.1)
    steps = task.steps()
    assert 0.05 * 8 * 24 < steps.n_held < 0.2 * 8 * 24
    held = {tuple(row.values()) for h in steps.held for row in h.labels.to_pylist()}
    learned = {tuple(row.values())[:3] for b in steps.batches for row in b.to_pylist()}
    assert not held & learned
    assert steps.first.num_rows == 8 * 24
    rows = [tuple(row.values())[:3] for row in once.to_pylist()]
    pairs = zip(rows, once["count"].to_pylist(), strict=True)
    values = [v + 5.0 if r in held else v for r, v in pairs]
    (before,) = results_of(task, ["gocpte"])
    other = Task(table=once.set_column(3, "count", pa.array(values)), **TASK, hold_out=0.1)
    (after,) = results_of(other, ["gocpte"])
    assert before.error_held < 0.2 < after.error_held
    assert after.fitness == before.fitness
    assert after.errors == before.errors


def test_cells_are_held_out_unless_the_first_data_are_complete():
    assert Task(table=table(), **TASK).steps().n_held == 0
    holes = table().filter(pa.array([i % 7 != 0 for i in range(6 * 4 * 16)]))
    assert Task(table=holes, **TASK).steps().n_held > 0
    assert Task(table=holes, **TASK, absent="zero").steps().n_held == 0
    with pytest.raises(tt.InputError, match="would count as zeros"):
        Task(table=holes, **TASK, absent="zero", hold_out=0.1).steps()


def test_repeated_cells_are_counted_and_named():
    once = table()
    steps = Task(table=pa.concat_tables([once, once.slice(10, 2)]), **TASK).steps()
    assert (steps.within, steps.across) == (2, 0)
    late = once.append_column("seen", pa.array([day + 0 for day in once["day"].to_pylist()]))
    again = late.slice(0, 3).set_column(4, "seen", pa.array([15, 15, 15]))
    steps = Task(table=pa.concat_tables([late, again]), **TASK | {"step_by": "seen"}).steps()
    assert (steps.within, steps.across) == (0, 3)
    shuffled = pa.concat_tables([once.slice(200, 1), once])
    with pytest.raises(tt.InputError, match=r"records 0 and 201 \(.*\) are for the same cell"):
        Task(table=shuffled, **TASK, duplicates="error").steps()


def versions():
    """Every cell at three report dates; the value is that of the last one, newest first in file."""
    day = table()
    parts = []
    for late in (2, 1, 0):
        seen = pa.array([d + late for d in day["day"].to_pylist()])
        values = pa.array(day["count"].to_numpy() * (1.0 if late == 2 else 100.0))
        parts.append(day.set_column(3, "count", values).append_column("seen", seen))
    return pa.concat_tables(parts)


@pytest.mark.parametrize("rule", ["last", "sum", "mean", "error"])
def test_in_the_preparation_the_latest_report_counts_wherever_it_stands(rule):
    task = Task(table=versions(), **TASK | {"step_by": "seen"}, duplicates=rule)
    steps = task.steps()
    assert (steps.within, steps.across) == (0, 2 * 6 * 4 * 16)
    truth = {(p, k, d): v for p, k, d, v in zip(*table().to_pydict().values(), strict=True)}
    for row in steps.first.to_pylist():
        value = truth[row["place"], row["kind"], row["day"]]
        last = row["day"] + 2 < steps.labels[0]
        assert row["count"] == pytest.approx(value if last else 100.0 * value)
    cells = [(r["place"], r["kind"], r["day"]) for r in steps.first.to_pylist()]
    assert len(set(cells)) == len(cells)


def test_the_order_of_the_records_decides_nothing():
    holes = table().filter(pa.array([i % 7 != 0 for i in range(6 * 4 * 16)]))
    other = holes.take(np.random.default_rng(1).permutation(holes.num_rows))
    held = [
        {
            tuple(r.values())
            for h in Task(table=t, **TASK).steps().held
            for r in h.labels.to_pylist()
        }
        for t in (holes, other)
    ]
    assert held[0] == held[1]
    one, two = (results_of(Task(table=t, **TASK), ["gocpte"])[0] for t in (holes, other))
    assert one.error_held == pytest.approx(two.error_held, rel=1e-3)  # another random start


def test_the_spread_is_that_of_leaving_out_a_step():
    holes = table().filter(pa.array([i % 7 != 0 for i in range(6 * 4 * 16)]))
    (result,) = results_of(Task(table=holes, **TASK, hold_out=0.3), ["gocpte"])
    assert 0.0 < result.error_held_spread < result.error_held
    assert min(result.errors_held) < result.error_held < max(result.errors_held)


def test_a_day_of_zeros_counts_and_has_its_place():
    """A batch of zeros that was predicted to be something is missed, though it has no share."""
    zero = table()
    values = zero["count"].to_numpy().copy()
    values[zero["day"].to_numpy() == 12] = 0.0
    zero = zero.set_column(3, "count", pa.array(values))
    (result,) = results_of(Task(table=zero, **TASK), ["gocpte"])
    assert [e is None for e in result.errors] == [day == 12 for day in range(8, 16)]
    assert [e is None for e in result.errors_after] == [day == 12 for day in range(8, 16)]
    without = zero.filter(pa.array(zero["day"].to_numpy() != 12))
    (other,) = results_of(Task(table=without, **TASK, start=8 / 15), ["gocpte"])
    assert result.error > other.error + 0.02


def test_a_label_is_never_held_out_altogether():
    holes = table().filter(pa.array([i % 7 != 0 for i in range(6 * 4 * 16)]))
    steps = Task(table=holes, **TASK, hold_out=0.9).steps()
    learned = {d for b in [steps.first, *steps.batches] for d in b["day"].to_pylist()}
    assert learned == set(range(16))
    assert steps.n_held > 50


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow"])
def test_every_kind_of_file_gives_the_same_table(kind, tmp_path):
    file, wanted = tmp_path / f"data.{kind}", table()
    if kind == "csv":
        csv.write_csv(wanted, file)
    elif kind == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in wanted.to_pylist()))
    elif kind == "parquet":
        pq.write_table(wanted, file)
    else:
        pa.feather.write_feather(wanted, file)
    assert read_source(str(file)).to_pydict() == wanted.to_pydict()
    again = tmp_path / "folder"
    again.mkdir()
    file.rename(again / file.name)
    assert read_source(str(again)).num_rows == wanted.num_rows


def test_broken_and_unknown_files_are_named(tmp_path):
    with pytest.raises(tt.FileError, match="nothing.csv: there is no such file"):
        read_source(str(tmp_path / "nothing.csv"))
    (tmp_path / "x.parquet").write_text("no parquet")
    with pytest.raises(tt.FileError, match=r"x.parquet: cannot be read: Parquet magic"):
        read_source(str(tmp_path / "x.parquet"))
    (tmp_path / "x.xlsx").write_text("")
    with pytest.raises(tt.FileError, match=r"x.xlsx: is of an unknown kind"):
        read_source(str(tmp_path / "x.xlsx"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(tt.FileError, match="has no file of a known kind"):
        read_source(str(tmp_path / "empty"))
    (tmp_path / "two.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(tt.FileError, match=r"two.csv, line 3: it has 1 fields, the header has 2"):
        read_source(str(tmp_path / "two.csv"))


def test_what_spreadsheets_write_is_read_or_named(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("place;count\nUlm;3\nNA;4\n")
    assert read_source(str(file)).to_pydict() == {"place": ["Ulm", "NA"], "count": [3, 4]}
    file.write_text("place,count\n,3\nKiel,4\n")
    assert read_source(str(file))["place"].null_count == 1
    file.write_bytes("place,count\nM\xfcnchen,3\n".encode("latin-1"))
    with pytest.raises(tt.FileError, match="line 2: byte 2 of the line is not UTF-8"):
        read_source(str(file))
    (tmp_path / "list.json").write_text('[{"place": "Ulm"}]')
    with pytest.raises(tt.FileError, match="one object per line"):
        read_source(str(tmp_path / "list.json"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("place,kind,day,count\n", "there are no records"),
        ("place,kind,day,count,count\na,b,1,2,3\n", "two columns 'count'"),
        ("place,kind,day,count\na,b,1,2\na,b,2,n/a\n", "not 'n/a' as in record 1"),
        ("place,kind,day,count\na,b,1,2\na,b,2,\na,b,3,\n", "missing in record 1 .* and 1 more"),
        ("place,kind,day,count\na,b,1,2\n,b,2,3\n", "'place' is missing in record 1"),
        ("place,kind,day,count\na,b,1,2\na,b,2,inf\n", "'count' is not finite in record 1"),
        ("place,kind,day,count\na,b,1,2\na,b,2,3\n", "has 2 distinct values"),
    ],
)
def test_bad_tables_are_refused_by_the_record_of_the_file(tmp_path, text, message):
    file = tmp_path / "data.csv"
    file.write_text(text)
    with pytest.raises(tt.TensortideError, match=message):
        Task(table=read_source(str(file)), **TASK).steps()


def test_nested_columns_are_no_labels():
    nested = pa.table({"place": [["a"]], "kind": ["b"], "day": [1], "count": [1.0]})
    with pytest.raises(tt.InputError, match="column 'place' holds list"):
        Task(table=nested, **TASK).steps()


def test_the_command_prints_a_table_and_writes_a_picture(run, tmp_path):
    file, picture = tmp_path / "data.csv", tmp_path / "out.png"
    csv.write_csv(table(), file)
    args = ("--modes", "place,kind,day", "--value", "count", "--rank", 2)
    done = run("compare", file, *args, "-o", picture, width=80)
    assert done.returncode == 0, done.stderr
    for name in tt.METHODS:
        assert name in done.stdout
    assert "beta=1e-05" in done.stdout
    assert max(map(len, done.stdout.splitlines()[2:16])) <= 80
    assert "\x1b" not in done.stdout
    assert picture.stat().st_size > 10_000
    only = ("--methods", "gocpte", "--no-rivals", "--json")
    piped = run("compare", "-", *args, *only, given=file.read_text())
    assert json.loads(piped.stdout)["method"] == "gocpte"


def test_what_a_method_refuses_is_said_in_options(run, tmp_path):
    file = tmp_path / "data.csv"
    csv.write_csv(table(), file)
    args = ("--modes", "place,kind,day", "--value", "count", "--absent", "zero", "--no-rivals")
    done = run("compare", file, *args, "--rank", 2, "--methods", "gocpt,rlst", "--json")
    assert done.returncode == 0, done.stderr
    (refused,) = (r["refused"] for r in map(json.loads, done.stdout.splitlines()) if r["refused"])
    assert "so --absent zero does not go with it; use --method online_cpd or cp_stream" in refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--modes", "place,kinds,day"], "no column 'kinds'"),
        (["--methods", "magic"], "no method 'magic'"),
        (["--value", "counts"], "no column 'counts'"),
        (["--step-by", "hour"], "no column 'hour'"),
        (["--step-by", "count"], "has the values"),
        (["--methods", "CPStream"], "did you mean 'cp_stream'"),
        (["--step-by", "place", "--absent", "void"], "--absent must be"),
        (["--start", "1"], "no step is left"),
        (["--start", "1"], "such as --start 0.5, or --start 0 to prepare on the first step alone"),
    ],
)
def test_mistakes_are_one_sentence(run, tmp_path, change, message):
    file = tmp_path / "data.csv"
    csv.write_csv(table(), file)
    base = {"--modes": "place,kind,day", "--value": "count", "--rank": "2"}
    base |= dict(zip(change[::2], change[1::2], strict=True))
    done = run("compare", file, *[part for pair in base.items() for part in pair])
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_one_method_may_be_given_by_its_name_alone():
    words = {"rank": 2, "modes": ["place", "kind", "day"], "value": "count", "rivals": False}
    words |= {"step_by": "day", "progress": False}
    (row,) = tt.compare(table(), methods="gocpte", **words).rows
    assert row.method == "gocpte"
    (same,) = tt.compare(table(), methods=["gocpte"], **words).rows
    assert same.errors == row.errors
    with pytest.raises(tt.InputError, match="no method 'gocpta'; did you mean 'gocpt"):
        tt.compare(table(), methods="gocpta", **words)
    with pytest.raises(tt.InputError, match="methods are given by their names"):
        tt.compare(table(), methods=[tt.gocpt()], **words)
    with pytest.raises(tt.InputError, match="start=1 .*, and no step is left"):
        tt.compare(table(), start=1, **words)


def test_reproduce_writes_results_tables_and_figures(run, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n<!-- results: complexity -->\nold\n<!-- end of results -->\nrest\n")
    out = tmp_path / "out"
    done = run("reproduce", "complexity", "--quick", "-o", out, "--document", page)
    assert done.returncode == 0, done.stderr
    assert {f.suffix for f in out.iterdir()} == {".jsonl", ".md", ".png", ".svg"}
    assert "| GOCPT_E |" in page.read_text()
    assert "old" not in page.read_text()
    assert page.read_text().endswith("rest\n")
    again = run("reproduce", "complexity", "--quick", "-o", out)
    assert again.stdout.count("|") == done.stdout.count("|")
    wrong = run("reproduce", "tables")
    assert wrong.returncode == 2
    assert "no experiment 'tables'" in wrong.stderr
