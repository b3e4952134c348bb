"""BLAS libraries held against each other."""
