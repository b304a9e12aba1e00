"""How a session begins, is found again, lasts and ends."""
