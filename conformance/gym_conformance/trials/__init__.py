"""What a check is, and what each is tried with: a server, its rows, the clock, chance."""
