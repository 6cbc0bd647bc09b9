"""Settings for all tests: reproducible Hypothesis, the folder of real data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "tensortide",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("tensortide")


@pytest.fixture(scope="session")
def real_data() -> Path:
    here = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("TENSORTIDE_DATA", here.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the folder of real data is absent (set TENSORTIDE_DATA to have it)")
    return folder
