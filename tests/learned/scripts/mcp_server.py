from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("notes")


@server.tool()
def read(name: str) -> str:
    """Reads a note."""
    return (Path("data") / name).read_text()


server.run("stdio")
