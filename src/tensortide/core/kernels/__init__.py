"""Compiled loops: what another backend would have to give."""
