"""What a traced program would take on other networks, and what that is worth.  Pure."""
