"""Scenarios: streams, scores, choices, resuming, tables and figures."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tensortide as tt
from tensortide.errors import SolveError
from tensortide.experiments import run, streams
from tensortide.experiments.figures import draw
from tensortide.experiments.fitness import RunningFitness, fitness_of_known
from tensortide.experiments.scenario import Contender, load_scenario, names
from tensortide.experiments.tables import table
from tests import oracles

REAL = {"general", "factorization", "completion", "ablation"}


@pytest.fixture
def here(request, monkeypatch):
    """The real data, for the scenarios that need them."""
    if request.node.callspec.params["name"] in REAL:
        folder = request.getfixturevalue("real_data")
        monkeypatch.setenv("TENSORTIDE_DATA", str(folder))


@pytest.mark.parametrize("name", names())
def test_every_scenario_runs_and_has_a_table_and_a_figure(here, name, tmp_path):
    scenario = load_scenario(name)
    file = tmp_path / "results.jsonl"
    told: list[str] = []
    run.run_scenario(scenario, 1, file, quick=True, tell=told.append)
    rows = run.read_rows(file)
    assert len(rows) == len(told) == len(run.keys(scenario, 1, quick=True))
    markdown = table(scenario, rows)
    for contender in scenario.contenders:
        assert contender.label in markdown
    if scenario.setting not in ("complexity", "ablation"):
        best = {r["contender"]: r["fitness"] for r in rows if r["case"] == scenario.data[0].label}
        assert best["GOCPT"] > 0.6
        assert best["GOCPT"] >= best["GOCPT_E"] - 0.01
    for picture in draw(scenario, rows, tmp_path, name):
        assert picture.stat().st_size > 10_000


def test_the_scenarios_are_those_of_the_paper():
    assert names() == [
        "ablation",
        "completion",
        "complexity",
        "factorization",
        "general",
        "synthetic-completion",
        "synthetic-factorization",
    ]


def test_an_interrupted_run_goes_on_where_it_was(tmp_path):
    scenario = load_scenario("synthetic-factorization")
    file = tmp_path / "results.jsonl"
    seen: list[str] = []

    def stop(what):
        seen.append(what)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.run_scenario(scenario, 1, file, quick=True, tell=stop)
    before = file.read_text()
    file.write_text(before + '{"scenario": "synth')  # a line that a crash has cut off
    run.run_scenario(scenario, 1, file, quick=True, tell=lambda _: None)
    rows = run.read_rows(file)
    assert file.read_text().startswith(before)
    assert len(rows) == len(scenario.contenders)
    assert len({r["contender"] for r in rows}) == len(rows)


def test_fitness_without_the_tensor_equals_fitness_with_it():
    rng = np.random.default_rng(0)
    x, seen = rng.random((5, 6, 7)), rng.random((5, 6, 7)) < 0.3
    factors = [rng.random((n, 2)) for n in (5, 6, 4)]
    gap, hidden = x[..., :4] - oracles.reconstruct(factors), ~seen[..., :4]
    every = 1 - np.linalg.norm(gap) / np.linalg.norm(x[..., :4])
    assert RunningFitness(x, None)(factors) == pytest.approx(every)
    assert RunningFitness(x, seen)(factors) == pytest.approx(
        1 - np.linalg.norm(gap[hidden]) / np.linalg.norm(x[..., :4][hidden])
    )
    assert fitness_of_known(x[..., :4], factors) == pytest.approx(every)
    assert np.isnan(fitness_of_known(np.full_like(x[..., :4], np.nan), factors))
    holes = np.where(seen, x, np.nan)[..., :4]
    assert fitness_of_known(holes, factors) == pytest.approx(
        1 - np.linalg.norm(gap[~hidden]) / np.linalg.norm(x[..., :4][~hidden])
    )


def test_the_triangle_loads_a_cell_at_date_plus_delay():
    x = np.arange(2.0 * 3 * 8).reshape(2, 3, 8) + 1.0
    x[0, 0, 0] = np.nan
    given = streams.triangle(x, first=4, perturb=0.0, seed=0)
    known = {tuple(c) for c in given.first["records"].coords.tolist()}
    assert known == {
        (i, k, d) for i in range(2) for k in range(3) for d in range(4) if d + k < 4
    } - {(0, 0, 0)}
    for t, step in enumerate(given.steps()):
        batch = step.batch["records"]
        cells = batch.coords
        assert (cells[:, 1] + cells[:, 2] == 4 + t).all()
        assert batch.shape == (2, 3, 5 + t)


def test_the_triangle_scores_loaded_cells_and_those_to_come_apart():
    x = np.ones((2, 3, 6))
    given = streams.triangle(x, first=4, perturb=0.0, seed=0)
    step = next(given.steps())
    assert step.to_come is not None
    model = [np.ones((2, 1)), np.array([[1.0], [1.0], [0.0]]), np.ones((5, 1))]
    # of the dates 0 ... 4 at the time 4, the delay 2 is loaded for dates 0 ... 2 alone, and of
    # the three cells to come (dates 3 and 4) the model has one right, in each of two rows
    assert step.score(model) == pytest.approx(1 - np.sqrt(3 / 12))
    assert step.to_come(model) == pytest.approx(1 - np.sqrt(2 / 3))


def test_perturbed_values_change_by_five_percent_at_most_and_count_for_the_score():
    x = np.ones((10, 3, 20))
    given = streams.triangle(x, first=10, perturb=0.05, seed=1)
    changed, now = 0, x.copy()
    lowest = highest = 0.0
    known = len(given.first["records"])
    for step in given.steps():
        batch = step.batch["records"]
        values = batch.values
        before = now.copy()
        now[tuple(batch.coords.T)] = values
        shares = now / before - 1.0
        assert (np.abs(shares) <= 0.05 + 1e-12).all()
        lowest, highest = min(lowest, shares.min()), max(highest, shares.max())
        revised = int((values != 1.0).sum())
        assert revised == round(0.02 * known)
        known += len(values) - revised
        changed += revised
        assert step.score([np.ones((n, 1)) for n in batch.shape]) < 1.0
    assert changed > 0
    assert lowest < -0.03
    assert highest > 0.03


def test_all_methods_of_a_seed_begin_alike():
    given = streams.slices(tt.datasets.synthetic((6, 5, 20), 2, seed=1).values, None, 5)
    start = run.prepare(given, 2, seed=3)
    for name in tt.METHODS:
        model = tt.OnlineCP(2, name).fit(**given.first, init=start, max_sweeps=0)
        for a, b in zip(model.factors_, start, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_parameter_is_chosen_on_the_preparation_data_only():
    """Whatever comes later, the choice is the same; a clearly better value is taken."""
    x = np.random.default_rng(0).normal(size=(8, 7, 40))  # noise: the smallest step is the best
    contender = Contender("online_sgd", "sgd", choose={"step": [1e-6, 0.1, 1.0]})
    given = streams.slices(x, None, 30)
    chosen = run.choose(contender, "step", [1e-6, 0.1, 1.0], given, 2, seed=0)
    spoiled = x.copy()
    spoiled[..., 30:] = 0.0
    again = run.choose(
        contender, "step", [1e-6, 0.1, 1.0], streams.slices(spoiled, None, 30), 2, seed=0
    )
    assert chosen == again
    best = max((1e-6, 0.1, 1.0), key=lambda step: _trial_score(contender, step, x[..., :30]))
    assert chosen == best != 0.1  # another value than the default, as it is clearly better


def _trial_score(contender, step, x):
    """Fit three quarters, stream the rest, score all cells: the rule, once more."""
    model = tt.OnlineCP(2, "gocpt", seed=0).fit(x[..., :22])
    model = tt.OnlineCP(2, contender.make(step=step)).fit(
        x[..., :22], init=model.factors_, max_sweeps=0
    )
    scores = []
    for k in range(22, 30):
        model.update(x[..., k : k + 1])
        scores.append(model.score(x[..., : k + 1]))
    return np.mean(scores)


def test_cells_that_judge_a_parameter_are_not_learned():
    """A tenth of the preparation cells is in no batch; the score looks at them alone."""
    x = tt.datasets.synthetic((12, 10, 40), 2, seed=0).values
    seen = tt.simulate.random_mask(x.shape, 0.5, seed=1)
    first = streams.slices(x, seen, 40).first["records"]
    trial = run._trial(first, seed=0)
    steps = list(trial.steps())
    learned = {tuple(c) for c in trial.first["records"].coords.tolist()}
    learned |= {tuple(c) for s in steps for c in s.batch["records"].coords.tolist()}
    held = {tuple(c) for c in first.coords.tolist()} - learned
    assert len(held) == pytest.approx(0.1 * len(first), rel=0.2)
    exact = np.nan_to_num(x.copy())
    spoiled = exact.copy()
    for cell in held:
        spoiled[cell] = np.nan
    factors = tt.OnlineCP(2).fit(x).factors_
    assert steps[-1].score(factors) > 0.999  # the model of all cells knows those held out
    known = np.where(np.isnan(spoiled), x, np.nan)
    assert steps[-1].score(factors) == pytest.approx(fitness_of_known(known, factors))


def test_a_run_that_diverges_is_a_result(tmp_path, monkeypatch):
    scenario = load_scenario("synthetic-factorization")

    def diverge(method, *args):
        if method.name == "mast":
            raise SolveError("no finite solution", mode=2, position=0)
        return wanted(method, *args)

    wanted = run.run_stream
    monkeypatch.setattr(run, "run_stream", diverge)
    file = tmp_path / "results.jsonl"
    run.run_scenario(scenario, 1, file, quick=True, tell=lambda _: None)
    rows = run.read_rows(file)
    assert "no finite solution" in next(r for r in rows if r["contender"] == "MAST")["failed"]
    assert "| MAST" not in table(scenario, rows)
    twice = [*rows, *(r | {"seed": 1, "fitness": 0.5, "seconds": 1.0} for r in rows)]
    healed = [{k: v for k, v in r.items() if k != "failed" or r["seed"] == 0} for r in twice]
    assert "| MAST (failed in 1 of 2) |" in table(scenario, healed)
    assert draw(scenario, rows, tmp_path, "figure")


def test_an_unknown_experiment_is_named():
    with pytest.raises(tt.InputError, match="no experiment 'nothing'; there are ablation"):
        load_scenario("nothing")
    with pytest.raises(tt.InputError, match="did you mean 'synthetic-completion'"):
        load_scenario("synthetic_completion")


def test_small_versions_say_so():
    scenario = load_scenario("synthetic-completion")
    source = scenario.data[0]
    assert scenario.label_of(source, quick=False) == "synthetic 50 x 50 x 500, 2 % observed"
    assert (
        scenario.label_of(source, quick=True)
        == "synthetic 30 x 30 x 150, 10 % observed, quick version"
    )


def test_results_are_json_lines(tmp_path):
    scenario = load_scenario("synthetic-completion")
    file = tmp_path / "results.jsonl"
    run.run_scenario(scenario, 1, file, quick=True, tell=lambda _: None)
    for line in file.read_text().splitlines():
        row = json.loads(line)
        assert row["steps"] == 135
        assert row["seconds"] > 0.0
        assert 40 <= len(row["curve"]) <= run.POINTS
