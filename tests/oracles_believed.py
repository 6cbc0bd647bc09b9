"""Rows with learned priors on dense tensors, slow and obvious.  Imports nothing of the package.

A row has a mean ``a`` and a precision ``T`` in units of one cell, an R x R matrix; its covariance
is ``C = s2 T^-1``.  Data are a dict {cell: (value, weight)} as in `tests.oracles`, and `keep` says
what is kept of a matrix: all of it, or its diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tests.oracles import cells_of, z_row


def whole(matrix):
    return matrix


def diagonal(matrix):
    return np.diag(np.diag(matrix))


@dataclass
class Rows:
    """Means and precisions of the rows of each mode, the noise s2 and the cells behind it.

    `bound` is what a step came to, with the noise that was known before it.
    """

    means: list[np.ndarray]
    told: list[np.ndarray]
    noise: float
    cells: float = 100.0
    bound: float = np.nan

    def covariance(self, mode, i):
        return self.noise * np.linalg.inv(self.told[mode][i])

    def copy(self):
        return Rows([m.copy() for m in self.means], [t.copy() for t in self.told], self.noise)


def cell_matrix(rows, cell, skip=None):
    """The product, element by element, of ``a a' + C`` over the modes."""
    product = np.ones((rows.means[0].shape[1],) * 2)
    for mode, i in enumerate(cell):
        if mode != skip:
            a = rows.means[mode][i]
            product = product * (np.outer(a, a) + rows.covariance(mode, i))
    return product


def own_variance(rows, cell):
    """``1' (product of a a' + C) 1 - y^2``."""
    return cell_matrix(rows, cell).sum() - z_row(rows.means, cell, None).sum() ** 2


def misses(rows, data):
    """``sum w E (x - y)^2``."""
    return sum(
        w * ((x - z_row(rows.means, c, None).sum()) ** 2 + own_variance(rows, c))
        for c, (x, w) in data.items()
    )


def solve_row(rows, data, mode, i, prior, centre):
    """``(P + L) a = q + L m``; returns a and P."""
    rank = len(centre)
    p, q = np.zeros((rank, rank)), np.zeros(rank)
    for c, (x, w) in data.items():
        if c[mode] == i:
            p = p + w * cell_matrix(rows, c, mode)
            q = q + w * x * z_row(rows.means, c, mode)
    return np.linalg.solve(p + prior, q + prior @ centre), p


def scatter(means, covariances):
    """S of the rows of a mode: with a pseudo row of weight 1 / n, as large as the others."""
    n, m = len(means), means.mean(axis=0)
    found = sum(np.outer(a - m, a - m) + c for a, c in zip(means, covariances, strict=True))
    return (found + np.diag((means**2).mean(axis=0)) / n) / (n - 1 + 1 / n)


def inverted(matrix, flat=1e-6):
    """The inverse by way of the correlation matrix, whose diagonal is a little more than one."""
    scale = np.sqrt(np.diag(matrix))
    correlation = matrix / np.outer(scale, scale)
    np.fill_diagonal(correlation, 1.0 + flat)
    return np.linalg.inv(correlation) / np.outer(scale, scale)


def prior_precision(rows, mode, keep=whole):
    """``s2 S^-1``."""
    covariances = [rows.covariance(mode, i) for i in range(len(rows.means[mode]))]
    return keep(rows.noise * inverted(scatter(rows.means[mode], covariances)))


def _log_det(matrix):
    return np.linalg.slogdet(matrix)[1]


def evidence(rows, priors, data, noise):
    """``n log s2 + misses / s2 + sum_k (n_k log |S_k| - sum_i log |C_i|)``.

    `rows.noise` is that of S, C and the misses.
    """
    total = len(data) * np.log(noise) + misses(rows, data) / noise
    for mode, means in enumerate(rows.means):
        total += len(means) * _log_det(rows.noise * np.linalg.inv(priors[mode]))
        total -= sum(_log_det(rows.covariance(mode, i)) for i in range(len(means)))
    return total


def free_energy(rows, data, priors, centres, which=None):
    """The variational bound times ``2 s2``; priors and centres by mode and row.

    `which` are the rows of each mode that take part, all if it is not given.
    """
    total = misses(rows, data)
    for mode, means in enumerate(rows.means):
        for i in range(len(means)) if which is None else which[mode]:
            a, c, prior = means[i], rows.covariance(mode, i), priors[mode][i]
            gap = a - centres[mode][i]
            total += gap @ prior @ gap + np.trace(prior @ c)
            total -= rows.noise * _log_det(c)
    return total


def em_sweep(rows, data, priors, centres, keep=whole, *, fill=False):
    """A sweep of the preparation, in place: rows, then the prior of the mode; returns the noise.

    `fill` says that cells without value are zeros: then a row without cells is no secret.
    """
    for mode, means in enumerate(rows.means):
        for i in range(len(means)):
            row, p = solve_row(rows, data, mode, i, priors[mode], centres[mode])
            if not fill and not any(c[mode] == i for c in data):
                row, p = centres[mode], 0.0 * p
            means[i], rows.told[mode][i] = row, priors[mode] + keep(p)
        centres[mode] = means.mean(axis=0)
        priors[mode] = prior_precision(rows, mode, keep)
    return misses(rows, data) / len(data)


