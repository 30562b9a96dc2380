"""The conformance tools in Python. `../README.md` says what each of them answers."""

import random
import sys
from typing import Any

from toolward_guest import (
    Bucket,
    Call,
    Questions,
    ToolError,
    http,
    log,
    progress,
    secrets,
    tool,
    tools,
)


def greet(call: Call) -> str:
    return f"Hello, {call.input['name']}!"


def write_log(call: Call) -> str:
    log.info("from the guest", n=1)
    print("to stdout")
    print("to stderr", file=sys.stderr)
    return "logged"


def report(call: Call) -> str:
    for step in (1, 2, 3):
        progress.report(step, 3, f"step {step}")
    return "reported"


def error(call: Call) -> None:
    raise ToolError("probe:own", "asked for", retryable=True, cause={"why": "asked"})


def throw(call: Call) -> None:
    raise ValueError("uncaught boom")


def numbers(call: Call) -> dict[str, Any]:
    return {"number": random.random(), "bytes": random.SystemRandom().randbytes(16).hex()}


def memory(call: Call) -> int:
    return len([bytearray(1 << 20) for _ in range(100)])


def loop(call: Call) -> None:
    while True:
        pass


def nested(call: Call) -> list[Any]:
    value: list[Any] = []
    for _ in range(call.input["depth"] - 1):
        value = [value]
    return value


def recurse(call: Call) -> int:
    return recurse(call) + 1


OPS = {
    "greet": greet,
    "log": write_log,
    "progress": report,
    "error": error,
    "throw": throw,
    "random": numbers,
    "memory": memory,
    "loop": loop,
    "json": nested,
    "recurse": recurse,
}


@tool("conformance.probe")
def probe(call: Call) -> dict[str, Any]:
    return {"result": OPS[call.input["op"]](call)}


@tool("conformance.echo")
def echo(call: Call) -> dict[str, Any]:
    return {"result": call.input["text"]}


@tool("conformance.keyvalue")
def keyvalue(call: Call) -> dict[str, Any]:
    return {"result": Bucket("conformance").increment(call.input["key"])}


@tool("conformance.secret")
def secret(call: Call) -> dict[str, Any]:
    placeholder = secrets.placeholder("conformance-token")
    return {"result": {"start": placeholder[:4], "length": len(placeholder)}}


@tool("conformance.tool")
def call_tool(call: Call) -> dict[str, Any]:
    return {"result": tools.call("conformance.echo", {"text": call.input["text"]})}


@tool("conformance.ask")
def ask(call: Call) -> Any:
    if call.resume is None:
        schema = {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        }
        return Questions().form("who", "Whom shall I greet?", schema).state({"greeting": "Hello"})
    answer = call.resume.answer("who")
    if not answer.accepted:
        raise ToolError("probe:nobody", answer.status)
    return {"result": f"{call.resume.state['greeting']}, {answer.value['name']}!"}


@tool("conformance.files")
def files(call: Call) -> dict[str, Any]:
    with open("/data/in.txt", encoding="utf-8") as file:
        text = file.read()
    with open("/data/out.txt", "w", encoding="utf-8") as file:
        file.write(text.upper())
    return {"result": len(text.upper().encode())}


@tool("conformance.http")
def fetch(call: Call) -> dict[str, Any]:
    response = http.get(call.input["url"])
    return {"result": {"status": response.status, "body": response.text()}}
