"""What another network is worth to a mix of jobs."""
