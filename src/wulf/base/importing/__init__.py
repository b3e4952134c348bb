"""Outputs of other benchmarks as what wulf knows: times by size, with the statistic that they are.  Pure.

A module for each tool; `formats.FORMATS` lists them.
"""
