"""Checksums of what the ledger says: a changed bit, a lost line and a lost end are all seen."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

FIRST = "0" * 32  # what the first batch is linked to


def link(before: str, row: Sequence[Any], bad: Iterable[Sequence[Any]]) -> str:
    """Return the link of a batch: the hash of the one before, of its row and its bad records.

    >>> first = link(FIRST, [1, "monday"], [])
    >>> link(first, [2, "tuesday"], []) == link(FIRST, [2, "tuesday"], [])
    False
    """
    text = json.dumps([before, list(row), [list(record) for record in bad]])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def row_sum(row: Sequence[Any]) -> int:
    """Return a checksum of one row of a table."""
    return zlib.crc32(json.dumps(list(row)).encode())
