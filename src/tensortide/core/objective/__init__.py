"""Terms that add up to normal equations, and their values."""
