"""What a program does to the nodes, and what limits it."""
