"""Which shapes embed in the direct links of a cluster, and the routes over these links."""
