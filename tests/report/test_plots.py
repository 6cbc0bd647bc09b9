"""Figures for notebooks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import tensortide as tt
from tensortide.simulate.hospital import admissions


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plots")
    modes = ["place", "age", "date", "delay"]
    with tt.Tracker.create(folder / "run", 2, "gocpt", modes=modes, value="count") as made:
        made.track(admissions(20, seed=2), step_by="reported", first=6)
        yield made


def test_labels_grow_as_the_ledger_says(run):
    figure = tt.plots.labels(run)
    by_name = {trace.name: list(trace.y) for trace in figure.data}
    assert by_name["date"] == list(range(6, 21))
    assert by_name["place"][-1] == run.model.shape_[0]


def test_entries_are_those_of_each_step(run):
    figure = tt.plots.entries(run)
    totals = np.sum([np.array(trace.y) for trace in figure.data], axis=0)
    assert totals.tolist() == run.batches()["entries"].to_pylist()[-14:]


def test_error_is_that_of_the_ledger_with_its_mean(run):
    dots, mean, after = tt.plots.error(run).data
    errors = run.batches()["prequential_error"].to_pylist()[-15:]
    assert dots.y[0] is None
    np.testing.assert_allclose(dots.y[1:], errors[1:], atol=1e-6)
    learned = run.batches()["learned_error"].to_pylist()[-15:]
    assert after.y[1] == pytest.approx(np.mean(learned[:2]), abs=1e-6)
    assert mean.y[3] == pytest.approx(np.mean(errors[1:4]), abs=1e-6)


def test_a_component_has_a_panel_for_each_mode(run):
    figure = tt.plots.component(run.model, 1)
    assert [trace.type for trace in figure.data] == ["bar", "bar", "scatter", "scatter"]
    top = run.model.components(top=1).to_pylist()[0]
    assert figure.data[0].x[0] == top["label"]
    assert figure.data[0].y[0] == pytest.approx(top["loading"])
    assert tt.plots.component(run, 1).data[0].x == figure.data[0].x  # a run has a model
    with pytest.raises(tt.InputError, match="no component 3"):
        tt.plots.component(run.model, 3)
    with pytest.raises(tt.InputError, match="give the tracker"):
        tt.plots.labels(run.model)


def test_a_forecast_goes_on_where_the_largest_series_end(run):
    figure = tt.plots.forecast(run, 3)
    assert len(figure.data) == 12  # reported, learned and forecast of four series
    reported, learned, coming = figure.data[:3]
    place, age, delay = learned.name.split(", ")
    where = {"place": place, "age": age, "delay": int(delay)}
    ahead = run.model.forecast(3, "date", where=where)
    assert list(coming.x[1:]) == [str(day) for day in ahead["date"].to_pylist()]
    np.testing.assert_allclose(coming.y[1:], ahead["value"].to_numpy(), atol=1e-6)
    assert coming.line.dash == "dash"
    assert figure.layout.shapes[0].x0 == reported.x[-1] == learned.x[-1]
    cells = {"place": [place], "age": [age], "date": [learned.x[-1]], "delay": [int(delay)]}
    assert learned.y[-1] == pytest.approx(run.model.predict(cells)[0], abs=1e-6)
    with pytest.raises(tt.InputError, match="steps must be a whole number"):
        tt.plots.forecast(run, 0)


def test_a_model_shows_itself_in_a_notebook(run):
    html = run.model._repr_html_()
    assert "12 place" in html or "place" in html
    assert "gocpt" in html
    assert "<table" in html
    assert "not fitted" in tt.OnlineCP(2)._repr_html_()
    assert str(run.path) in run._repr_html_()


@pytest.mark.parametrize("n_series", [1, 2, 3, 4])
def test_every_panel_of_a_forecast_has_dates_that_can_be_read(n_series, tmp_path, monkeypatch):
    from tensortide.report.figures import forecast

    day0, drawn = np.datetime64("2026-01-05"), []
    table = {
        "place": np.tile([f"p{i}" for i in range(n_series)], 70),
        "day": (day0 + np.arange(70)).repeat(n_series),
        "count": np.arange(70.0 * n_series) % 7 + 1.0,
    }
    model = tt.OnlineCP(1, value="count").fit(table)
    monkeypatch.setattr(forecast, "save_picture", lambda figure, _: drawn.append(figure))
    forecast.draw_forecast(model, 14, None, tmp_path / "a.png", "a")
    (figure,) = drawn
    figure.draw_without_rendering()
    panels = [axis for axis in figure.axes if axis.get_visible()]
    assert len(panels) == n_series
    for axis in panels:
        labels = [t for t in axis.get_xticklabels() if t.get_visible() and t.get_text()]
        ends = axis.get_xlim()
        labels = [t for t in labels if ends[0] <= t.get_position()[0] <= ends[1]]
        assert len(labels) >= 3
        assert all(t.get_text().startswith("2026-") for t in labels)
        boxes = [t.get_window_extent() for t in labels]
        assert all(a.x1 < b.x0 for a, b in pairwise(boxes))
