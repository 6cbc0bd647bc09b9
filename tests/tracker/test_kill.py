"""Killed at any moment, and resumed by the same command: as if nothing had happened."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import tensortide as tt
from tensortide.tracker.check import check_run


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


@pytest.mark.parametrize(("method", "n_kills"), [("gocpte", 100), ("gocpt", 40)])
def test_killed_at_random_moments_the_run_ends_with_the_same_bits(
    tmp_path, parent, method, n_kills
):
    n_days = 400 if method == "gocpte" else 200
    write_stream(tmp_path / "data.csv", n_days)
    expected = undisturbed(parent, tmp_path / "data.csv", tmp_path / "whole", method)
    assert len(expected["ids"]) == n_days - 4
    rng = np.random.default_rng(7)
    order = command(tmp_path / "data.csv", tmp_path / "killed", method)
    kills, reached, n_done, longest = 0, set(), 0, 0.1
    while kills < n_kills:
        answer = parent(command=order, seconds=float(rng.uniform(0.3, 1.0) * longest))
        if not answer["killed"]:  # a machine that was busy for a while has become fast
            assert kills > 0.8 * n_kills, f"finished after {kills} kills: {answer}"
            break
        kills += 1
        n_before = n_done
        if (tmp_path / "killed" / "run.sqlite").is_file():
            n_done = len(parent(do="state", run=str(tmp_path / "killed"))["ids"])
            reached.add(n_done)
        # whatever the speed of this machine: work has to be left for all kills, and be done
        share_done = n_done / (n_days - 4)
        longest *= 0.9 if share_done > kills / n_kills else 1.0 if n_done > n_before else 1.05
    assert len(reached) > n_kills / 5  # it was killed on its way, not only at the start
    assert parent(command=order)["code"] == 0
    assert parent(do="state", run=str(tmp_path / "killed")) == expected
    assert all(finding.good for finding in check_run(tmp_path / "killed"))


@pytest.mark.parametrize(
    ("method", "by", "until"),
    [("gocpte", "statement", 75), ("gocpt", "statement", 75), ("gocpt", "file", 30)],
)
def test_killed_between_any_two_writes_the_run_ends_with_the_same_bits(
    tmp_path, parent, method, by, until
):
    write_stream(tmp_path / "data.csv", 9)
    expected = undisturbed(parent, tmp_path / "data.csv", tmp_path / "whole", method)
    order = command(tmp_path / "data.csv", tmp_path / "killed", method)
    ends = []
    for at in range(1, until):
        answer = parent(command=order, by=by, at=at)
        ends.append(answer["killed"])
        if not answer["killed"]:
            assert answer["code"] == 0
    assert sum(ends) >= until // 4
    assert parent(command=order)["code"] == 0
    assert parent(do="state", run=str(tmp_path / "killed")) == expected
    assert all(finding.good for finding in check_run(tmp_path / "killed"))
