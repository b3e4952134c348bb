"""Applications: what is put into them, and what their output says.  Pure."""
