"""Rivals: equal to their definitions, on the steps of the methods, and said where they suffice."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

import tensortide as tt
from tensortide.experiments.compare import Task, judge_method, judge_rival
from tensortide.experiments.compare_result import Result, say_who_needs_no_model
from tensortide.experiments.rivals import RIVALS
from tensortide.tracker.feeding import FeedOptions, feed_any
from tests import oracles_rivals as oracles

MODES = ["place", "kind", "day"]


@st.composite
def streams(draw):
    """Records with the step of their coming: late ones, revised ones, labels that come later."""
    n_steps = draw(st.integers(3, 7))
    records = []
    for step in range(n_steps):
        cells = st.tuples(
            st.sampled_from("abcd"[: 2 + step // 2]), st.sampled_from("xyz"), st.integers(0, step)
        )
        chosen = draw(st.lists(cells, min_size=2, max_size=12, unique=True))
        if not any(day == step for *_, day in chosen):
            chosen.append(("a", "x", step))
        spread = draw(st.sampled_from([1, 3]))
        numbers = st.floats(-5, 5, allow_subnormal=False)
        records += [(p, k, spread * day, step, draw(numbers)) for p, k, day in chosen]
    return records


def task_of(records, **more):
    columns = dict(
        zip([*MODES, "seen", "value"], map(list, zip(*records, strict=True)), strict=True)
    )
    return Task(table=pa.table(columns), modes=MODES, value="value", step_by="seen", **more)


def listed(table):
    rows = zip(*(table[name].to_pylist() for name in (*MODES, "value")), strict=True)
    return [((p, k, day), x) for p, k, day, x in rows]


@settings(max_examples=60, deadline=None)
@given(streams(), st.sampled_from([0.0, 0.2, 0.4]))
def test_rivals_are_what_their_definitions_say(records, hold_out):
    task = task_of(records, hold_out=hold_out)
    steps = task.steps()
    coded = task.coded(steps)
    assert coded.names == ("place", "kind")
    batches = [listed(batch) for batch in steps.batches]
    known, held = {labels for labels, _ in listed(steps.first)}, []
    for batch, aside in zip(batches, steps.held, strict=True):
        known |= {labels for labels, _ in batch}
        seen = [{labels[mode] for labels in known} for mode in range(3)]
        rows = zip(*(aside.labels[name].to_pylist() for name in MODES), aside.values, strict=True)
        held.append(
            [
                ((p, k, day), x)
                for p, k, day, x in rows
                if p in seen[0] and k in seen[1] and day in seen[2]
            ]
        )
    wanted = oracles.predictions(dict(listed(steps.first)), batches, held, mode=2)
    for name, says in wanted.items():
        result = judge_rival(name, coded)
        for step, (before, after) in enumerate(says):
            truth = np.array([x for _, x in batches[step]])
            check(result.errors[step], truth, np.array(before))
            check(result.errors_held[step], np.array([x for _, x in held[step]]), np.array(after))


def check(error, truth, said):
    size = np.linalg.norm(truth)
    if size == 0.0:
        assert error is None
    else:
        assert error == pytest.approx(np.linalg.norm(truth - said) / size, rel=1e-7, abs=1e-9)


def weekly(days=42, places=5, *, noise=0.05, holes=0.1, seed=0):
    """Counts with a week and a size of each place; some cells are missing."""
    rng = np.random.default_rng(seed)
    week, size = np.array([5.0, 6, 6, 5, 4, 1, 1]), 1 + rng.random(places)
    x = week[np.arange(days) % 7][:, None] * size * (1 + noise * rng.normal(size=(days, places)))
    day, place = np.nonzero(rng.random(x.shape) >= holes)
    dates = np.datetime64("2026-01-05") + day
    names = np.array([f"p{i}" for i in range(places)])
    return pa.table({"place": names[place], "day": dates, "count": x[day, place]})


def test_rivals_are_judged_by_the_cells_that_judge_methods():
    task = Task(table=weekly(), modes=["place", "day"], value="count", step_by="day", rank=1)
    steps = task.steps()
    model = judge_method(task, "gocpte", steps)
    for name in RIVALS:
        rival = judge_rival(name, task.coded(steps))
        assert rival.kind == "rival"
        assert rival.steps == model.steps
        for which in ("errors", "errors_held"):
            told = [[e is None for e in getattr(r, which)] for r in (model, rival)]
            assert told[0] == told[1]
    sizes = [np.linalg.norm(b["count"].to_numpy()) for b in steps.batches]
    last = judge_rival("last value", task.coded(steps))
    total = np.sqrt(np.dot(np.square(last.errors), np.square(sizes)) / np.square(sizes).sum())
    assert last.error == pytest.approx(total)


def test_fibres_run_along_the_mode_that_grows_where_steps_go_by_no_mode():
    """All labels are numbers; those of the second mode come one a step, in no order of the file."""
    rng = np.random.default_rng(0)
    place, week, age = np.indices((4, 20, 3)).reshape(3, -1)
    columns = {"place": place, "week": week, "age": age, "seen": week + rng.integers(0, 2, 240)}
    table = pa.table(columns | {"value": 1.0 + week + 10.0 * place})
    task = Task(table=table, modes=["place", "week", "age"], value="value", step_by="seen")
    assert task.coded(task.steps()).names == ("place", "age")


def test_the_season_is_that_of_the_labels():
    found = tt.compare(weekly(), rank=1, methods=["gocpt"], progress=False)
    assert found["seasonal naive"].parameters == {"season": "7 days"}
    assert 2 * found["seasonal naive"].error < found["last value"].error
    text = weekly().set_column(1, "day", pa.array(map(str, weekly()["day"].to_pylist())))
    other = tt.compare(
        text, modes=["place", "day"], value="count", rank=1, methods=["gocpt"], progress=False
    )
    assert other["seasonal naive"].parameters == {"season": "none"}
    assert other["seasonal naive"].errors == other["last value"].errors
    assert other["last value"].error == pytest.approx(found["last value"].error)


@pytest.mark.parametrize("which", ["error", "error_held"])
@pytest.mark.parametrize(
    ("error", "word"),
    [(0.5, "better than"), (0.99, "as good as"), (1.02, "as good as"), (1.021, None), (2.0, None)],
)
def test_the_sentence_comes_exactly_when_a_rival_is_within_two_percent(which, error, word):
    good, bad = (Result(method=m, parameters={}) for m in ("gocpt", "gocpte"))
    rivals = [Result(method=m, kind="rival", parameters={}) for m in ("last value", "fibre mean")]
    for result, level in ((good, 1.0), (bad, 3.0), (rivals[0], error), (rivals[1], 2.5)):
        setattr(result, which, level)
    told = say_who_needs_no_model([good, bad, *rivals])
    assert told == rivals[0].notes
    assert not rivals[1].notes
    assert len(told) == (word is not None)
    if word is not None:
        when = {"error": "before learning", "error_held": "on cells held out"}[which]
        assert told[0].startswith(f"last value is {word} gocpt {when} (")
    good.refused = "it cannot"
    say_who_needs_no_model([good, bad, *rivals])
    assert bool(rivals[0].notes) == (error <= 3 * 1.02)


def test_the_public_function_has_the_numbers_of_the_command(run, tmp_path):
    file, out = tmp_path / "data.csv", tmp_path / "out.csv"
    csv.write_csv(weekly(), file)
    words = ("compare", file, "--rank", 1, "--methods", "gocpt,gocpte (fibres)")
    found = tt.compare(str(file), rank=1, methods=["gocpt", "gocpte (fibres)"], progress=False)
    done = run(*words, "--json", "-o", out)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["method"] for line in lines] == [row.method for row in found.rows]
    assert {line["method"] for line in lines if line["kind"] == "rival"} == set(RIVALS)
    for line, row in zip(lines, found.rows, strict=True):
        for name in ("error", "error_held", "errors", "errors_held", "fitness", "notes"):
            assert line[name] == getattr(row, name), name
    assert [note for line in lines for note in line["notes"]] == found.notes
    written = csv.read_csv(out)
    assert written["method"].to_pylist() == [row.method for row in found.rows]
    assert written["kind"].to_pylist() == [row.kind for row in found.rows]
    np.testing.assert_allclose(written["error"].to_numpy(), [row.error for row in found.rows])
    shown = " ".join(run(*words).stdout.split())
    assert "seasonal naive rival" in shown
    for note in found.notes:
        assert note[1:] in shown
    assert "seasonal naive rival" in " ".join(str(found).split())


def test_the_command_says_that_a_constant_needs_no_model(run, tmp_path):
    file, picture = tmp_path / "data.csv", tmp_path / "out.svg"
    table = weekly(noise=0.0)
    csv.write_csv(table.set_column(2, "count", pa.array([3.0] * table.num_rows)), file)
    done = run("compare", file, "--rank", 1, "--methods", "gocpt", "-o", picture)
    assert done.returncode == 0, done.stderr
    assert "guessed steps: one step for each day (the only column of dates)" in done.stderr
    assert "you need no model for that." in " ".join(done.stdout.split())
    assert picture.stat().st_size > 10_000
    nothing = run("compare", file, "--rank", 1, "--methods", "gocpt", "--no-rivals")
    assert "you need no model" not in nothing.stdout


def test_steps_go_by_the_column_of_dates_as_a_run_does(tmp_path):
    table = weekly()
    shuffled = table.take(np.random.default_rng(0).permutation(table.num_rows))
    found = tt.compare(
        shuffled, modes=["day", "place"], rank=1, methods=["gocpte"], hold_out=0.0, progress=False
    )
    assert found.task.step_by == "day"
    n_first = 42 - len(found.steps.batches)
    csv.write_csv(table, tmp_path / "data.csv")
    options = {"rank": 1, "method": "gocpte", "modes": ["day", "place"], "value": "count"}
    with tt.Tracker.create(tmp_path / "run", **options) as run:
        taken = list(feed_any(run, tmp_path / "data.csv", FeedOptions(first=n_first)))
    sizes = [found.steps.first.num_rows, *(batch.num_rows for batch in found.steps.batches)]
    assert [step.records for step in taken] == sizes
    labels = [step.label for step in taken[1:]]
    assert labels == [str(label) for label in found.steps.labels]
    errors = [step.info.prequential_error for step in taken[1:]]
    np.testing.assert_allclose(errors, found["gocpte"].errors, rtol=1e-6)


def test_steps_without_a_column_of_dates_go_by_the_last_mode():
    numbers = pa.array(np.arange(weekly().num_rows) // 5)
    table = weekly().set_column(1, "day", numbers)
    found = tt.compare(table, modes=["place", "day"], rank=1, methods=["gocpt"], progress=False)
    assert found.task.step_by == "day"
    assert "the last mode" in found.guessed[-1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": ["magic"]}, "no method 'magic'"),
        ({"methods": []}, "no method to compare"),
        ({"start": 1.5}, r"start must lie in \[0, 1\]"),
        ({"hold_out": 0.95}, r"hold_out must lie in \[0, 0.9\]"),
        ({"absent": "void"}, "absent must be"),
    ],
)
def test_mistakes_are_named(given, message):
    with pytest.raises(tt.InputError, match=message):
        tt.compare(weekly(), **{"rank": 1, "progress": False} | given)
