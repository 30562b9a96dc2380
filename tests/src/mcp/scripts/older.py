"""One session with a server, by an older official Python client.

    python older.py TARGET

TARGET is {"url": ...} or {"command": ..., "args": [...]} as JSON. Prints what came as one JSON object.
"""

import json
import sys
from contextlib import AsyncExitStack

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def session(target):
    async with AsyncExitStack() as stack:
        if "url" in target:
            from mcp.client.streamable_http import streamablehttp_client

            streams = await stack.enter_async_context(streamablehttp_client(target["url"]))
        else:
            streams = await stack.enter_async_context(stdio_client(StdioServerParameters(**target)))
        client = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
        opened = await client.initialize()
        seen = {"protocol": opened.protocolVersion, "results": {}, "errors": []}
        dumped = {"mode": "json", "by_alias": True, "exclude_none": True}
        seen["tools"] = [tool.model_dump(**dumped) for tool in (await client.list_tools()).tools]
        for name in [
            "test_simple_text",
            "test_image_content",
            "test_audio_content",
            "test_multiple_content_types",
        ]:
            seen["results"][name] = (await client.call_tool(name, {})).model_dump(**dumped)
        return seen


async def main():
    with anyio.fail_after(120):
        seen = await session(json.loads(sys.argv[1]))
    print(json.dumps(seen))


anyio.run(main)
