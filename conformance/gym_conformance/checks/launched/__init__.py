"""What only a server that the suite launched can be tried on: its files, its models, its sandboxes, other hosts, a restart."""
