"""What is computed on: entries, boxes, factors and copies of their rows."""
