"""What looks like a violation but is none: each module recognises one cause outside the env's code."""
