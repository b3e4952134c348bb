"""The experiment: which setting is measured next, and what the results prove.  Pure."""
