"""Traces of other simulators as ours: GOAL, and SMPI's time-independent text."""
