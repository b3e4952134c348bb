"""Find the algorithms of an MPI library's collectives that are best on a cluster, write and prove the file that says so."""
