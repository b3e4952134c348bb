"""Run HPL: find it, search its settings, run the largest problem that fits."""
