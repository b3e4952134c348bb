"""Traces replayed on other networks: here or as a job array."""
