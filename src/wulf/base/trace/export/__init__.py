"""Traces in the formats of other simulators, so that these can be run side by side.  Pure."""
