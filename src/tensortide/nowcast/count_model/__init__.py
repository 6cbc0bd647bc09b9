"""The model of late counts."""
