"""Two runs or two settings held against each other."""
