"""What is wrong whatever the cluster is for, set right."""
