"""Side by side with the authors' package (GOCPT 0.1.1), method by method, on the paper's data.

Factorization: ORL faces, complete; completion: Indian Pines, 98 % masked; rank 5, the first
10 % as preparation, then one slice a step, the same prepared factors for both.  Time: for the
package its own clock around the update; for us the whole call of `update`.  Fitness: average
over steps on all cells (factorization) or on the hidden cells (completion).

The package's functions are called with the settings of its own classes.  What they need to
run at all: unit columns for the subspace trackers and CPStream, the Khatri-Rao product of SDT's
start in the order of its unfolding, empty changes for GOCPT_E.
Its EM-ALS, EM-ALS (decay) and CPC-ALS are not part of the package.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

import tensortide as tt
from tensortide.arrays import Flags, Floats
from tensortide.core.steps.method import Method
from tensortide.experiments.fitness import RunningFitness

RANK = 5
State = dict[str, Any]
Pair = tuple[str, Callable[..., State], Callable[..., float]]


def main() -> None:
    """Print both tables."""
    print("| setting | method | ours, ms a step | package, ms a step | package / ours "
          "| our fitness | package's fitness |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    faces = tt.datasets.orl_faces().values
    compare("factorization", faces, None, [
        ("online_cpd", _cpd_state, _cpd),
        ("mast", _plain, _mast),
        ("rlst", _rlst_state, _rlst),
        ("rlst, package prepared by itself", _rlst_own, _rlst),
        ("sdt", _sdt_state, _sdt),
        ("cp_stream", _stream_state, _stream),
        *variants("gocpte", _plain, _gocpte, 3),
        *variants("gocpt", _plain, _gocpt, 3),
    ])  # fmt: skip
    pines = tt.datasets.indian_pines().values
    mask = tt.simulate.random_mask(pines.shape, 0.02, seed=0)
    compare("completion", pines, mask, [
        *variants("online_sgd", _plain, _sgd),
        *variants("olstec", _olstec_state, _olstec),
        *variants("gocpte", _plain, _gocpte_masked, 3),
        *variants("gocpt", _plain, _gocpt_masked, 3),
    ])  # fmt: skip


def variants(name: str, begin: Any, step: Any, ours: int | None = None) -> Iterator[Pair]:
    """Yield the package as shipped (three iterations), then both with one, and with `ours` each."""
    yield name, begin, step
    yield f"{name}, 1 iteration each", begin, partial(step, iters=1)
    if ours is not None:
        yield f"{name}, {ours} iterations each", begin, partial(step, iters=ours)


def compare(setting: str, x: Floats, mask: Flags | None, methods: Iterable[Pair]) -> None:
    """Print a line for each method."""
    first = round(0.1 * x.shape[2])
    score = RunningFitness(x, mask)
    prepared = tt.OnlineCP(RANK, "gocpt", prior="paper").fit(_part(x, mask, 0, first))
    for name, begin, step in methods:
        mine, fit = ours(_ours(name), x, mask, first, prepared.factors_, score)
        state = begin(
            prepared.factors_, x[..., :first], None if mask is None else mask[..., :first]
        )
        peer, peer_fit = theirs(state, step, x, mask, first, score)
        print(f"| {setting} | {name} | {1e3 * mine:.2f} | {1e3 * peer:.2f} | {peer / mine:.1f} "
              f"| {fit:.4f} | {peer_fit:.4f} |", flush=True)  # fmt: skip


def _ours(name: str) -> Method:
    method, _, iterations = name.partition(", ")
    return tt.METHODS[method](**({"sweeps": 3} if iterations.startswith("3") else {}))


def ours(
    method: Method,
    x: Floats,
    mask: Flags | None,
    first: int,
    start: list[Floats],
    score: RunningFitness,
) -> tuple[float, float]:
    """Return the median seconds of a step and the average fitness of one of our methods."""
    model = tt.OnlineCP(RANK, method, prior="paper")
    model.fit(_part(x, mask, 0, first), init=start, max_sweeps=0)
    seconds, scores = [], []
    for t in range(first, x.shape[2]):
        batch = _part(x, mask, t, t + 1)
        began = time.perf_counter()
        model.update(batch)
        seconds.append(time.perf_counter() - began)
        scores.append(score(model.factors_))
    return float(np.median(seconds)), float(np.mean(scores))


def theirs(
    state: State, step: Callable[..., float], x: Floats, mask: Flags | None, first: int,
    score: RunningFitness,
) -> tuple[float, float]:  # fmt: skip
    """Return the same for one of the package's functions."""
    seconds, scores = [], []
    for piece, seen, before in _pieces(x, mask, first):
        state["all"] = before
        with np.errstate(all="ignore"):
            seconds.append(step(state, piece, seen))
            scores.append(score(state["factors"]))
    return float(np.median(seconds)), float(np.mean(scores))


