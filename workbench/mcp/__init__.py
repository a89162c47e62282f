"""The workbench for agents and editors: an MCP server over one corpus, for one principal, that only reads."""
