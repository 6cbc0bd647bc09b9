"""Slow rivals, straight from their definitions: dictionaries of labelled cells, loops of records.

A batch is a list of ``(labels, value)`` with labels a tuple; `mode` is the place in it along which
fibres run, and its labels are whole numbers.
"""

from __future__ import annotations

import math
from itertools import pairwise

PERIODS = (7, 12, 24, 52)  # of labels that are whole numbers
DRAWN, SWEEPS = 3.0, 5


def fibre(labels, mode):
    return tuple(label for k, label in enumerate(labels) if k != mode)


def mean(known):
    return sum(known.values()) / len(known)


def history(known, labels, mode):
    """What is known of the fibre of a cell, by label."""
    mine = fibre(labels, mode)
    return {other[mode]: x for other, x in known.items() if fibre(other, mode) == mine}


def last_value(known, labels, mode):
    past = history(known, labels, mode)
    if labels[mode] in past:
        return past[labels[mode]]
    return past[max(past)] if past else mean(known)


def fibre_mean(known, labels, mode):
    past = history(known, labels, mode)
    return mean(past) if past else mean(known)


def seasonal(known, labels, mode, season):
    past, last = history(known, labels, mode), last_value(known, labels, mode)
    return last if labels[mode] in past else past.get(labels[mode] - season, last)


def unit(first, mode):
    """The usual distance of two labels of the preparation."""
    marks = sorted({labels[mode] for labels in first})
    gaps = sorted(b - a for a, b in pairwise(marks))
    if not gaps:
        return 1
    middle = len(gaps) // 2
    return max(gaps[middle] if len(gaps) % 2 else (gaps[middle - 1] + gaps[middle]) // 2, 1)


def season(first, mode):
    """The season that did best on the preparation, against the value just before."""
    ratios = []
    for period in PERIODS:
        length, missed, plain = period * unit(first, mode), 0.0, 0.0
        for labels, x in first.items():
            past = {at: y for at, y in history(first, labels, mode).items() if at < labels[mode]}
            if labels[mode] - length in past:
                missed += (x - past[labels[mode] - length]) ** 2
                plain += (x - past[max(past)]) ** 2
        ratios.append(missed / plain if plain > 0.0 else math.inf)
    return PERIODS[ratios.index(min(ratios))] * unit(first, mode)


class Effects:
    """A mean and an effect of each label, drawn to zero by three records."""

    def __init__(self, order):
        self.mean, self.effects = 0.0, [{} for _ in range(order)]

    def learn(self, known):
        self.mean = mean(known)
        for _ in range(SWEEPS):
            for k, effects in enumerate(self.effects):
                sums, counts = {}, {}
                for labels, x in known.items():
                    others = (
                        e.get(label, 0.0)
                        for j, (e, label) in enumerate(zip(self.effects, labels, strict=True))
                        if j != k
                    )
                    sums[labels[k]] = sums.get(labels[k], 0.0) + x - self.mean - sum(others)
                    counts[labels[k]] = counts.get(labels[k], 0) + 1
                effects.update({label: sums[label] / (counts[label] + DRAWN) for label in sums})

    def predict(self, labels):
        pairs = zip(self.effects, labels, strict=True)
        return self.mean + sum(e.get(label, 0.0) for e, label in pairs)


def predictions(first, batches, held, mode):
    """What each rival says of each batch before it is learned, and of cells held out after it."""
    known = dict(first)
    effects, period = Effects(len(next(iter(known)))), season(known, mode)
    effects.learn(known)
    rivals = {
        "last value": lambda labels: last_value(known, labels, mode),
        "fibre mean": lambda labels: fibre_mean(known, labels, mode),
        "seasonal naive": lambda labels: seasonal(known, labels, mode, period),
        "additive effects": effects.predict,
    }
    found = {name: [] for name in rivals}
    for batch, aside in zip(batches, held, strict=True):
        before = {name: [says(labels) for labels, _ in batch] for name, says in rivals.items()}
        known.update(batch)
        effects.learn(known)
        for name, says in rivals.items():
            found[name].append((before[name], [says(labels) for labels, _ in aside]))
    return found
