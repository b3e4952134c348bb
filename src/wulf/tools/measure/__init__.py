"""What the interconnect really does."""
