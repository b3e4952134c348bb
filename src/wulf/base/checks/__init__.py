"""Facts × checks → findings, on each node and across nodes. Pure."""
