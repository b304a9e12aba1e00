"""The only room that talks HTTP: exchanges, the transport below them, and sessions above them."""
