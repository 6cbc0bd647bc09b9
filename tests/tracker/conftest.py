"""The command, as its own tests run it."""

from tests.cli.conftest import run  # noqa: F401 - a fixture
