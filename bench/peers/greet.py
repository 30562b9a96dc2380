"""Greets somebody by name: a server made with the SDK for Python, without a sandbox."""

from mcp.server.fastmcp import FastMCP

server = FastMCP("greet")


@server.tool()
def greet(name: str) -> str:
    """Greets somebody by name"""
    return f"Hello, {name}!"


server.run("stdio")
