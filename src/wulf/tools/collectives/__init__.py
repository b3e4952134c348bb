"""Find the algorithms of collectives that are best on a cluster, write and prove the file that says so."""
