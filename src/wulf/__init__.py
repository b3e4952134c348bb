"""Measure, audit, tune and predict the interconnect of commodity HPC clusters."""

__version__ = "0.1.0"
