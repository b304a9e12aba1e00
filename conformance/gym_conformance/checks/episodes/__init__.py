"""Servers that play, or step through, whole episodes."""
