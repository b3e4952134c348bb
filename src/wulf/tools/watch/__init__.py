"""A watch: short measured runs and audits, again and again, and what has changed since."""
