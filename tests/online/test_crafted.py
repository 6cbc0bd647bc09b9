"""A crafted file is refused with a sentence, or is a model that works: no crash, no bomb."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile

import numpy as np
import pytest

import tensortide as tt
from tests.models import fingerprint
from tests.online.crafted import KINDS, outcome, packed, sample, spoiled, stored_array


def refused(path, content, sentence="damaged"):
    path.write_bytes(content)
    with pytest.raises(tt.FileError, match=sentence) as caught:
        tt.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("stepped", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_file_of_every_kind_is_taken_and_goes_on_alike(tmp_path, kind, stepped):
    model, more = KINDS[kind]()
    if stepped:
        model.update(more[0])
    model.save(tmp_path / "m")
    loaded = tt.load(tmp_path / "m")
    assert fingerprint(loaded) == fingerprint(model)
    for each in (model, loaded):
        each.update(more[1 if stepped else 0])
    assert fingerprint(loaded) == fingerprint(model)


@pytest.mark.parametrize("seed", range(150))
def test_a_spoiled_file_is_refused_or_works(tmp_path, seed):
    rng = np.random.default_rng(seed)
    kinds = list(KINDS)
    file, members, records = sample(kinds[seed % len(kinds)], bool(rng.integers(2)))
    assert outcome(spoiled(file, members, rng), records, tmp_path / "m") in ("refused", "used")


@pytest.mark.parametrize("by", [-(2**30), 2**30, -1, 100])
def test_positions_outside_of_the_shape_are_refused(tmp_path, by):
    _, members, _ = sample("history", stepped=False)
    coords = np.lib.format.read_array(io.BytesIO(members["coords.npy"]))
    coords[:, 1] += by
    members = members | {"coords.npy": stored_array(coords)}
    refused(tmp_path / "m", packed(members), "outside of the shape")


def test_a_cell_twice_is_refused(tmp_path):
    _, members, _ = sample("history", stepped=False)
    coords = np.lib.format.read_array(io.BytesIO(members["coords.npy"]))
    coords[1] = coords[0]
    members = members | {"coords.npy": stored_array(coords)}
    refused(tmp_path / "m", packed(members), "twice")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "[]", "7", "", "\x00", '{"a": 1']
)
def test_json_that_is_no_model_is_refused(tmp_path, text):
    _, members, _ = sample("economy", stepped=False)
    refused(tmp_path / "m", packed(members | {"model.json": text.encode()}), "damaged")


@pytest.mark.parametrize("shape", ["(1099511627776,)", "(-1, 2)", "((((((((", "(2.5,)", "()"])
def test_a_header_that_claims_more_than_is_stored_is_refused(tmp_path, shape):
    _, members, _ = sample("economy", stepped=False)
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(96)
    refused(tmp_path / "m", packed(members | {"factor_0.npy": array}), "damaged")


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["zip", "bz2", "xz"]
)
@pytest.mark.parametrize("name", ["model.json", "values.npy"])
def test_a_compressed_member_is_refused_and_never_unpacked(tmp_path, monkeypatch, name, method):
    _, members, _ = sample("history", stepped=False)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as bundle:
        for other, content in members.items():
            bundle.writestr(other, content, zipfile.ZIP_STORED if other != name else method)
    opened = _watch_members(monkeypatch)
    refused(tmp_path / "m", file.getvalue(), f"{name} is compressed")
    assert name not in opened


def test_an_encrypted_member_is_refused(tmp_path):
    file, _, _ = sample("economy", stepped=False)
    content = bytearray(file)
    at = content.index(b"PK\x01\x02")
    content[at + 8] |= 1
    refused(tmp_path / "m", bytes(content), "encrypted")


def test_members_that_overlap_are_refused(tmp_path):
    _, members, _ = sample("box", stepped=False)
    content = bytearray(packed(members))
    with zipfile.ZipFile(io.BytesIO(content)) as bundle:
        sizes = {m.filename: m.file_size for m in bundle.infolist()}
    at = content.rindex(b"box.npy") - 46  # the member's line in the list at the end of the file
    assert content[at : at + 4] == b"PK\x01\x02"
    whole = struct.pack("<II", len(content) - 40, len(content) - 40)
    assert content[at + 24 : at + 28] == struct.pack("<I", sizes["box.npy"])
    content[at + 20 : at + 28] = whole
    refused(tmp_path / "m", bytes(content), "larger than the file")


def test_unknown_members_are_never_opened(tmp_path, monkeypatch):
    file, members, _ = sample("economy", stepped=False)
    (tmp_path / "m").write_bytes(file)
    state = fingerprint(tt.load(tmp_path / "m"))
    more = members | {"bomb.npy": b"no array", "memory/x.npy": b"", "factor_x.npy": b""}
    (tmp_path / "m").write_bytes(packed(more))
    opened = _watch_members(monkeypatch)
    assert fingerprint(tt.load(tmp_path / "m")) == state
    assert set(opened) == set(members)


def _watch_members(monkeypatch):
    opened = []
    read = zipfile.ZipFile.read

    def watched(self, member, *rest):
        opened.append(getattr(member, "filename", member))
        return read(self, member, *rest)

    monkeypatch.setattr(zipfile.ZipFile, "read", watched)
    return opened


def test_a_member_twice_is_refused(tmp_path):
    _, members, _ = sample("economy", stepped=False)
    file = io.BytesIO(packed(members))
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(file, "a") as bundle:
        bundle.writestr("factor_0.npy", members["factor_0.npy"])
    refused(tmp_path / "m", file.getvalue(), "twice")


def changed(members, path, value):
    facts = json.loads(members["model.json"])
    holder = facts
    for key in path[:-1]:
        holder = holder[key]
    if value is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return packed(members | {"model.json": json.dumps(facts).encode()})


NUCLEAR = {"kind": "Penalty", "prox": {"kind": "Nuclear", "weight": 1.0}}


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("economy", ("version",), "2"),
        ("economy", ("shape",), "abc"),
        ("economy", ("shape", 0), -6),
        ("economy", ("shape", 0), 6.0),
        ("economy", ("rank",), True),
        ("economy", ("n_steps",), float("nan")),
        ("economy", ("n_steps",), -1),
        ("economy", ("grown_last",), 3),
        ("economy", ("grown_last",), "day"),
        ("economy", ("seen",), []),
        ("economy", ("seen", "base"), float("inf")),
        ("economy", ("seen", "base"), -1.0),
        ("economy", ("seen", "grown"), "many"),
        ("economy", ("seen", "full"), [1, 1]),
        ("economy", ("seen", "full"), [9, 99, 9]),
        ("economy", ("modes",), ["a", "b"]),
        ("economy", ("modes",), ["place", "day", "day"]),
        ("economy", ("modes", 0), 7),
        ("olstec", ("modes", 0), "\ud800"),
        ("economy", ("label_kinds", 0), "position"),
        ("economy", ("label_kinds", 0), "colour"),
        ("economy", ("label_kinds", 1), "text"),
        ("economy", ("text_labels", "0", 0), 7),
        ("economy", ("text_labels", "0", 0), None),
        ("economy", ("text_labels", "0", 0), "p1"),
        ("economy", ("text_labels", "0", 0), "\ud800"),
        ("economy", ("params",), None),
        ("economy", ("params", "value"), ...),
        ("economy", ("params", "value"), 7),
        ("economy", ("params", "value"), "\ud800"),
        ("economy", ("params", "colour"), "red"),
        ("economy", ("params", "rank"), 3),
        ("economy", ("params", "modes"), ["place", "delay", "day"]),
        ("economy", ("params", "seed"), -1),
        ("economy", ("params", "threads"), 0),
        ("economy", ("params", "absent"), "perhaps"),
        ("economy", ("params", "combine"), "add"),
        ("economy", ("params", "loss"), {"kind": "Ridge", "weight": 1.0}),
        ("economy", ("params", "loss"), {"kind": "Absolute"}),
        ("economy", ("params", "loss"), {"kind": "Huber", "delta": 0}),
        ("economy", ("params", "penalties"), [["colour", []]]),
        ("economy", ("params", "penalties"), [["place", [{"kind": "Smooth"}]]]),
        ("economy", ("params", "penalties"), [["day", [{"kind": "Fixed", "labels": ["x"]}]]]),
        ("economy", ("params", "penalties"), [["day", [{"kind": "Poisson"}]]]),
        ("economy", ("params", "method"), "gocpte"),
        ("economy", ("params", "method"), {"kind": "Tracking", "name": "gocpte"}),
        ("economy", ("params", "method", "name"), "mine"),
        ("economy", ("params", "method", "keeps_history"), True),
        ("economy", ("params", "method", "limits"), {"kind": "Limits", "one_mode": True}),
        ("economy", ("params", "method", "terms"), [1]),
        ("economy", ("params", "method", "alpha"), 0.5),
        ("economy", ("params", "method", "alpha"), {"kind": "constant", "weight": "x"}),
        ("economy", ("params", "method", "alpha"), {"kind": "Recipe"}),
        ("economy", ("params", "method", "sweeps"), 0),
        ("economy", ("params", "method", "penalty"), NUCLEAR),
        ("economy", ("params", "method", "past_decay"), 0.5),
        ("mast", ("params", "method", "penalty"), None),
        ("mast", ("params", "method", "penalty", "growth"), 0.5),
        ("mast", ("params", "method", "penalty", "prox"), {"kind": "Ridge", "weight": 1.0}),
        ("olstec", ("params", "method", "step"), 0.1),
        ("olstec", ("params", "method", "resolve"), False),
        ("olstec", ("n_steps",), 1),
        ("olstec", ("grown_last",), 0),
        ("rlst", ("grown_last",), 0),
        ("rlst", ("params", "method", "by_svd"), True),
        ("counts", ("params", "loss"), {"kind": "Bernoulli"}),
    ],
)
def test_odd_json_is_refused_when_it_is_read(tmp_path, kind, path, value):
    _, members, _ = sample(kind, stepped=True)
    refused(tmp_path / "m", changed(members, path, value))


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        ("economy", "factor_0", lambda a: a[:-1]),
        ("economy", "factor_0", lambda a: a.astype("f4")),
        ("economy", "factor_0", lambda a: a.astype(">f8")),
        ("economy", "factor_0", lambda a: a * np.nan),
        ("economy", "gram_total", lambda a: a[:1]),
        ("economy", "gram_sums", lambda a: a * np.inf),
        ("economy", "labels_1", lambda a: a.astype(float)),
        ("economy", "labels_1", lambda a: a * 0),
        ("economy", "labels_1", lambda a: a.astype("M8[us]")),
        ("economy", "seen_registers", lambda a: a[:9]),
        ("economy", "seen_registers", lambda a: a + 99),
        ("economy", "dispersion", lambda a: -1.0 - a),
        ("history", "values", lambda a: a[:-1]),
        ("history", "values", lambda a: a * np.nan),
        ("history", "weights", lambda a: np.ones(3)),
        ("history", "coords", lambda a: a.astype(float)),
        ("history", "coords", lambda a: a[:, :2]),
        ("counts", "values", lambda a: -1.0 - a),
        ("weights", "weights", lambda a: -1.0 - a),
        ("box", "box", lambda a: a[:-1]),
        ("box", "box", lambda a: a / 0.0),
        ("box", "box_axes", lambda a: a * 0),
        ("box", "box_axes", lambda a: a[:2]),
        ("box", "box_axes", lambda a: a - 1),
        ("olstec", "memory_rhs_0", lambda a: a[:-1]),
        ("olstec", "memory_gram_0", lambda a: a * np.nan),
        ("rlst", "memory_sums_2", lambda a: a[:, :-1]),
        ("sdt", "memory_sizes_2", lambda a: a[None]),
        ("cp_stream", "memory_past", lambda a: a[:1]),
    ],
)
def test_arrays_that_do_not_fit_are_refused_when_they_are_read(tmp_path, kind, name, change):
    _, members, _ = sample(kind, stepped=True)
    member = f"{name}.npy"
    with np.errstate(all="ignore"):
        array = change(np.lib.format.read_array(io.BytesIO(members[member])))
    refused(tmp_path / "m", packed(members | {member: stored_array(array)}))
    if name != "dispersion":  # which files of earlier versions do not have
        refused(tmp_path / "m", packed({n: c for n, c in members.items() if n != member}))
