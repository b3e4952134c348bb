"""Which algorithm an MPI library takes for a collective: what it has, what was found best, the files that say so."""
