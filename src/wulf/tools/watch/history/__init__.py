"""What the history of a watch says: what changed, where, and what to measure next.  Pure."""
