"""A command as an experiment, repeated until its figures are precise."""
