"""The process behind the endpoints: whether it answers, what it keeps, and what it bears."""
