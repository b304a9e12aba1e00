"""The only package that sends HTTP: exchanges, the transport below them, and sessions above them."""