def _pieces(x: Floats, mask: Flags | None, first: int) -> Iterator[tuple[Any, Any, Any]]:
    masked = x if mask is None else x * mask
    for t in range(first, x.shape[2]):
        seen = None if mask is None else mask[..., t : t + 1].astype(float)
        everything = (
            masked[..., : t + 1],
            None if mask is None else mask[..., : t + 1].astype(float),
        )
        yield masked[..., t : t + 1], seen, everything


def _part(x: Floats, mask: Flags | None, begin: int, end: int) -> Any:
    if mask is None:
        return x[..., begin:end]
    cells = np.argwhere(mask[..., begin:end])
    cells[:, 2] += begin
    return tt.Batch(cells, x[tuple(cells.T)], shape=(*x.shape[:2], end))


def _utils() -> Any:
    from GOCPT import utils

    return utils


def _plain(factors: list[Floats], _: Floats, __: Flags | None) -> State:
    return {"factors": [f.copy() for f in factors]}


def _unit(factors: list[Floats], into: int) -> list[Floats]:
    """Columns of the factors before `into` get length one, their scale goes there."""
    new = [f.copy() for f in factors]
    for n in range(into):
        length = np.linalg.norm(new[n], axis=0)
        new[n], new[into] = new[n] / length, new[into] * length
    return new


def _cpd_state(factors: list[Floats], x: Floats, _: Flags | None) -> State:
    sums = [_utils().get_lhs_rhs_from_tensor(x, factors, n) for n in range(2)]
    p, q = [s[1] for s in sums], [s[0] for s in sums]
    return {"factors": [f.copy() for f in factors], "p": [*p, None], "q": [*q, None]}


def _cpd(state: State, x: Floats, _: Any) -> float:
    state["factors"], state["p"], state["q"], seconds = _utils().OnlineCPD_update(
        x, state["factors"], state["p"], state["q"]
    )
    return float(seconds)


def _mast(state: State, x: Floats, _: Any) -> float:
    state["factors"], seconds = _utils().MAST_update(
        x, state["factors"], [1 / 15] * 3, alpha=1, iters=20, phi=1.05, eta_max=1, eta_init=1e-5,
        tol=1e-5,
    )  # fmt: skip
    return float(seconds)


def _rlst_state(factors: list[Floats], x: Floats, _: Flags | None) -> State:
    return _rlst_sums(_unit(factors, 1), x)


def _rlst_sums(factors: list[Floats], x: Floats) -> State:
    c = factors[2]
    sums, past = x.reshape(-1, len(c)) @ c, c.T @ c
    inverse = np.linalg.inv(sums.T @ sums) @ sums.T
    return {"factors": factors, "kept": [past, np.linalg.inv(past), sums, inverse]}


def _rlst_own(_: list[Floats], x: Floats, __: Flags | None) -> State:
    """As its class does it: 50 sweeps from random factors, columns of any length."""
    from GOCPT.otf import cpd

    np.random.seed(0)  # noqa: NPY002 - what the package uses
    return _rlst_sums(cpd(x, RANK, 50), x)


