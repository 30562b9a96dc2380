"""One session with a server, by the official Python client.

    python session.py TARGET ERA

TARGET is {"url": ...} or {"command": ..., "args": [...]} as JSON, ERA "legacy" or a
version, which the client then has to find out by itself. Prints what the server did as one JSON object; judging it is the test's.
"""

import json
import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

PATIENCE = 60


def told(result):
    """What a result says."""
    return {
        "error": bool(result.is_error),
        "text": [block.text for block in result.content if block.type == "text"],
        "structured": result.structured_content,
        "meta": dict(result.meta or {}),
    }


async def session(target, era):
    answers = []
    forms = []

    async def answer(_context, params):
        forms.append({"message": params.message, "schema": params.requested_schema})
        return answers.pop(0)

    server = target.get("url") or StdioServerParameters(**target)
    mode = "legacy" if era == "legacy" else "auto"
    async with Client(server, mode=mode, elicitation_callback=answer) as client:
        seen = {
            "protocol": client.protocol_version,
            "server": client.server_info.name,
            "tools": {tool.name: tool.description for tool in (await client.list_tools()).tools},
        }

        async def call(name, arguments=None, **options):
            return told(await client.call_tool(name, arguments or {}, **options))

        seen["simple"] = await call("test_simple_text")
        seen["sum"] = await call("test_sum", {"numbers": [1, 2, 39]})
        seen["failed"] = await call("test_error_handling")

        steps = []

        async def progress(done, total, _message):
            steps.append([done, total])

        await call("test_tool_with_progress", progress_callback=progress)
        seen["progress"] = steps

        # Cancels a call that would never end, once it runs.
        running = anyio.Event()
        ended = []

        async def runs(_done, _total, _message):
            running.set()

        async def endless():
            ended.append(await call("test_endless", progress_callback=runs))

        async with anyio.create_task_group() as group:
            group.start_soon(endless)
            await running.wait()
            group.cancel_scope.cancel()
        seen["ended"] = ended
        seen["after"] = await call("test_sum", {"numbers": [4]})

        answers.append(ElicitResult(action="accept", content={"name": "Ada"}))
        seen["accepted"] = await call("test_input_required_result_elicitation")
        answers.append(ElicitResult(action="decline"))
        seen["declined"] = await call("test_input_required_result_elicitation")
        seen["forms"] = forms
    return seen


async def main():
    with anyio.fail_after(PATIENCE):
        seen = await session(json.loads(sys.argv[1]), sys.argv[2])
    print(json.dumps(seen))


anyio.run(main)
