"""`tensortide demo`: a reporting stream, learned step by step by both methods."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tensortide import simulate
from tensortide.core.types import Floats, Positions
from tensortide.estimator import OnlineCP
from tensortide.info import Info

MODES = ["place", "disease", "date", "delay"]
PLACES = [
    "Berlin",
    "Bremen",
    "Dresden",
    "Essen",
    "Hamburg",
    "Kiel",
    "Leipzig",
    "Mainz",
    "Munich",
    "Potsdam",
    "Rostock",
    "Ulm",
]
DISEASES = ["asthma", "bronchitis", "covid", "influenza", "norovirus", "rsv"]
N_DATES, N_DELAYS, FIRST_DATES, NEW_PLACES = 60, 8, 40, 3


def run_demo(*, seed: int, rank: int) -> None:
    """Simulate, learn, and print what happened."""
    console = Console()
    console.print(
        "A simulated reporting stream: admissions by place, disease, date and delay. Every day a "
        "date is added and earlier dates fill up; 70 % of the cells are ever reported. "
        f"{NEW_PLACES} places join on the way. 2 % of the published values change every day by up "
        "to 5 %, at random: what any model can reach slowly falls.\n",
        highlight=False,
    )
    stream, truth = _stream(seed)
    batches = [_columns(batch) for batch in stream]
    names = ("gocpte", "gocpt")
    models = [OnlineCP(rank, name, modes=MODES, value="count", seed=seed) for name in names]
    console.print("Preparing on the first 40 days (compiles once on a new machine) ...")
    for model in models:
        model.fit(batches[0])
    table = Table(
        title="Entries that grew, filled or revised the tensor; then the fitness on all cells, "
        "reported or not, of the economy and of the full model",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    headers = ["step", "date", "new labels", "grown", "filled", "revised", "economy", "full"]
    if console.width < 70:
        headers.remove("new labels")
    for header in headers:
        left = header == "new labels"
        table.add_column(header, justify="left" if left else "right", no_wrap=True)
    seconds = [0.0, 0.0]
    for step, batch in enumerate(batches[1:], start=2):
        infos = [model.update(batch) for model in models]
        seconds = [s + info.seconds for s, info in zip(seconds, infos, strict=True)]
        if step % 3 == 0 or step == len(batches):
            cells = dict(_row(infos[1], models, truth))
            table.add_row(*(cells[header] for header in headers))
    console.print(table)
    n_steps = len(batches) - 1
    for model, total in zip(models, seconds, strict=True):
        keeps = "keeps every value" if model.method == "gocpt" else "keeps no value"
        console.print(f"{model.method:7s} {1e3 * total / n_steps:5.1f} ms a step, {keeps}")
    _print_components(console, models[0])
    console.print(
        "\nWith your own table:\n"
        "  import tensortide as tt\n"
        "  model = tt.OnlineCP(rank=5, modes=['place', 'date'], value='count')\n"
        "  model.fit(first_table); model.update(next_table); model.predict(cells)",
        highlight=False,
    )


def _stream(seed: int) -> tuple[simulate.Stream, Floats]:
    rng = np.random.default_rng(seed)
    shape = (len(PLACES), len(DISEASES), N_DATES, N_DELAYS)
    truth = simulate.low_rank(shape, 3, kind="nonnegative", noise=0.02, seed=seed)
    days = np.arange(N_DATES)[:, None]
    waves = 1.2 + np.sin(2 * np.pi * (days / (20.0 + 10.0 * np.arange(3)) + rng.random(3)))
    profile = np.exp(-np.arange(N_DELAYS)[:, None] / np.array([1.0, 2.0, 4.0]))
    factors = (20.0 * (0.2 + truth.factors[0]), 0.2 + truth.factors[1], waves, profile)
    scale = float(np.sqrt(np.prod([f.T @ f / len(f) for f in factors], axis=0).sum()))
    truth = simulate.LowRank(factors, truth.direction, 0.02, 0.0, scale, seed)
    stream = simulate.reporting(truth, start=FIRST_DATES / N_DATES, observed=0.7, seed=seed)
    late = _arrivals_of_new_places(stream)
    stream = simulate.Stream(truth, stream.coords, np.maximum(stream.arrival, late), stream.sizes)
    return simulate.revise(stream, seed=seed), truth.dense(clean=True)


def _arrivals_of_new_places(stream: simulate.Stream) -> Positions:
    """Let the last places join one after the other, five days apart."""
    joins = np.zeros(len(PLACES), np.int64)
    joins[-NEW_PLACES:] = 3 + 5 * np.arange(NEW_PLACES)
    return np.asarray(joins[stream.coords[:, 0]])


def _columns(batch: Any) -> dict[str, Any]:
    first = dt.date(2026, 1, 1)
    labels: dict[str, Any] = {
        "place": np.array(PLACES),
        "disease": np.array(DISEASES),
        "date": np.array([first + dt.timedelta(days=d) for d in range(N_DATES)], "datetime64[D]"),
        "delay": np.arange(N_DELAYS),
    }
    columns = {name: labels[name][batch.coords[:, mode]] for mode, name in enumerate(MODES)}
    return columns | {"count": batch.values}


def _row(info: Info, models: list[OnlineCP], truth: Floats) -> Iterator[tuple[str, str]]:
    new = [name if n == 1 else f"{n} {name}" for name, n in info.new_labels.items() if n]
    yield "step", str(info.step)
    yield "date", models[0].labels_["date"][-1].item().strftime("%b %d")
    yield "new labels", ", ".join(new) or "-"
    yield from (("grown", str(info.grown)), ("filled", str(info.filled)))
    yield "revised", str(info.revised)
    for name, model in zip(("economy", "full"), models, strict=True):
        yield name, f"{_fitness(model, truth):.4f}"


def _fitness(model: OnlineCP, truth: Floats) -> float:
    """Score the cells of all labels known so far against the noiseless truth."""
    order = [PLACES, DISEASES]
    where = [
        np.array([names.index(label) for label in model.labels_[mode]])
        for names, mode in zip(order, MODES, strict=False)
    ]
    where += [np.arange(model.shape_[2]), model.labels_["delay"].astype(int)]
    known = truth[np.ix_(*where)]
    gap = known - model.reconstruct()
    return float(1.0 - np.linalg.norm(gap) / np.linalg.norm(known))


def _print_components(console: Console, model: OnlineCP) -> None:
    table = Table(
        title="\nWho is in each component (economy model, strongest first)",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for header in ("component", "weight", "places", "diseases", "delays"):
        table.add_column(header)
    rows = model.components(top=3).to_pylist()
    for component in range(min(model.rank, 5)):
        mine = [r for r in rows if r["component"] == component]
        names = [
            ", ".join(r["label"] for r in mine if r["mode"] == mode)
            for mode in ("place", "disease", "delay")
        ]
        table.add_row(str(component + 1), f"{mine[0]['weight']:.0f}", *names)
    console.print(table)
