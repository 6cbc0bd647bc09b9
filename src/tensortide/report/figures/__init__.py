"""What the pages draw, as plain data."""
