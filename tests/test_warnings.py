"""A warning shows the line of the user that it is about, however deep it was found."""

from __future__ import annotations

import numpy as np
import pytest

import tensortide as tt

SMALL = 1e-6 * np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])  # beside a ridge of 1e-5


def _ridge(_):
    tt.OnlineCP(1, prior="paper").fit(SMALL)


def _ridge_by_update(_):
    tt.OnlineCP(1, prior="paper").update(SMALL)


def _weeks(_):
    dates = np.datetime64("2026-01-05") + 7 * np.arange(6)
    tt.nowcast.Triangle.from_table(
        {"date": dates, "delay": np.arange(6), "n": np.arange(6) + 1.0},
        reference="date", delay="delay", count="n", max_delay=9,
    )  # fmt: skip


def _other_records(folder):
    batch = {"a": ["x", "y"], "b": [1, 2], "value": [1.0, 2.0]}
    with tt.Tracker.create(folder / "run", 1) as run:
        run.ingest(batch, batch_id="one")
        run.ingest({name: column[:1] for name, column in batch.items()}, batch_id="one")


def _smooth(_):
    model = tt.OnlineCP(1, modes=["a", "b"], penalties={"b": tt.smooth(7)})
    model.fit({"a": ["x", "y"] * 3, "b": [1, 1, 5, 5, 9, 9], "value": [1.0] * 6})


@pytest.mark.parametrize("work", [_ridge, _ridge_by_update, _weeks, _other_records, _smooth])
def test_the_line_shown_is_the_users(work, tmp_path):
    with pytest.warns(tt.TensortideWarning) as told:
        work(tmp_path)
    assert {warning.filename for warning in told} == {__file__}
