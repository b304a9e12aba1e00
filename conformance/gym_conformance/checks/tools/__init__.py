"""One call of a tool, and the tools that rows show against those that the server serves."""
