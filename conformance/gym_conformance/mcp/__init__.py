"""Tools over MCP, spoken with the official client over a channel of ours; the `mcp` extra is imported on first use."""
