"""The members of a model's file: only those that are known, none larger than what is stored.

A model is written without compression, so whatever a file claims, reading it takes no more
memory than it has bytes.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensortide.arrays import AnyArray

FACTS = "model.json"
_KNOWN = re.compile(
    r"(factor_\d+|precision_\d+|labels_\d+|fibre_(keys|numbers)|memory_[a-z]+(_\d+)?|gram_(total|error|sums)|seen_registers"
    r"|dispersion|box|box_axes|coords|values|weights)\.npy"
)


def read_facts(bundle: zipfile.ZipFile) -> dict[str, Any]:
    """Return the JSON part of a file; numbers in it are finite."""
    check_stored(bundle)
    facts = json.loads(bundle.read(FACTS), parse_constant=_refuse)
    if not isinstance(facts, dict):
        raise ValueError(f"{FACTS} holds no object")
    return facts


def read_arrays(bundle: zipfile.ZipFile) -> dict[str, AnyArray]:
    """Return the arrays of a file by name."""
    return {
        member.filename.removesuffix(".npy"): _array(bundle, member) for member in _known(bundle)
    }


def check_stored(bundle: zipfile.ZipFile) -> None:
    """Refuse members that are compressed, encrypted, there twice, or larger than the file."""
    members = [bundle.getinfo(FACTS), *_known(bundle)]
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise ValueError("a member is there twice")
    for member in members:
        stored = member.compress_type == zipfile.ZIP_STORED
        if not stored or member.flag_bits & 1 or member.compress_size != member.file_size:
            raise ValueError(f"{member.filename} is compressed or encrypted, as no model is")
    assert bundle.fp is not None
    if sum(member.file_size for member in members) > bundle.fp.seek(0, io.SEEK_END):
        raise ValueError("its members are larger than the file")


def _known(bundle: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    return (member for member in bundle.infolist() if _KNOWN.fullmatch(member.filename))


def _array(bundle: zipfile.ZipFile, member: zipfile.ZipInfo) -> AnyArray:
    """Return an array whose header agrees with the bytes that are there."""
    content = io.BytesIO(bundle.read(member))
    version = np.lib.format.read_magic(content)
    if version != (1, 0):
        raise ValueError(f"{member.filename} is not in the form that a model has")
    shape, _, dtype = np.lib.format.read_array_header_1_0(content)
    stored = member.file_size - content.tell()
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != stored or min(shape, default=0) < 0:
        raise ValueError(f"the header of {member.filename} does not agree with its content")
    content.seek(0)
    return np.asarray(np.lib.format.read_array(content, allow_pickle=False))


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} stands in {FACTS}, where numbers are finite")
