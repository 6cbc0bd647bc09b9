"""More than one core."""
