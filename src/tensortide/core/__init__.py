"""The mathematics: equations, terms, blocks and the step.  Knows no labels, tables or files."""
