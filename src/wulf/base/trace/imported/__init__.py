"""Traces of other programs as ours: GOAL, SMPI's time-independent text, and OTF2."""
