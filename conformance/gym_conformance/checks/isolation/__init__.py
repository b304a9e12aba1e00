"""No session knows of another: none beside it, and none before it."""
