"""What is wrong with the nodes: their settings, services and drivers against the catalogue and each other."""
