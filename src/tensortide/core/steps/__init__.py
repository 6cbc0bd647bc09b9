"""Methods, and the step that each of them takes."""
