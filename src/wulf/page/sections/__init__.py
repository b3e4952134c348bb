"""Parts that several pages have."""
