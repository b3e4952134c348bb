"""All nodes of a cluster at once: which they are, how they are made ready, looked at, changed and kept alike."""
