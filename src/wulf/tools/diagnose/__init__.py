"""What is wrong, and where: from figures to suspects.  Pure."""
