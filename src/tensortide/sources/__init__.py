"""Records from files and pipes, piece by piece, with their place in the source."""
