"""Nodes that are virtual machines: a real kernel with a real NIC driver, on this machine's own files."""
