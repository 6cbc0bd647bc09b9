"""A slow forecast some steps ahead: what the docstrings say, cell by cell, in dicts and loops.

Labels are whole numbers one apart, with gaps.  Only the weights of a Gram matrix are those of the
package (`mix_jointly`, `mix`).
"""

from __future__ import annotations

import numpy as np

from tensortide.core.steps.outlook import mix, mix_jointly


def candidates(rows, known, number, horizon, periods):
    """Rows that stand for `number`, seen `horizon` steps before; `rows` by label."""
    old = sorted(known, reverse=True)
    mean = np.mean([rows[label] for label in known], axis=0)
    last = rows[old[0]]
    found = [mean, last]
    found += [np.mean([rows[label] for label in old[:n]], axis=0) for n in (2, 4, 8)]
    move = last - rows[old[1]] if len(old) > 1 else 0.0 * last
    found.append(last + sum(0.5**k for k in range(1, horizon + 1)) * move)
    for period in periods:
        first = -(-horizon // period)
        ago = [rows.get(number - period * (first + k)) for k in range(4)]
        seen = [row for row in ago if row is not None]
        found.append(ago[0] if ago[0] is not None else last)
        found.append(np.mean(seen, axis=0) if seen else last)
    return np.array(found)


def memories(residuals, number, horizon, periods):
    """What a fibre remembers, of `residuals` by label, `horizon` steps before a number."""
    known = [residuals[label] for label in sorted(residuals) if label <= number - horizon]
    if not known:
        known_last, faded, mean, trend = 0.0, 0.0, 0.0, 0.0
    else:
        fade = 0.7 ** np.arange(len(known) - 1, -1, -1)
        known_last, faded = known[-1], fade @ known / fade.sum()
        mean = sum(known) / (len(known) + 1)
        move = known[-1] - known[-2] if len(known) > 1 else 0.0
        trend = known_last + sum(0.5**k for k in range(1, horizon + 1)) * move
    out = [0.0, known_last, faded, mean, trend]
    for period in periods:
        first = -(-horizon // period)
        ago = [number - period * (first + k) for k in range(4)]
        seen = [residuals[label] for label in ago if label in residuals]
        out.append(np.mean(seen) if seen else mean)
    return np.array(out)


class SlowForecast:
    """`cells` are {(fibre, label): value}, `rows` those of labels, `products` those of fibres."""

    def __init__(self, cells, rows, products, periods, *, memory, certain=None):
        self.cells, self.rows, self.products, self.periods = cells, rows, products, periods
        self.memory, self.certain = memory, certain
        self.residuals = {fibre: {} for fibre in products}
        for (fibre, label), value in cells.items():
            self.residuals[fibre][label] = value - products[fibre] @ rows[label]

    def gram(self, horizon):
        labels = sorted(self.rows)
        enough = max(2, min(8, len(labels) // 2))
        judges = [n for n in labels[-100:] if sum(m <= n - horizon for m in labels) >= enough]
        total = 0.0
        for age, number in enumerate(reversed(judges)):
            known = [m for m in labels if m <= number - horizon]
            found = candidates(self.rows, known, number, horizon, self.periods)
            if self.certain is not None:
                gaps = self.rows[number] - found
                total = total + 0.98**age * gaps @ self.certain[number] @ gaps.T
                continue
            for (fibre, label), value in self.cells.items():
                if label == number:
                    missed = value - found @ self.products[fibre]
                    recalled = np.empty(0)
                    if self.memory:
                        past = self.residuals[fibre]
                        recalled = memories(past, number, horizon, self.periods)
                    both = np.concatenate([missed, recalled])
                    total = total + 0.98**age * np.outer(both, both)
        return total

    def weights(self, horizon):
        grams = [self.gram(h) for h in range(1, horizon + 1)]
        total = sum(gram / np.trace(gram) for gram in grams)
        n = 6 + 2 * len(self.periods)
        return (mix_jointly(total, n) if len(total) > n else (mix(total), np.empty(0))), total

    def value(self, fibre, number):
        labels = sorted(self.rows)
        horizon = number - labels[-1]
        (mixed, recalling), _ = self.weights(horizon)
        row = mixed @ candidates(self.rows, labels, number, horizon, self.periods)
        value = self.products[fibre] @ row
        if len(recalling):
            past = self.residuals[fibre]
            value += recalling @ memories(past, number, horizon, self.periods)
        return value
