"""Statistics: arrays in, figures with their intervals out.  Imports nothing of the rest of wulf."""
