"""Faults at every step of a change; see `bench.faults.run`."""

from bench.faults.run import main

__all__ = ["main"]
