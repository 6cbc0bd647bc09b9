"""Killed at any moment, and resumed by the same command: as if nothing had happened."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import tensortide as tt
from tensortide.tracker.verify import check_run


def write_stream(path, n_days, seed=0):
    truth = tt.simulate.low_rank((6, 4, n_days), 2, seed=seed, noise=0.05)
    stream = tt.simulate.growth(truth, start=5 / n_days, observed=0.8, seed=seed)
    stream = tt.simulate.revise(stream, share=0.001, seed=seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["place", "kind", "day", "reported", "count"])
        for step, batch in enumerate(stream):
            for cell, value in zip(batch.coords.tolist(), batch.values.tolist(), strict=True):
                writer.writerow([f"p{cell[0]}", f"k{cell[1]}", cell[2], step, value])


def command(source, run, method):
    words = "--modes place,kind,day --value count --step-by reported --rank 2 --json --method"
    return ["track", str(source), "--into", str(run), *words.split(), method]


def undisturbed(parent, source, run, method):
    assert parent(command=command(source, run, method))["code"] == 0
    return parent(do="state", run=str(run))


@pytest.mark.parametrize(
    ("method", "n_kills", "outside"),
    [
        ("gocpte", 25, False),
        ("gocpt", 15, False),
        ("gocpt", 15, True),
        *(
            pytest.param(*case, marks=pytest.mark.soak)
            for case in [("gocpte", 300, False), ("gocpt", 150, False), ("gocpte", 300, True)]
        ),
    ],
)
def test_killed_at_random_moments_the_run_ends_with_the_same_bits(
    tmp_path, parent, method, n_kills, outside
):
    """Moments are calls of functions after some commits, so that no machine is too slow or fast.

    From the outside it is killed some calls later, also within SQLite and the kernels.
    """
    n_days = 4 * n_kills + 4  # a kill lets four steps pass at most
    write_stream(tmp_path / "data.csv", n_days)
    expected = undisturbed(parent, tmp_path / "data.csv", tmp_path / "whole", method)
    assert len(expected["ids"]) == n_days - 4
    rng = np.random.default_rng(7)
    order = command(tmp_path / "data.csv", tmp_path / "killed", method)
    reached = set()
    for _ in range(n_kills):
        commits = int(rng.integers(0, 4))
        calls = int(rng.integers(1, 6_000 if commits else 180_000))  # of a step, of the start
        answer = parent(command=order, by="call", commits=commits, at=calls, outside=outside)
        if outside and not answer["killed"]:  # it was faster than the one who kills
            assert answer["code"] == 0
            break
        assert answer["killed"]
        if (tmp_path / "killed" / "run.sqlite").is_file():
            reached.add(len(parent(do="state", run=str(tmp_path / "killed"))["ids"]))
    assert outside or len(reached) > n_kills / 3  # it was killed on its way, not only at the start
    assert parent(command=order)["code"] == 0
    assert parent(do="state", run=str(tmp_path / "killed")) == expected
    assert all(finding.good for finding in check_run(tmp_path / "killed"))


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("method", "by", "until"),
    [("gocpte", "statement", 75), ("gocpt", "statement", 75), ("gocpt", "file", 30)],
)
def test_killed_between_any_two_writes_the_run_ends_with_the_same_bits(
    tmp_path, parent, method, by, until, every
):
    write_stream(tmp_path / "data.csv", 9)
    expected = undisturbed(parent, tmp_path / "data.csv", tmp_path / "whole", method)
    order = command(tmp_path / "data.csv", tmp_path / "killed", method)
    ends = []
    for at in range(1, until, every):
        answer = parent(command=order, by=by, at=at)
        ends.append(answer["killed"])
        if not answer["killed"]:
            assert answer["code"] == 0
    assert sum(ends) >= until // (4 * every)
    assert parent(command=order)["code"] == 0
    assert parent(do="state", run=str(tmp_path / "killed")) == expected
    assert all(finding.good for finding in check_run(tmp_path / "killed"))
