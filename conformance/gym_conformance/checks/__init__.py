"""The checks, in a folder for each part of the contract."""
