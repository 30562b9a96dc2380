"""A newcomer's agent, by the official Python client: one call of a demo tool.

    python newcomer.py TARGET

TARGET is {"command": ..., "args": [...]} as JSON: the block that `toolward demo` prints.
"""

import json
import sys

import anyio
from mcp import Client, StdioServerParameters


async def main(target):
    async with Client(StdioServerParameters(**target)) as client:
        names = sorted(tool.name for tool in (await client.list_tools()).tools)
        result = await client.call_tool("demo_words", {"text": "one two"})
    print(json.dumps({"tools": names, "words": (result.structured_content or {}).get("words")}))


target = json.loads(sys.argv[1])
anyio.run(main, {"command": target["command"], "args": target["args"]})
