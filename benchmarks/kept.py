"""What the paper's reconstruction term would do beside rows that remember how sure they are.

Economy steps hold on to the last model by the precision of each row; the term of the paper knows
the old box, but not how sure its rows are.  Both are quadratics and would add: the term is put in
with all of its weight, and with a tenth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.answers import SCORES, SEEDS, STREAMS
from tensortide.core.objective.data_terms import DataTerms
from tensortide.core.objective.squares import BoxTerm
from tensortide.core.steps.believe import AnyBelieved, BelievedStep
from tensortide.experiments.comparison import contest

SHARES = (0.0, 0.1, 1.0)


def beside(share: float) -> Any:
    """Return how a step makes its objective with a share of the term."""
    make = BelievedStep._objective

    def made(step: BelievedStep, data_terms: DataTerms, observed: DataTerms) -> AnyBelieved:
        def with_last(work: Any, entries: Any) -> Any:
            listed, boxes = data_terms(work, entries)
            weight = share * step.alpha
            return listed, [*boxes, BoxTerm(weight, step.begun.previous, upper_only=True)]

        return make(step, with_last if share else data_terms, observed)

    return made


def main() -> None:
    """Print errors of `gocpte` for each share, relative to those without the term."""
    plain, found = BelievedStep._objective, {}
    for share in SHARES:
        made = beside(share)
        BelievedStep._objective = made  # type: ignore[method-assign]
        try:
            for name, task in STREAMS.items():
                runs = [contest(task(seed), ["gocpte"], rivals=False, progress=False)["gocpte"]
                        for seed in range(SEEDS)]  # fmt: skip
                for score in SCORES:
                    found[name, score, share] = np.mean([getattr(run, score) for run in runs])
        finally:
            BelievedStep._objective = plain  # type: ignore[method-assign]
    print("| stream | before: a tenth | all of it | held out: a tenth | all of it |")
    print("|---|---|---|---|---|")
    every = []
    for name in STREAMS:
        ratios = [
            found[name, score, share] / found[name, score, 0.0]
            for score in SCORES for share in SHARES[1:]
        ]  # fmt: skip
        every.append(ratios)
        print(f"| {name} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |")
    print(f"| median | {' | '.join(f'{ratio:.2f}' for ratio in np.median(every, axis=0))} |")


if __name__ == "__main__":
    main()
