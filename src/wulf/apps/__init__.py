"""Applications: from what a user wants of one to the command that runs it, from its output to figures.  Pure."""
