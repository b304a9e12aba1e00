"""What verify takes, and what it returns."""
