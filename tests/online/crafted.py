"""Files of models of many kinds, spoiled at random: bytes, JSON values, arrays, members."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path

import numpy as np

import tensortide as tt
from tests.models import MODES, batches

X = tt.simulate.low_rank((4, 5, 8), 2, seed=0, noise=0.1).dense()
SLICES = (X[..., :5], X[..., 5:6], X[..., 6:7])
CELLS = [[0, 0, 0], [3, 4, 4]]
ODD = [None, True, -1, 0, 1, 3, 0.5, 1e308, -1e308, 2**30, 2**70, "", "text", [], [0], {}]
ODD += [float("nan"), float("inf"), [[0]], {"kind": "Ridge"}, {"kind": "Recipe"}, "gocpt"]
ODD += [{"kind": "constant", "weight": "x"}, {"kind": "Nuclear", "weight": 1.0}, "\ud800", [None]]


def _tables(method, **options):
    model = tt.OnlineCP(2, method, modes=MODES, value="count", **options)
    return model.fit(batches()[0], max_sweeps=3), batches()[1:3]


def _counts(method, **options):
    first, *more = ({**b, "count": np.round(np.abs(b["count"]) * 9)} for b in batches()[:3])
    model = tt.OnlineCP(2, method, modes=MODES, value="count", **options)
    return model.fit(first, max_sweeps=3), more


def _arrays(method):
    return tt.OnlineCP(2, method).fit(SLICES[0], max_sweeps=3), SLICES[1:]


def _weighted():
    rng = np.random.default_rng(0)
    coords = np.argwhere(rng.random((4, 5, 6)) < 0.6)
    weights = rng.random(len(coords))
    first = tt.Batch(coords, rng.random(len(coords)), weights=weights, shape=(4, 5, 6))
    more = [tt.Batch([[0, 0, n]], [1.0], weights=[0.5]) for n in (6, 7)]
    return tt.OnlineCP(2, "gocpt").fit(first, max_sweeps=3), more


PENALTIES = {"day": [tt.smooth(1)], "place": [tt.fixed(["p0"]), tt.nonnegative()]}
KINDS = {
    "economy": lambda: _tables("gocpte"),
    "history": lambda: _tables("gocpt"),
    "forgetting": lambda: _tables(tt.gocpt(forgetting=0.8)),
    "fibres": lambda: _tables("gocpte", fibres=True),
    "schedule": lambda: _tables(tt.gocpte(alpha=tt.per_size(3, cap=1), sweeps=2), prior="paper"),
    "counts": lambda: _counts("gocpt", loss="poisson", penalties=PENALTIES),
    "huber": lambda: _tables("gocpte", loss=tt.losses.Huber(2.0), penalties={0: tt.l1(0.1)}),
    "zeros": lambda: _counts("gocpt", absent="zero", combine="add", duplicates="sum"),
    "box": lambda: _arrays("gocpt"),
    "weights": _weighted,
} | {
    name: lambda name=name: _arrays(name)
    for name in ("rlst", "sdt", "olstec", "online_cpd", "online_sgd", "cp_stream", "mast", "em_als")
}


@cache
def sample(kind, stepped):
    """A whole file, its members, and the records that come next."""
    model, more = KINDS[kind]()
    if stepped:
        model.update(more[0])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tide"
        model.save(path)
        file = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(file)) as bundle:
        members = {name: bundle.read(name) for name in bundle.namelist()}
    return file, members, more[1 if stepped else 0]


def packed(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as bundle:
        for name, content in members.items():
            bundle.writestr(name, content)
    return file.getvalue()


def stored_array(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


def spoiled(file, members, rng):
    """Return a file with one to three things wrong."""
    how = rng.integers(10)
    if how == 0:
        return _spoil_bytes(file, rng)
    whole, members = members, dict(members)
    for _ in range(rng.integers(1, 4)):
        name = str(rng.choice(sorted(members)))
        if how <= 4:
            members["model.json"] = _spoil_json(members["model.json"], rng)
        elif how <= 7:
            if name != "model.json":
                members[name] = _spoil_array(whole[name], rng)
        elif how == 8:
            members[name] = _spoil_bytes(members[name], rng)
        elif rng.random() < 0.5 and len(members) > 2:
            del members[name]
        else:
            members[name] = members[str(rng.choice(sorted(members)))]
    return packed(members)


def _spoil_bytes(content, rng):
    content = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(content) + 1))
        how = rng.integers(4)
        if how == 0:
            del content[at:]
        elif how == 1:
            content[at:at] = rng.bytes(int(rng.integers(1, 9)))
        elif how == 2:
            del content[at : at + int(rng.integers(1, 9))]
        else:
            content[at : at + 1] = rng.bytes(1)
    return bytes(content)


def _spoil_json(content, rng):
    facts = json.loads(content)
    places = list(_places(facts, ()))
    # lists of labels are long: what steers the model is spoiled as often as they are
    steering = [p for p in places if "text_labels" not in p]
    path = (places if rng.random() < 0.1 else steering)[int(rng.integers(len(steering)))]
    holder = facts
    for key in path[:-1]:
        holder = holder[key]
    key = path[-1]
    how = rng.integers(8)
    odd = copy.deepcopy(ODD[int(rng.integers(len(ODD)))])
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder[key], list):
        holder[key].append(odd)
    elif how == 1 and isinstance(holder[key], dict):
        holder[key][str(rng.choice(["kind", "grown", "extra", "weight"]))] = odd
    elif how == 2:
        holder[key] = [holder[key]]
    elif how == 3 and isinstance(holder[key], int | float):
        holder[key] += int(rng.integers(-3, 4))
    elif how == 4 and path[-1] == "kind":
        holder[key] = str(rng.choice(["Recipe", "Tracking", "Fixed", "Poisson", "density", "x"]))
    elif how == 5 and isinstance(holder[key], str):
        words = ["rlst", "mast", "olstec", "zero", "add", "count", "sum", "position", "integer"]
        holder[key] = str(rng.choice([*words, "date", "text", "imputed", "rows", "p1"]))
    elif key in ("sweeps", "inner"):  # as many as it says are made: that is no damage
        holder[key] = 2
    else:
        holder[key] = odd
    return json.dumps(facts).encode()


def _places(part, path):
    pairs = part.items() if isinstance(part, dict) else enumerate(part)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from _places(value, (*path, key))


def _spoil_array(content, rng):
    array = np.lib.format.read_array(io.BytesIO(content)).copy()
    how = rng.integers(9)
    if how <= 3 and array.size:
        flat = array.reshape(-1).view(np.int64 if array.dtype.kind in "mM" else array.dtype)
        odd = [
            -1,
            0,
            1,
            -3.5,
            7,
            40,
            2**7,
            2**30,
            -(2**30),
            2**62,
            np.nan,
            np.inf,
            -np.inf,
            1e300,
            1e-300,
        ]
        for at in rng.integers(flat.size, size=int(rng.integers(1, 4))):
            value = odd[int(rng.integers(len(odd)))]
            with np.errstate(all="ignore"):
                flat[at] = np.array(float(value)).astype(flat.dtype)
    elif how == 4:
        kinds = ["f4", "i8", "i4", "u1", ">f8", "c16", "O", "U3", "M8[us]", "M8[D]", "?", "f8"]
        with warnings.catch_warnings(action="ignore"):
            array = array.astype(str(rng.choice(kinds)))
    elif how == 5:
        array = array[: len(array) // 2] if array.ndim else array[None]
    elif how == 6:
        array = np.asfortranarray(array) if rng.random() < 0.5 else array.T
    elif how == 7:
        array = array[None] if rng.random() < 0.5 else array.reshape(-1)
    else:
        stored = stored_array(array)
        shape = str(rng.choice(["(-1, 2)", "(1099511627776,)", "(4096, 4096, 4096)", "((((", "()"]))
        return (
            stored[:10]
            + stored[10:128].replace(str(array.shape).encode(), shape.encode())
            + (stored[128:])
        )
    return stored_array(array)


def outcome(file, records, path):
    """Load and use a file: refused, or a model on which everything is done or refused.

    Raises what is no error of the package.
    """
    path.write_bytes(file)
    with warnings.catch_warnings(action="ignore"):
        try:
            model = tt.load(path)
        except tt.FileError as error:
            return "refused" if str(path) in str(error) else "refused without the file's name"
        cells = records if isinstance(records, dict) else CELLS
        model.save(path)
        tt.load(path)
        for use in (
            lambda: model.predict(cells, unknown="nan"),
            lambda: model.surprise(records),
            lambda: model.update(records),
            lambda: model.predict(cells, unknown="nan"),
            lambda: model.change_rank(3),
            lambda: model.copy().retire(0, [next(iter(model.labels_.values())).tolist()[0]]),
            lambda: (model.labels_, model.n_entries_, repr(model)),
            lambda: (model.save(path), tt.load(path)),
        ):
            with contextlib.suppress(tt.TensortideError):
                use()
    return "used"