def _rlst(state: State, x: Floats, _: Any) -> float:
    state["factors"], state["kept"], seconds = _utils().RLST_update(
        x, state["factors"], state["kept"], 0.995
    )
    return float(seconds)


def _sdt_state(factors: list[Floats], x: Floats, _: Flags | None) -> State:
    utils, unit = _utils(), _unit(factors, 1)
    weights = 0.99 ** np.arange(x.shape[2] - 1, -1, -1.0)
    left, sizes, right = utils.BiSVD((x * weights).reshape(-1, x.shape[2]), RANK)
    window = left @ sizes
    mixing = np.linalg.inv(window.T @ window) @ window.T @ utils.khatri_rao(unit[0], unit[1])
    return {"factors": unit, "kept": [mixing, np.linalg.inv(mixing), right, sizes, left]}


def _sdt(state: State, x: Floats, _: Any) -> float:
    state["factors"], state["kept"], seconds = _utils().SDT_update(
        x, state["factors"], state["kept"], 0.99
    )
    return float(seconds)


def _stream_state(factors: list[Floats], x: Floats, _: Flags | None) -> State:
    unit = _unit(factors, 2)
    weights = 0.99 ** np.arange(x.shape[2] - 1, -1, -1.0)
    return {"factors": unit, "past": (unit[2] * weights[:, None]).T @ unit[2]}


def _stream(state: State, x: Floats, _: Any) -> float:
    state["factors"], state["past"], seconds = _utils().CPStream_update(
        x, state["factors"], state["past"], mu=2, iters=20, tol=1e-5
    )
    return float(seconds)


def _gocpte(state: State, x: Floats, _: Any, iters: int = 3) -> float:
    state["factors"], seconds = _utils().GOCPTE_fac_update([x, RANK], state["factors"], 1, iters)
    return float(seconds)


def _gocpt(state: State, _: Floats, __: Any, iters: int = 3) -> float:
    everything = [state["all"][0], RANK]
    state["factors"], seconds = _utils().GOCPT_fac_update(everything, state["factors"], iters)
    return float(seconds)


def _sgd(state: State, x: Floats, seen: Floats, iters: int = 3) -> float:
    state["factors"], seconds = _utils().OnlineSGD_update(
        [x, seen], state["factors"], 1e-10, index=1, iters=iters, reg=1e-5
    )
    return float(seconds)


def _olstec_state(factors: list[Floats], x: Floats, mask: Flags | None) -> State:
    assert mask is not None
    weights = 0.98 ** np.arange(x.shape[2] - 1, -1, -1.0)
    seen = mask.astype(float)
    sums = [
        _utils().get_lhs_rhs_mask_weighted(seen, x * seen, factors, weights, n) for n in range(2)
    ]
    copies = [f.copy() for f in factors]
    return {"factors": copies, "gram": [s[0] for s in sums], "rhs": [s[1] for s in sums]}


def _olstec(state: State, x: Floats, seen: Floats, iters: int = 3) -> float:
    state["factors"], state["gram"], state["rhs"], seconds = _utils().OLSTEC_update(
        [x, seen], state["factors"], state["gram"], state["rhs"], iters, 1e-9, 0.88
    )
    return float(seconds)


def _gocpte_masked(state: State, x: Floats, seen: Floats, iters: int = 3) -> float:
    nothing: Any = (tuple(np.empty(0, int) for _ in range(3)), [])
    changes = {"new_R": RANK, "value_update": nothing, "miss_fill": nothing}
    alpha = 0.5 / state["all"][0].shape[2]
    state["factors"], seconds = _utils().GOCPTE_general_comp_update(
        [x, seen, changes], state["factors"], alpha, iters
    )
    return float(seconds)


def _gocpt_masked(state: State, _: Floats, __: Floats, iters: int = 3) -> float:
    everything = [*state["all"], RANK]
    state["factors"], seconds = _utils().GOCPT_general_comp_update(
        everything, state["factors"], 0.0, iters
    )
    return float(seconds)


if __name__ == "__main__":
    main()
