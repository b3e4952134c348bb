"""Parallel programs emulated from a description."""
