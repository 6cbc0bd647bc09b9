"""The outlook and the memory of fibres, slow and obvious.  Imports nothing of the package.

`numbers` are those of the labels of a mode, one for each position; what comes before a label is
what has a smaller number.
"""

from __future__ import annotations

import itertools

import numpy as np

from tests.oracles import z_row


def before(numbers, i, seasons, recent=8):
    """Positions of the labels before the i-th, nearest first, and of those some seasons ago."""
    earlier = sorted((n, at) for at, n in enumerate(numbers) if n < numbers[i])[::-1]
    place = {n: at for at, n in enumerate(numbers)}
    return [at for _, at in earlier[:recent]], [place.get(numbers[i] - s) for s in seasons]


def candidates(numbers, i, seasons, row, mean):
    """What the i-th row may look like; `row` gives the rows before it."""
    near, ago = before(numbers, i, seasons)
    if not near:
        return np.array([mean] * (7 + len(seasons)))
    last = row(near[0])
    found = [mean, last, *(sum(row(at) for at in near[:n]) / len(near[:n]) for n in (2, 4, 8))]
    found.append(last + (last - row(near[1])) / 2 if len(near) > 1 else last)
    found.append(last + (last - row(near[3])) / 3 if len(near) > 4 else last)
    found += [last if at is None else row(at) for at in ago]
    return np.array(found)


def look(numbers, fresh, seasons, means, mean, weights):
    """Rows and candidates of new labels, the earliest first: later ones look at earlier ones."""
    rows, found = {}, {}
    for i in sorted(fresh, key=lambda i: numbers[i]):
        found[i] = candidates(numbers, i, seasons, lambda at: rows.get(at, means[at]), mean)
        rows[i] = weights @ found[i]
    return rows, found


def best_on_simplex(gram, allowed=None):
    """The smallest w' G w over weights that add up to one, by trying every support."""
    which = [i for i in range(len(gram)) if allowed is None or allowed[i]]
    least = np.inf
    for n in range(1, len(which) + 1):
        for support in itertools.combinations(which, n):
            inside = np.linalg.pinv(gram[np.ix_(support, support)]).sum(axis=1)
            if inside.sum() > 0.0 and (inside >= 0.0).all():
                w = np.zeros(len(gram))
                w[list(support)] = inside / inside.sum()
                least = min(least, float(w @ gram @ w))
    return least


def faded(gram, errors, discount):
    """The Gram matrix of errors with those of a batch."""
    return discount * gram + sum(np.outer(e, e) for e in errors) if len(errors) else gram


def missed_by_rows(found, rows, gained):
    """What candidates missed of the values of the learned rows: `gained` is ``sum w z z'``."""
    return sum((f - a) @ p @ (f - a).T for f, a, p in zip(found, rows, gained, strict=True))


def drifted(drift, count, moments):
    for one in moments:
        count = min(count + 1, 50)
        drift = drift + (one - drift) / count
    return drift, count


class Along:
    """Priors of new rows of the ordered mode that have two before them: outlook, and its scatter.

    `drift` is the scatter of what the outlook misses of all such rows, None while it is not known;
    `invert` makes a precision of it.  `new` are rows as they are looked at first: new labels may
    lie between known ones.
    """

    def __init__(self, mode, numbers, seasons, weights, drift, invert, new):
        self.mode, self.numbers, self.seasons, self.weights = mode, numbers, seasons, weights
        self.new = new
        self.drift, self.invert = drift, invert
        self.rows = [i for i in range(len(numbers)) if len(before(numbers, i, seasons)[0]) > 1]

    def outlook(self, means, mean, i):
        found = candidates(self.numbers, i, self.seasons, means[self.mode].__getitem__, mean)
        return self.weights @ found

    def place(self, now, priors, centres, averages):
        """Give new rows their priors, from all rows as they are."""
        if self.drift is not None:
            for i in set(self.rows) & set(self.new):
                centres[self.mode][i] = self.outlook(now.means, averages[self.mode][1], i)
                priors[self.mode][i] = now.noise * self.invert(self.drift)

    def learn(self, now, averages):
        """The mean of what was missed, and of the mode's scatter with the weight of 1 / n."""
        prior, mean = averages[self.mode]
        n, found = len(self.rows), 0.0
        for i in self.rows:
            gap = now.means[self.mode][i] - self.outlook(now.means, mean, i)
            found = found + np.outer(gap, gap) + now.covariance(self.mode, i)
        if n:
            usual = now.noise * np.linalg.inv(prior)
            self.drift = (found + usual / n) / (n + 1 / n)


def answered(said, plain):
    """The ways to answer: what the model says, a fibre's last value and mean where it has them."""
    return [said, *(said if np.isnan(x) else x for x in plain)]


def value(means, cell, mode=None, row=None):
    """The model's value at a cell, with another row in one mode if that is given."""
    if mode is None:
        return z_row(means, cell, None).sum()
    return z_row(means, cell, mode) @ row


class FibreDict:
    """A memory of fibres that writes down all that each was told.

    `line` says where the label of a cell stands.  Of `old` labels no residual is last, of labels
    before the newest one no value.  What is told of the newest label again corrects it.
    """

    def __init__(self, mode):
        self.mode, self.told = mode, {}

    def key(self, cell):
        return tuple(int(i) for m, i in enumerate(cell) if m != self.mode)

    def newest(self, told):
        return max(at for at, *_ in told) if told else -np.inf

    def recall(self, cell, old=False):
        """Nothing, the newest residual, a faded mean, the sum over one more than the count.

        What came late fades no other: the faded mean is of those that were the newest once.
        """
        told = self.told.get(self.key(cell), [])
        if not told:
            return [0.0] * 4
        mean = sum(r for _, r, *_ in told) / (len(told) + 1)
        if old:
            return [0.0, mean, mean, mean]
        ahead = [r for _, r, _, late in told if not late]
        fades = [0.7**age for age in range(len(ahead))][::-1]
        faded = sum(f * r for f, r in zip(fades, ahead, strict=True)) / sum(fades)
        return [0.0, ahead[-1], faded, mean]

    def learn(self, cell, residual, value, line):
        told = self.told.setdefault(self.key(cell), [])
        if line == self.newest(told):
            place = next(k for k, (at, *_) in enumerate(told) if at == line)
            told[place] = (line, residual, value, False)
        else:
            told.append((line, residual, value, line < self.newest(told)))

    def forget(self, cell):
        self.told.pop(self.key(cell), None)

    def values(self, cell, line):
        """The newest value, and the mean of all."""
        told = self.told.get(self.key(cell), [])
        if not told or line < self.newest(told):
            return [np.nan, np.nan]
        return [x for at, _, x, _ in told if at == self.newest(told)] + [
            sum(x for _, _, x, _ in told) / len(told)
        ]
