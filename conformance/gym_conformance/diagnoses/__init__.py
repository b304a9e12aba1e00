"""What looks like a violation, and is not one: each module recognises one cause that lies outside the env's code."""
