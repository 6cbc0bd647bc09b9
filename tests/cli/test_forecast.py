"""`tensortide forecast`, and `predict` of labels that never came."""

from __future__ import annotations

import datetime as dt
import json

import pyarrow.parquet as pq
import pytest

import tensortide as tt

DAY0 = dt.date(2026, 1, 1)


@pytest.fixture(scope="module")
def tracked(tmp_path_factory):
    """A run of three places and 25 days, and one with the paper's prior."""
    folder = tmp_path_factory.mktemp("forecast")
    cells = [(p, a, d) for d in range(25) for p in range(3) for a in (1, 2)]
    table = {
        "place": [["Kiel", "Gera", "Ulm"][p] for p, _, _ in cells],
        "age": [a for _, a, _ in cells],
        "date": [DAY0 + dt.timedelta(d) for *_, d in cells],
        "count": [10.0 * (p + 1) * a + d % 7 for p, a, d in cells],
    }
    for name, prior in (("run", None), ("paper", "paper")):
        with tt.Tracker.create(
            folder / name, 2, "gocpte", modes=["place", "age", "date"], value="count", prior=prior
        ) as run:
            run.track(table, step_by="date", first=10)
    return folder


def test_a_table_for_people_and_lines_for_machines(run, tracked):
    path = str(tracked / "run")
    done = run("forecast", path, "--steps", "3", "--where", "place=Ulm", "--where", "age=2")
    assert done.returncode == 0, done.stderr
    assert "forecast" in done.stdout
    shown = [line.split() for line in done.stdout.splitlines() if line.startswith(" Ulm")]
    assert [row[:3] for row in shown] == [["Ulm", "2", f"2026-01-{26 + k}"] for k in range(3)]
    with tt.Tracker.open(tracked / "run", read_only=True) as held:
        expected = held.model.forecast(3)
    lines = [
        json.loads(line)
        for line in run("forecast", path, "--steps", "3", "--json").stdout.splitlines()
    ]
    assert lines == [row | {"date": str(row["date"])} for row in expected.to_pylist()]
    many = run("forecast", path, "--steps", "20")
    assert "60 more rows; -o FILE writes all" in many.stdout


def test_files_and_pictures(run, tracked):
    path = str(tracked / "run")
    for name in ("a.csv", "a.parquet", "a.svg", "a.png"):
        done = run("forecast", path, "--steps", "4", "--mode", "date", "-o", str(tracked / name))
        assert done.returncode == 0, done.stderr
        assert name in done.stderr
        assert done.stdout == ""
    head, *rows = (tracked / "a.csv").read_text().splitlines()
    assert head == '"place","age","date","value","forecast"'
    assert len(rows) == 24
    assert all(row.endswith(",true") for row in rows)
    assert pq.read_table(tracked / "a.parquet").num_rows == 24
    assert (tracked / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert "forecast" in (tracked / "a.svg").read_text()


@pytest.mark.parametrize(
    ("name", "words", "told"),
    [
        ("run", ["--steps", "0"], "steps must be a whole number from 1 on"),
        ("run", ["--steps", "2.5"], "'--steps'"),
        ("run", [], "'--steps'"),
        ("run", ["--steps", "1", "--mode", "week"], "there is no mode 'week'"),
        ("run", ["--steps", "1", "--mode", "place"], "mode 'place' has text labels"),
        ("run", ["--steps", "1", "--where", "place"], "say a mode and a label, as in place=Kiel"),
        ("run", ["--steps", "1", "--where", "place=Bonn"], "mode 'place' has no label 'Bonn'"),
        ("run", ["--steps", "1", "--where", "age=old"], "mode 'age' has integer labels"),
        ("run", ["--steps", "1", "--where", "date=2026-01-01"], "say how far with --steps"),
        ("run", ["--steps", "99999999"], "choose labels with --where MODE=LABEL"),
        ("run", ["--steps", "1", "-o", "x.xlsx"], "must end with .csv, .parquet, .arrow, .png"),
        ("run", ["--steps", "1", "--where", "age=1", "-o", "x.png"], "--where goes with a table"),
        ("run", ["--steps", "0", "-o", "x.png"], "steps must be a whole number from 1 on"),
        ("paper", ["--steps", "1"], "made with --prior paper, which sees nothing ahead"),
        ("none", ["--steps", "1"], "there is no run here"),
    ],
)
def test_mistakes_are_one_sentence(run, tracked, name, words, told):
    done = run("forecast", str(tracked / name), *words)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_predict_marks_labels_that_never_came(run, tracked):
    cells = tracked / "cells.csv"
    cells.write_text("place,age,date\nKiel,1,2026-01-26\nKiel,1,2026-01-20\n")
    path = str(tracked / "run")
    refused = run("predict", path, str(cells))
    assert refused.returncode == 2
    assert "--unknown forecast for values" in refused.stderr
    done = run("predict", path, str(cells), "--unknown", "forecast")
    head, ahead, known = done.stdout.splitlines()
    assert head == '"place","age","date","predicted","forecast"'
    assert ahead.endswith(",true")
    assert known.endswith(",false")
    lines = run("forecast", path, "--steps", "1", "--json").stdout.splitlines()
    (first,) = (r for r in map(json.loads, lines) if (r["place"], r["age"]) == ("Kiel", 1))
    assert float(ahead.split(",")[3]) == first["value"]
    cells.write_text("place,age,date\nBonn,1,2026-01-26\n")
    nowhere = run("predict", path, str(cells), "--unknown", "forecast")
    assert nowhere.returncode == 2
    assert "mode 'place' has no label 'Bonn'" in nowhere.stderr
