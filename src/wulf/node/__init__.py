"""What touches machines: the cluster, what is known of its nodes, the probe, changes, and what is measured there."""
