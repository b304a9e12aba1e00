"""What a NeMo Gym resources server says and hears on the wire. Pure values: no I/O, no pytest, no HTTP client."""
