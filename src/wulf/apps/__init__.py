"""Applications: what is asked for becomes a job, what it prints becomes figures. Pure."""
