"""Real data for experiments, read from files that are not part of the package.

The folder is found by the environment variable ``TENSORTIDE_DATA``, else at ``../shared/data``.  A
file that is absent or other than expected is refused with what it is and where it comes from.

>>> data = synthetic(shape=(4, 3, 5), rank=2, seed=1)
>>> data.name, data.modes, data.values.shape
('synthetic', ('mode_0', 'mode_1', 'time'), (4, 3, 5))
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tensortide import simulate
from tensortide.arrays import AnyArray, Floats
from tensortide.errors import FileError, NoDataError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """An array with labels: one per mode; NaN is missing.  The last mode is the one that grows."""

    name: str
    values: Floats
    modes: tuple[str, ...]
    labels: dict[str, AnyArray]
    source: str
    licence: str

    def __repr__(self) -> str:
        """Show what it is, not all its numbers."""
        shape = " x ".join(f"{n} {m}" for m, n in zip(self.modes, self.values.shape, strict=True))
        return f"Dataset({self.name!r}, {shape})"

    def records(self, value: str = "value") -> dict[str, AnyArray]:
        """Return the known cells as a dict of columns, which `OnlineCP` takes."""
        cells = np.nonzero(~np.isnan(self.values))
        columns: dict[str, AnyArray] = {
            mode: self.labels[mode][at] for mode, at in zip(self.modes, cells, strict=True)
        }
        return columns | {value: self.values[cells]}


@dataclass(frozen=True, eq=False, kw_only=True)
class Records:
    """A table of records, as pyarrow has it."""

    name: str
    table: pa.Table
    modes: tuple[str, ...]
    value: str | None
    source: str
    licence: str


@dataclass(frozen=True)
class _File:
    what: str
    source: str
    licence: str
    checksum: str = field(repr=False)


_RKI = "Robert Koch-Institut, COVID-19-Hospitalisierungen in Deutschland; hub by KITmetricslab"
_JHU = (
    "COVID-19 Data Repository by CSSE at Johns Hopkins University; hospital series: COVID Tracking "
    "Project"
)
_FILES = {
    "de_covid_hosp_triangle.parquet": _File(
        "German COVID-19 hospitalisations by state, age, date and reporting delay",
        _RKI,
        "CC BY 4.0",
        "d3b4a1bb57754b3489c128bdab3186e5f9569d00f96aab79c9a0fed4b54ad948",
    ),
    "de_covid_hosp_final.parquet": _File(
        "settled German COVID-19 hospitalisations by state, age and date",
        _RKI,
        "CC BY 4.0",
        "c29cda97889f27765135b04ff6b750ec9d619db2ee6de4922792cf6e4e37bc40",
    ),
    "jhu_covid_us_versions.npz": _File(
        "US COVID-19 counts by state, category, date and delay, as published day by day",
        _JHU,
        "CC BY 4.0 (JHU); Apache-2.0 (hospital series)",
        "a6cfd3446093468bab734b2250e28b0e79fd16573b8d9be376d1e74a6f060c60",
    ),
    "jhu_covid_us_revisions.parquet": _File(
        "US COVID-19 counts as a log of first values and corrections",
        _JHU,
        "CC BY 4.0 (JHU); Apache-2.0 (hospital series)",
        "3e970d47b072c52e07545f630e2ee3d50aa4f41cf236ff68bda97e2f7ea92544",
    ),
    "gcss_regions_daily_2020.npz": _File(
        "Google COVID-19 search trends of 422 symptoms in 62 US regions, daily, 2020",
        "google-research/open-covid-19-data",
        "Google Terms of Service (not an open licence)",
        "dce7212f027b2042300c31358f63b02aa5c0a773d7f7b9c2dd86f0eb9ffa9cca",
    ),
    "orl_faces.npz": _File(
        "400 face images of 112 x 92 pixels",
        "Olivetti Research Laboratory (F. Samaria and A. Harter, 1994)",
        "credit asked; no formal licence",
        "66d943186e1cb51e94b8006011aad5bb8a0f2680c857181f8fecc042331110f9",
    ),
    "indian_pines.npz": _File(
        "AVIRIS hyperspectral image of 145 x 145 pixels in 200 bands",
        "Purdue University research repository, publication 1947 (package tensorly 0.10)",
        "BSD-3-Clause",
        "99aa8e312f22d50a3f753e06c35aad4da1404a8cb099f617f187497524937d9f",
    ),
    "us_flights_2001h1.parquet": _File(
        "3 million US flights of January to June 2001",
        "US Bureau of Transportation Statistics (package vega-datasets 3.2.1)",
        "US government data, terms not stated",
        "7313f10a206d7e25067efe69c6d0f63afd33570cb31ce461f9c8b2a5a346337f",
    ),
    "us_baby_names.parquet": _File(
        "first names given in the USA, 1880 to 2010, by year and sex",
        "US Social Security Administration (repository wesm/pydata-book)",
        "US government data",
        "abb7184f181fd29939f1fa97692c7a79a424af137ef6c12c47574729ec845490",
    ),
}


def folder() -> Path:
    """Return where the files are looked for."""
    given = os.environ.get("TENSORTIDE_DATA")
    if given:
        return Path(given)
    beside = [Path.cwd().parent / "shared" / "data"]
    beside += [parent / "shared" / "data" for parent in Path(__file__).resolve().parents[3:4]]
    return next((place for place in beside if place.is_dir()), beside[0])


def jhu_covid(delays: int = 8) -> Dataset:
    """US states x (new cases, new deaths, patients in hospital) x delay x date, as published.

    The value of date d at delay k is what the version of day d + 1 + k said: real corrections.
    51 x 3 x 8 x 209, the paper's shape.
    """
    file, arrays = _arrays("jhu_covid_us_versions.npz")
    increment, level = arrays["increment"], arrays["level"]
    missing = np.iinfo(np.int32).min
    stacked = np.stack([increment[:, 0], increment[:, 1], level[:, 3]], axis=1)[..., :delays]
    values = np.where(stacked == missing, np.nan, stacked).swapaxes(2, 3)
    labels = {
        "state": arrays["state"],
        "category": np.array(["new cases", "new deaths", "in hospital"]),
        "delay": arrays["delay"][:delays].astype(np.int64),
        "date": arrays["date"].astype("datetime64[D]"),
    }
    return _dataset("jhu_covid", values, labels, file)


def jhu_covid_revisions() -> Records:
    """Return the same data as a log: each first value and each correction, with its day `as_of`."""
    modes = ("category", "state", "date")
    return _records("jhu_covid_revisions", "jhu_covid_us_revisions.parquet", modes, "value")


def de_covid_hosp() -> Records:
    """Return the German reporting triangle: location, age_group, date, delay; count (added)."""
    modes = ("location", "age_group", "date", "delay")
    return _records("de_covid_hosp", "de_covid_hosp_triangle.parquet", modes, "count")


def de_covid_hosp_final() -> Records:
    """Return the settled counts of the same dates: count_delay40 and count_final."""
    modes = ("location", "age_group", "date")
    return _records("de_covid_hosp_final", "de_covid_hosp_final.parquet", modes, "count_final")


def de_covid_hosp_weekly() -> Dataset:
    """Return the German triangle by week: 16 states x 6 ages x 7 weekly delays x 104 weeks.

    A cell of week w and delay k holds what was reported in week w + k for dates of week w.
    The file has delays to 40 days, so there are 7 weekly delays.
    """
    data = de_covid_hosp()
    counts = data.table["count"].to_numpy().astype(float).reshape(16, 6, 730, 41)[:, :, :728]
    days = np.arange(728)[:, None] + np.arange(41)[None, :]
    weeks, delays = np.arange(728) // 7, days // 7 - (np.arange(728) // 7)[:, None]
    values = np.zeros((16, 6, 7, 104))
    for day in range(728):
        for delay in range(41):
            values[:, :, delays[day, delay], weeks[day]] += counts[:, :, day, delay]
    labels = {
        "location": _distinct(data.table, "location"),
        "age_group": _distinct(data.table, "age_group"),
        "delay": np.arange(7),
        "week": np.datetime64("2021-04-06") + 7 * np.arange(104),
    }
    return _dataset("de_covid_hosp_weekly", values, labels, data)


def de_covid_hosp_cumulative() -> Dataset:
    """Return the German counts as they were known: stratum x delay x date, complete.

    96 strata (state and age) x 41 days of delay x 730 dates: what the table of day date + delay
    said, so values are corrected along the delays.
    """
    data = de_covid_hosp()
    counts = data.table["count"].to_numpy().astype(float).reshape(96, 730, 41)
    states, ages = (_distinct(data.table, c) for c in ("location", "age_group"))
    labels = {
        "stratum": np.array([f"{state} {age}" for state in states for age in ages]),
        "delay": np.arange(41),
        "date": np.datetime64("2021-04-06") + np.arange(730),
    }
    values = np.ascontiguousarray(counts.cumsum(axis=2).swapaxes(1, 2))
    return _dataset("de_covid_hosp_cumulative", values, labels, data)


def orl_faces() -> Dataset:
    """Return 400 face images: row x column x shot, complete."""
    file, arrays = _arrays("orl_faces.npz")
    values = arrays["images"].astype(float)
    return _positions("orl_faces", values, ("row", "column", "shot"), file)


def indian_pines() -> Dataset:
    """Return a hyperspectral image: row x column x band, complete."""
    file, arrays = _arrays("indian_pines.npz")
    values = arrays["cube"].astype(float)
    return _positions("indian_pines", values, ("row", "column", "band"), file)


def gcss(*, complete: bool = False) -> Dataset:
    """Search trends: region x symptom x date, 72 % missing.

    With `complete`, the regions with the most complete series and the symptoms that are
    complete in all of them, chosen so that the box is largest: 11 x 143 x 343, nothing missing.
    """
    file, arrays = _arrays("gcss_regions_daily_2020.npz")
    raw = arrays["hundredths"]
    values = np.where(raw == 65535, np.nan, raw / 100.0)
    regions, symptoms = np.arange(raw.shape[0]), np.arange(raw.shape[1])
    if complete:
        known = np.asarray(~np.isnan(values).any(axis=2))
        order = np.argsort(-known.sum(axis=1), kind="stable")
        boxes = [known[order[: k + 1]].all(axis=0) for k in range(len(order))]
        best = int(np.argmax([(k + 1) * box.sum() for k, box in enumerate(boxes)]))
        regions, symptoms = np.sort(order[: best + 1]), np.flatnonzero(boxes[best])
    labels = {
        "region": arrays["region"][regions],
        "symptom": arrays["symptom"][symptoms],
        "date": arrays["date"].astype("datetime64[D]"),
    }
    chosen = values[np.ix_(regions, symptoms)]
    return _dataset("gcss", chosen, labels, file)


def us_flights() -> Records:
    """3 million flights, one record each: origin, destination, minute, delay_min, distance_mi."""
    modes = ("origin", "destination", "minute")
    return _records("us_flights", "us_flights_2001h1.parquet", modes, None)


def us_baby_names() -> Records:
    """Names by year and sex: name, sex, year; count.  An absent cell means 0 to 4."""
    modes = ("name", "sex", "year")
    return _records("us_baby_names", "us_baby_names.parquet", modes, "count")


def synthetic(
    shape: Sequence[int] = (50, 50, 500), rank: int = 5, *, seed: int = 0, noise: float = 0.0
) -> Dataset:
    """Return the paper's synthetic tensor: factors uniform in [0, 1], 50 x 50 x 500, rank 5."""
    values = simulate.low_rank(shape, rank, seed=seed, noise=noise).dense()
    names = (*(f"mode_{m}" for m in range(len(shape) - 1)), "time")
    about = _File("simulated", "simulated (section 5.3 of the paper)", "none needed", "")
    return _positions("synthetic", values, names, about)


