"""A server made with the SDK, on a port of this machine or on its standard streams.

python mcp_sdk_server.py [PORT]
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

from mcp.server.mcpserver import Context, Image, MCPServer
from pydantic import BaseModel, Field

server = MCPServer("sdk", log_level="ERROR")


class Place(BaseModel):
    """What the user is asked for."""

    city: Annotated[str, Field(description="Where you are")] = "Paris"


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def size(number: int) -> str:
    """Return a long text."""
    return "x" * number


@server.tool(structured_output=False)
def picture() -> Image:
    """Return a picture."""
    return Image(data=b"hello", format="png")


@server.tool()
async def weather(context: Context[Any, Any]) -> str:
    """Ask where the user is, and say what the weather is there."""
    answer = await context.elicit("Where are you?", Place)
    if answer.action != "accept":
        return f"the user said {answer.action}"
    return f"It rains in {answer.data.city}."


@server.resource("note://today")
def today() -> str:
    """The note of today."""
    return "Buy milk."


@server.prompt()
def review(path: str) -> str:
    """Review a file."""
    return f"Review {path} with care."


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
