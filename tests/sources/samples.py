"""A small table of reports and ways to write it to files."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma

import numpy as np
import pyarrow as pa
from pyarrow import feather
from pyarrow import parquet as pq

import tensortide as tt

MODES = ["place", "age", "date"]
NAMES = ["place", "age", "date", "reported", "count"]


def rows(n_days=12, seed=0):
    """Records in the order of the days on which they were reported."""
    rng = np.random.default_rng(seed)
    found = []
    for day in range(n_days):
        for date in range(max(0, day - 2), day + 1):
            for place in ("Kiel", 'Bad "Elster"', "Ulm, alt", "Gera"):
                for age in (1, 2, 3):
                    if date == day or rng.random() < 0.2:
                        value = round(10 + 5 * rng.random() + len(place) * age, 3)
                        found.append((place, age, f"2026-01-{date + 1:02d}", day, value))
    return found


def csv_text(records, separator=",", names=NAMES, newline="\n"):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=newline)
    writer.writerow(names)
    writer.writerows(records)
    return out.getvalue().encode()


def json_text(records):
    return "".join(json.dumps(dict(zip(NAMES, r, strict=True))) + "\n" for r in records).encode()


def arrow_table(records):
    import datetime as dt

    columns = list(zip(*records, strict=True))
    columns[2] = [dt.date.fromisoformat(d) for d in columns[2]]
    return pa.table(dict(zip(NAMES, columns, strict=True)))


def write(path, records):
    """Write records in the format of the name."""
    name = path.name
    if name.endswith((".parquet", ".pq")):
        pq.write_table(arrow_table(records), path, row_group_size=50)
    elif name.endswith(".feather"):
        feather.write_feather(arrow_table(records), path, compression="zstd")
    elif name.endswith(".arrow"):
        with pa.ipc.new_file(path, arrow_table(records).schema) as writer:
            writer.write_table(arrow_table(records), max_chunksize=37)
    elif name.endswith(".ipc"):
        with pa.ipc.new_stream(path, arrow_table(records).schema) as writer:
            writer.write_table(arrow_table(records), max_chunksize=37)
    else:
        separator = "\t" if ".tsv" in name else ";" if "semicolon" in name else ","
        data = json_text(records) if "json" in name else csv_text(records, separator)
        if name.endswith(".zst"):
            data = pa.Codec("zstd").compress(data, asbytes=True)
        pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
        path.write_bytes(pack.get(path.suffix, bytes)(data))
    return path


def created(path, method="gocpte", **options):
    return tt.Tracker.create(path, 2, method, modes=MODES, value="count", **options)


def by_hand(records, method="gocpte", key=3, first=1):
    """The estimator that learns the same steps in memory."""
    model = tt.OnlineCP(2, method, modes=MODES, value="count")
    days = sorted({r[key] for r in records})
    groups = [[d for d in days if d <= days[first - 1]], *([d] for d in days[first:])]
    for group in groups:
        table = arrow_table([r for r in records if r[key] in group])
        model.update(table.select([*MODES, "count"]))
    return model
