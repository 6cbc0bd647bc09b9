"""Save, load, step equals step; damaged files are refused with a sentence."""

from __future__ import annotations

import datetime as dt
import json
import os
import zipfile

import numpy as np
import pytest

import tensortide as tt
from tensortide.online import saved as checkpoint
from tests.models import batches, fingerprint, fitted


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("gocpt", {}),
        ("gocpt", {"fibres": False}),
        ("gocpte", {}),
        ("gocpte", {"fibres": True}),
        (tt.gocpte(sweeps=2, strategy="imputed", forgetting=0.9), {}),
        (tt.gocpt(forgetting=0.8), {}),
        ("gocpt", {"prior": "paper"}),
        ("gocpte", {"prior": "paper"}),
        (tt.gocpte(alpha=tt.per_size(3, cap=1), sweeps=2, forgetting=0.9), {"prior": "paper"}),
        (tt.gocpt(alpha=0.3, strategy="imputed", beta=1e-3), {"prior": "paper"}),
        (tt.gocpt(beta=tt.per_size(0.5)), {"prior": "paper"}),
    ],
)
def test_save_load_update_equals_update(tmp_path, method, options):
    model = fitted(method, **options)
    model.update(batches()[1])
    model.save(tmp_path / "model.tide")
    loaded = tt.load(tmp_path / "model.tide")
    assert fingerprint(loaded) == fingerprint(model)
    for batch in batches()[2:5]:
        model.update(batch)
        loaded.update(batch)
    assert fingerprint(loaded) == fingerprint(model)
    assert loaded.get_params()["rank"] == model.rank


def test_every_kind_of_label_comes_back(tmp_path):
    records = {
        "text": ["ä", "b\n", ""],
        "int": [-5, 2**40, 0],
        "flag": [True, False, True],
        "date": [dt.date(2020, 1, d) for d in (1, 2, 3)],
        "time": [dt.datetime(2020, 1, 1, h) for h in (1, 2, 3)],
        "value": [1.0, 2.0, 3.0],
    }
    model = tt.OnlineCP(1).fit(records)
    model.save(tmp_path / "m")
    loaded = tt.load(tmp_path / "m")
    for name in model.labels_:
        np.testing.assert_array_equal(loaded.labels_[name], model.labels_[name])
    cells = {k: v for k, v in records.items() if k != "value"}
    np.testing.assert_array_equal(loaded.predict(cells), model.predict(cells))


def test_models_of_positions_are_saved_too(tmp_path):
    x = tt.simulate.low_rank((4, 5, 6), 2, seed=0).dense()
    model = tt.OnlineCP(2, "gocpte").fit(x[..., :4])
    model.save(tmp_path / "m")
    loaded = tt.load(tmp_path / "m")
    model.update(x[..., 4])
    loaded.update(x[..., 4])
    assert fingerprint(loaded) == fingerprint(model)


def refusal(path):
    try:
        tt.load(path)
    except tt.FileError as error:
        return str(error)
    return None


def test_damage_anywhere_is_refused_with_a_sentence(tmp_path):
    path = tmp_path / "m.tide"
    fitted("gocpt").save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [b"", b"hello", whole[: len(whole) // 2], whole[:-1], whole[10:]]
    for _ in range(60):
        broken = bytearray(whole)
        at = int(rng.integers(0, len(whole)))
        broken[at] ^= 1 << int(rng.integers(0, 8))
        damaged.append(bytes(broken))
    refused = 0
    state = fingerprint(tt.load(path))
    for content in damaged:
        path.write_bytes(content)
        sentence = refusal(path)
        if sentence is None:  # a flipped bit in a field that means nothing, such as a time stamp
            assert fingerprint(tt.load(path)) == state
        else:
            assert str(path) in sentence
            refused += 1
    assert refused > 40


def test_newer_and_foreign_files_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "m.tide"
    monkeypatch.setattr(checkpoint, "VERSION", 99)
    fitted().save(path)
    monkeypatch.undo()
    with pytest.raises(tt.FileError, match="format version 99.*upgrade"):
        tt.load(path)
    with zipfile.ZipFile(path, "w") as bundle:
        bundle.writestr("model.json", json.dumps({"format": "something else"}))
    with pytest.raises(tt.FileError, match="not a Tensortide model"):
        tt.load(path)
    with pytest.raises(tt.FileError, match="no such file"):
        tt.load(tmp_path / "absent")
    with pytest.raises(tt.FileError, match="cannot be read"):
        tt.load(tmp_path)


def test_no_array_of_objects_is_ever_unpickled(tmp_path):
    path = tmp_path / "m.tide"
    model = fitted()
    model.save(path)
    evil = tmp_path / "evil.npy"
    np.save(evil, np.array([object()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "bad", "w") as new:
        for name in old.namelist():
            new.writestr(name, evil.read_bytes() if name == "factor_0.npy" else old.read(name))
    with pytest.raises(tt.FileError, match="damaged"):
        tt.load(tmp_path / "bad")


def test_a_failed_save_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "m.tide"
    model = fitted()
    model.save(path)
    before = path.read_bytes()

    def full_disk(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(tt.FileError, match="No space left"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(tt.FileError, match="cannot be written"):
        model.save(tmp_path / "no such folder" / "m")


def test_what_cannot_be_saved_says_why(tmp_path):
    with pytest.raises(tt.InputError, match="function of your own"):
        fitted(tt.gocpte(alpha=lambda now: 0.5), prior="paper").save(tmp_path / "m")
    with pytest.raises(tt.InputError, match="Generator"):
        fitted(seed=np.random.default_rng(0)).save(tmp_path / "m")
