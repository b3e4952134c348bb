"""Blocks of what is shown, and their forms: a page, a terminal, LaTeX, data."""
