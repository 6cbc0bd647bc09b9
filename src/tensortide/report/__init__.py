"""The page that a manager can read, and the figures on it."""
