"""What a parallel program sends, and when."""