def _positions(name: str, values: Floats, modes: tuple[str, ...], about: _File) -> Dataset:
    labels = {m: np.arange(n) for m, n in zip(modes, values.shape, strict=True)}
    return _dataset(name, values, labels, about)


def _dataset(
    name: str, values: Floats, labels: dict[str, AnyArray], about: _File | Records
) -> Dataset:
    return Dataset(
        name=name, values=values, modes=tuple(labels), labels=labels, source=about.source,
        licence=about.licence,
    )  # fmt: skip


def _distinct(table: pa.Table, column: str) -> AnyArray:
    """Return the labels of a column in the order in which they first appear."""
    import pyarrow.compute as pc

    return np.array(pc.unique(table[column]).to_pylist())


def _find(name: str) -> tuple[_File, Path]:
    file, path = _FILES[name], folder() / name
    if not path.is_file():
        raise NoDataError(
            f"{path}: there is no such file. It holds {file.what} (source: {file.source}; licence: "
            f"{file.licence}); set TENSORTIDE_DATA to the folder that has it."
        )
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    if checksum != file.checksum:
        raise FileError(
            f"{path}: is not the file that this version knows (sha256 {checksum[:12]}..., expected "
            f"{file.checksum[:12]}...); results would not be comparable."
        )
    return file, path


def _arrays(name: str) -> tuple[_File, dict[str, Any]]:
    file, path = _find(name)
    with np.load(path) as bundle:
        return file, dict(bundle)


def _records(name: str, file: str, modes: tuple[str, ...], value: str | None) -> Records:
    import pyarrow.parquet as pq

    about, path = _find(file)
    return Records(
        name=name, table=pq.read_table(path), modes=modes, value=value, source=about.source,
        licence=about.licence,
    )  # fmt: skip
