"""A day of the nowcaster on the German triangle, or on a simulated one of its size."""

from __future__ import annotations

import time

import numpy as np

import tensortide as tt
from tensortide.errors import NoDataError
from tensortide.nowcast import BASELINES, Nowcaster, Triangle, hub_table

DAYS, WARM = 20, 10


def triangle() -> tuple[Triangle, np.datetime64, str]:
    """Return 16 states x 6 ages x 41 delays, a first as-of day, and where it is from."""
    try:
        table = tt.datasets.de_covid_hosp().table
    except NoDataError:
        rng = np.random.default_rng(0)
        mean = np.einsum(
            "l,a,t,d->latd", rng.gamma(2.0, 2.0, 16), rng.gamma(2.0, 1.0, 6),
            np.ones(260), 0.8 ** np.arange(41.0),
        )  # fmt: skip
        cells = np.nonzero(counts := rng.poisson(mean))
        made = {
            "location": cells[0], "age_group": cells[1],
            "date": np.datetime64("2021-02-01") + cells[2], "delay": cells[3],
            "count": counts[cells],
        }  # fmt: skip
        return _read(made), np.datetime64("2021-09-20"), "simulated, of the same size"
    return _read(table), np.datetime64("2021-10-01"), "German hospitalisations"


def _read(table: object) -> Triangle:
    return Triangle.from_table(
        table, reference="date", delay="delay", count="count",
        strata=["location", "age_group"], max_delay=40,
    )  # fmt: skip


def seconds(nowcaster: Nowcaster, views: list[Triangle]) -> float:
    """Return the mean time of a day, intervals of all sums and 7-day sums included."""
    for view in views[:WARM]:
        nowcaster.update(view).quantiles(days=7)
    began = time.perf_counter()
    for view in views[WARM:]:
        nowcast = nowcaster.update(view)
        nowcast.quantiles()
        nowcast.quantiles(days=7)
    return (time.perf_counter() - began) / (len(views) - WARM)


def main() -> None:
    """Print the table."""
    whole, first, source = triangle()
    views = [whole.as_of(first + day) for day in range(WARM + DAYS)]
    ladder = seconds(Nowcaster((), [BASELINES["chain-ladder weekday"]]), views)
    print(f"{source}; all 119 sums, daily and 7-day, one core; mean of {DAYS} days\n")
    print("| nowcaster | seconds a day | times the weekday chain-ladder |")
    print("|---|---|---|")
    rows = {
        "weekday chain-ladder": None,
        "rank 5": Nowcaster(5, ()),
        "default (ranks 3, 4, 6 and a ladder)": Nowcaster(),
        "economy (ranks 3, 4, 6)": Nowcaster(economy=True),
    }
    for name, nowcaster in rows.items():
        taken = ladder if nowcaster is None else seconds(nowcaster, views)
        print(f"| {name} | {taken:.2f} | {taken / ladder:.1f} |")
    began = time.perf_counter()
    last = first + 51  # as-of dates that may be looked at, and as many as the hub has
    table = hub_table(whole, last - 158, last, progress=False)
    taken = time.perf_counter() - began
    print(
        f"\nhub export of 159 as-of dates, with the days before them from which intervals are "
        f"learned: {taken:.0f} s, {table.num_rows:,} rows"
    )


if __name__ == "__main__":
    main()
