"""Tools over MCP: the official client, over one of our channels. The `mcp` extra is imported on first use."""
