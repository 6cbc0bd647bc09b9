"""Measurements, each printed by a command: see `python -m benchmarks --help`."""