def step(
    rows,
    data,
    new_shape,
    *,
    economy,
    sweeps=1,
    keep=whole,
    decay=1.0,
    zeros=None,
    ahead=None,
    begun=None,
):
    """One step: economy, or a sweep with all entries; `zeros` are cells that are not listed.

    `ahead` is (mode, late, see, precision, along) of new rows that the outlook sees: `see` gives
    their centres from all rows as they are, after `late` cells of known labels are learned; `along`
    gives the priors of rows of the mode with history (`oracles_outlook.Along`).  Returns the rows
    after the step; `begun` is shown them when new rows have begun.
    """
    old = [len(m) for m in rows.means]
    terms = {**dict.fromkeys(zeros or (), (0.0, 1.0)), **data}
    now, priors, centres, averages = _begin(rows, new_shape, keep, economy=economy, decay=decay)
    touched = [
        sorted({c[m] for c in data} | set(range(n, k))) if economy else range(k)
        for m, (n, k) in enumerate(zip(old, new_shape, strict=True))
    ]
    several = sum(n < k for n, k in zip(old, new_shape, strict=True)) > 1 and zeros is None
    few = {c: v for c, v in terms.items() if sum(map(int.__ge__, c, old)) < 2}
    update = partial(_update, now, old, priors, centres, keep, fill=zeros is not None)

    def learn(mode, rows, cells=terms):
        update(cells, mode, rows)

    known = few if several else terms
    if ahead is not None:
        _look_ahead(
            now, (priors, centres, averages), ahead, touched, old, partial(learn, cells=known)
        )
    for mode, n in enumerate(old):
        learn(mode, range(n, new_shape[mode]), known)
    if begun is not None:
        begun(now, centres)
    for _ in range(sweeps):
        for mode in range(len(new_shape)):
            along = ahead[-1] if ahead is not None and mode == ahead[0] else None
            if not economy:
                priors[mode][:], centres[mode][:] = averages[mode]
            if along is not None:
                along.place(now, priors, centres, averages)
            learn(mode, touched[mode])
            averages[mode] = prior_precision(now, mode, keep), now.means[mode].mean(axis=0)
            if along is not None:
                along.learn(now, averages)
    now.bound = free_energy(now, terms, priors, centres, touched)
    return _with_noise(now, terms, economy=economy, before=rows)


def _look_ahead(now, beliefs, ahead, touched, old, learn):
    """Bring new rows of the ordered mode to where they are seen, after late cells of known ones."""
    (priors, centres, averages), (mode, late, see, told, along) = beliefs, ahead
    if along is not None:
        for i, row in along.new.items():
            now.means[mode][i] = row
        along.place(now, priors, centres, averages)
    if late:
        learn(mode, [i for i in touched[mode] if i < old[mode]])
    for i, centre in see(now.means).items():
        now.means[mode][i] = centres[mode][i] = centre
        now.told[mode][i] = priors[mode][i] = told


def _begin(rows, new_shape, keep, *, economy, decay):
    """New rows at their prior; what is known before of every row, and of every mode."""
    now, priors, centres, averages = rows.copy(), [], [], []
    for mode, (means, n) in enumerate(zip(rows.means, new_shape, strict=True)):
        prior, mean, new = prior_precision(rows, mode, keep), means.mean(axis=0), n - len(means)
        now.means[mode] = np.vstack([means, *[mean[None]] * new])
        now.told[mode] = np.concatenate([rows.told[mode], *[prior[None]] * new])
        faded = 0.95 * decay * rows.told[mode]
        known = faded if economy else np.array([prior] * len(means))
        priors.append(np.concatenate([known, *[prior[None]] * new]))
        centres.append(now.means[mode].copy() if economy else np.tile(mean, (n, 1)))
        averages.append((prior, mean))
    return now, priors, centres, averages


def _update(now, old, priors, centres, keep, terms, mode, which, *, fill):
    """Solve rows of a mode, each with the other modes as they are."""
    for i in which:
        row, p = solve_row(now, terms, mode, i, priors[mode][i], centres[mode][i])
        if not fill and not any(c[mode] == i for c in terms):
            row, p = centres[mode][i], 0.0 * p
        now.means[mode][i], now.told[mode][i] = row, priors[mode][i] + keep(p)


def _with_noise(now, terms, *, economy, before):
    found = misses(now, terms) / len(terms)
    if economy:
        share = min(0.05, len(terms) / before.cells)
        found = before.noise + share * (found - before.noise)
    now.noise, now.cells = found, len(terms) + (before.cells if economy else 0.0)
    return now


def imputed_rows(rows, data, shape, prior, mode, centre):
    """Rows of one mode where every cell without value is what the model says, and how sure."""
    full = {c: data.get(c, (z_row(rows.means, c, None).sum(), 1.0)) for c in cells_of(shape)}
    found = []
    for i in range(shape[mode]):
        row, _ = solve_row(rows, full, mode, i, prior, centre)
        _, p = solve_row(rows, data, mode, i, prior, centre)
        silent = not any(c[mode] == i for c in data)
        found.append((centre if silent else row, prior + p))
    return found
