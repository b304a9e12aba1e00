"""Reports of findings in various formats."""
