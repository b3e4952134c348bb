"""Show a run: as a page, as text, as data. Nothing is estimated here."""
