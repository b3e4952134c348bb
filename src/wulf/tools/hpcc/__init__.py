"""The HPC Challenge benchmark."""
