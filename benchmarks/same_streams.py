"""Fixed streams through everything that computes; `benchmarks.same_bits` runs it on two sources.

    python same_streams.py OUT.npz

Only public names are used, and only numpy besides, so that it runs on older versions too.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

import tensortide as tt

Found = dict[str, Any]
LOSSES = ("squared", "poisson", "negative_binomial", "gamma", "bernoulli", "huber")
# rows with learned priors are newer than some of the states that are compared
PAPER = {"prior": "paper"} if "prior" in signature(tt.OnlineCP).parameters else {}
COMPLETE = ("online_cpd", "rlst", "sdt")  # methods that take complete slices only
NEW_ONLY = ("mast", "cp_stream", "online_sgd", "olstec")  # and those that take new slices only


def low_rank(seed: int, shape: tuple[int, ...], rank: int = 3) -> Any:
    """Return a positive low-rank tensor with some noise."""
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(2.0, 0.5, (size, rank)) for size in shape]
    letters = "abcd"[: len(shape)]
    whole = np.einsum(",".join(f"{c}r" for c in letters) + "->" + letters, *factors)
    return whole * (1.0 + 0.05 * rng.standard_normal(shape))


def batches(values: Any, seed: int, density: float, late_too: bool = True) -> Iterator[tt.Batch]:
    """Yield first data, then growth of the last mode, with late cells and corrections or none."""
    rng = np.random.default_rng(seed)
    seen = rng.random(values.shape) < density
    first = values.shape[-1] // 2
    coords = np.argwhere(seen)
    old = coords[:, -1] < first
    yield tt.Batch(coords[old], values[tuple(coords[old].T)])
    for day in range(first, values.shape[-1]):
        new = coords[coords[:, -1] == day]
        if not late_too:
            yield tt.Batch(new, values[tuple(new.T)])
            continue
        late = np.argwhere(~seen)
        late = late[late[:, -1] < day]
        late = late[rng.choice(len(late), 5, replace=False)]
        again = coords[coords[:, -1] < day]
        again = again[rng.choice(len(again), 5, replace=False)]
        both = np.concatenate([new, late, again])
        moved = np.concatenate([np.ones(len(new) + 5), np.full(5, 0.9)])
        yield tt.Batch(both, values[tuple(both.T)] * moved)


def keep(found: Found, name: str, model: tt.OnlineCP, info: Any) -> None:
    """Remember a model: factors, what it says of its corner, and its report."""
    for mode, rows in enumerate(model.factors_):
        found[f"{name} factor {mode}"] = rows
    corner = np.argwhere(np.ones([min(4, size) for size in model.shape_]))
    found[f"{name} predicted"] = model.predict(corner)
    for fact in ("prequential_error", "learned_error", "objective", "largest_move", "norm"):
        found[f"{name} {fact}"] = getattr(info, fact)
    for k, one in enumerate(info.surprises):
        found[f"{name} surprise {k}"] = [one.value, one.expected, one.low, one.high]


def all_methods(found: Found) -> None:
    """Run the twelve methods on slices or sparse records."""
    values = low_rank(1, (7, 6, 16))
    for name in tt.METHODS:
        model = tt.OnlineCP(3, name, seed=2, **PAPER)
        if name in COMPLETE:
            model.fit(values[:, :, :8])
            for day in range(8, 16):
                info = model.update(values[:, :, day : day + 1])
        else:
            for batch in batches(values, 3, 0.6, late_too=name not in NEW_ONLY):
                info = model.update(batch)
        keep(found, name, model, info)


def all_losses(found: Found) -> None:
    """Run every loss with both objectives and both meanings of absent cells."""
    values = low_rank(4, (6, 5, 10))
    counts = np.random.default_rng(5).poisson(values).astype(float)
    given = {"gamma": values, "bernoulli": (counts > counts.mean()).astype(float)}
    for loss in LOSSES:
        for method in ("gocpt", "gocpte"):
            for absent in ("missing", "zero"):
                if absent == "zero" and loss == "gamma":
                    continue  # zero has no gamma density
                model = tt.OnlineCP(2, method, loss=loss, absent=absent, seed=1, **PAPER)
                for batch in batches(given.get(loss, counts), 6, 0.5):
                    info = model.update(batch)
                keep(found, f"{loss} {method} {absent}", model, info)


def other_ways(found: Found) -> None:
    """Run penalties, forgetting, weights, strategies, another rank, retirement, files."""
    values = low_rank(7, (6, 5, 4, 10))
    ways: dict[str, dict[str, Any]] = {
        "penalties": {"method": "gocpte", "penalties": {
            3: [tt.smooth(), tt.nonnegative()], 0: tt.l1(0.01), 1: tt.simplex()}},
        "forgetting": {"method": tt.gocpt(forgetting=0.9)},
        "imputed": {"method": tt.gocpte(strategy="imputed")},
        "sweeps": {"method": tt.gocpt(sweeps=4, alpha=0.3)},
        "sum": {"method": "gocpt", "combine": "add", "duplicates": "sum"},
        "zero": {"method": "gocpt", "absent": "zero"},
    }  # fmt: skip
    for name, params in ways.items():
        model = tt.OnlineCP(2, seed=3, **params, **PAPER)
        for batch in batches(values, 8, 0.5):
            info = model.update(batch)
        keep(found, name, model, info)
    model = tt.OnlineCP(3, "gocpt", seed=3, **PAPER)
    stream = list(batches(values, 9, 0.5))
    for batch in stream[:3]:
        model.update(batch)
    model.change_rank(2)
    model.retire(0, [1])
    model.change_rank(4)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.tide")
        model = tt.load(Path(folder) / "model.tide")
    fewer = [tt.Batch(b.coords[b.coords[:, 0] < 5], b.values[b.coords[:, 0] < 5]) for b in stream]
    for batch in fewer[3:]:
        info = model.update(batch)
    info = model.update(retract=fewer[3].coords[:2])
    keep(found, "changed", model, info)


def tracker(found: Found) -> None:
    """Track a folder of reports, with bad records, first steps together, economy and history."""
    with tempfile.TemporaryDirectory() as folder:
        reports = Path(folder) / "reports"
        reports.mkdir()
        for number, day in enumerate(tt.simulate.admissions(days=20, seed=3)):
            names = [name for name in day if name != "reported"]
            lines = [",".join(names)]
            lines += [",".join(str(day[n][i]) for n in names) for i in range(len(day["count"]))]
            if number == 12:
                lines.append("Kiel,80+,2026-01-20,1,many")
            (reports / f"day{number:02d}.csv").write_text("\n".join(lines) + "\n")
        for method in ("gocpte", "gocpt"):
            run = Path(folder) / method
            subprocess.run(
                [sys.executable, "-m", "tensortide", "track", str(reports), "--into", str(run),
                 "--modes", "place,age,date,delay", "--value", "count", "--step-files", "--first",
                 "5", "--rank", "3", "--method", method, "--on-bad", "quarantine",
                 "--keep-surprises", *(["--prior", "paper"] if PAPER else [])],
                check=True, capture_output=True,
            )  # fmt: skip
            _ledger(found, f"run {method}", run / "run.sqlite")


def _ledger(found: Found, name: str, file: Path) -> None:
    """Remember what a ledger holds of the model and of each batch."""
    db = sqlite3.connect(file)
    columns = [row[1] for row in db.execute("PRAGMA table_info(surprises)")]
    expected = "expected" if "expected" in columns else "predicted"  # before version 2
    tables = {
        "factors": "SELECT place, rows FROM factors ORDER BY place",
        "labels": "SELECT mode, position, label FROM labels ORDER BY mode, position",
        "arrays": "SELECT name, dtype, shape, data FROM arrays ORDER BY name",
        "quarantine": "SELECT line, reason, record FROM quarantine ORDER BY rowid",
        "surprises": f"SELECT cell, value, {expected} FROM surprises ORDER BY rowid",
    }
    for table, query in tables.items():
        found[f"{name} {table}"] = repr(db.execute(query).fetchall())
    rows = db.execute(
        "SELECT seq, kind, digest, position, part, label, records, bad, step, shape, report "
        "FROM batches ORDER BY seq"
    )
    for *plain, report in rows:
        facts = {k: v for k, v in json.loads(report).items() if k != "seconds"}
        found[f"{name} batch {plain[0]}"] = repr(plain) + json.dumps(facts, sort_keys=True)


def nowcaster(found: Found) -> None:
    """Nowcast a simulated triangle by several nowcasters, and replay it."""
    days = list(tt.simulate.admissions(days=60, seed=2, corrected=0.0))
    table = {name: np.concatenate([day[name] for day in days]) for name in days[0]}
    whole = tt.nowcast.Triangle.from_table(
        table, reference="date", delay="delay", count="count", strata=["place", "age"], max_delay=7
    )
    kinds = {
        "default": tt.nowcast.Nowcaster(),
        "rank 2": tt.nowcast.Nowcaster(2, ()),
        "validate": tt.nowcast.Nowcaster("validate"),
        "economy": tt.nowcast.Nowcaster(economy=True),
        "ladder": tt.nowcast.Nowcaster((), [tt.nowcast.BASELINES["chain-ladder weekday"]]),
    }
    last = np.datetime64("2026-01-05") + 59
    for name, nowcaster in kinds.items():
        for day in range(14, -1, -1):
            said = nowcaster.update(whole.as_of(last - day))
        for days_summed in (1, 7):
            shown = said.to_table(days=days_summed)
            for column in shown.column_names:
                found[f"nowcast {name} {days_summed} {column}"] = repr(shown[column].to_pylist())
    models = {"one": lambda: tt.nowcast.Nowcaster(2)}
    replayed = tt.nowcast.replay(whole, models, [last - 20, last - 14], warm_up=14, progress=False)
    found["replay"] = repr(replayed.to_table().to_pylist())


PARTS = (all_methods, all_losses, other_ways, tracker, nowcaster)


def main() -> None:
    """Run all parts and write what they found."""
    found: Found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in PARTS:
            part(found)
    plain = {}
    for name, value in found.items():
        if isinstance(value, str):
            plain[name] = np.frombuffer(value.encode(), np.uint8)
        else:
            plain[name] = np.asarray(np.nan if value is None else value, np.float64)
    np.savez(sys.argv[1], **plain)
    print(f"{len(plain):,} results of {os.path.dirname(tt.__file__)}")


if __name__ == "__main__":
    main()
