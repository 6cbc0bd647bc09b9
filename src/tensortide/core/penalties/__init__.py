"""What the rows of a mode are drawn to, or held to."""
