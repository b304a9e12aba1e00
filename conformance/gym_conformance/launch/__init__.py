"""Launching: turns an env's folder into a running server, in a process with the env's own interpreter, without Ray."""
