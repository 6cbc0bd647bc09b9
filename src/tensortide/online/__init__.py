"""Read-only views of a model: scores, components, files, other libraries' forms, progress."""
