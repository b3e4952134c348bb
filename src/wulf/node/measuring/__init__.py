"""A measured run: what takes part, scouts, blocks, stopping, budget, and going on with it."""
