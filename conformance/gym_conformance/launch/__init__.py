"""Launching: from an env's folder to a server that answers, in a process of its own interpreter, without Ray."""
