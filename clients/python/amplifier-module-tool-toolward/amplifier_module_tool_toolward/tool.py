"""A tool of the server as Amplifier sees it, and what becomes of its results."""

from collections.abc import Awaitable, Callable
from typing import Any

from amplifier_core import ToolResult

Json = dict[str, Any]


class ToolwardTool:
    """One listed tool."""

    def __init__(self, listed: Json, call: Callable[[str, Json], Awaitable[ToolResult]]):
        self.name: str = listed["name"]
        self.description: str = listed.get("description") or self.name
        self.input_schema: Json = listed.get("inputSchema") or {"type": "object"}
        self._call = call

    async def execute(self, input: Json) -> ToolResult:
        """Calls the tool."""
        return await self._call(self.name, input)

    def shows(self, listed: Json) -> bool:
        """Whether a model sees the same of this tool and of a listed one."""
        other = ToolwardTool(listed, self._call)
        return (self.description, self.input_schema) == (other.description, other.input_schema)


def result(answer: Json) -> ToolResult:
    """The result of a call: its value, or the text of its blocks where there is none."""
    blocks = [block for block in answer.get("content") or [] if isinstance(block, dict)]
    text = "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    if not answer.get("isError"):
        value = answer.get("structuredContent")
        return ToolResult(success=True, output=text if value is None else value)
    meta = answer.get("_meta") or {}
    error = meta.get("toolward/error") or {"message": text, "code": "tool_error", "class": "execution_failed"}
    return failure(
        error.get("code"),
        error.get("class"),
        error.get("message"),
        retryable=error.get("retryable", False),
        retry_after_ms=error.get("retry_after_ms"),
        # It also has the next step.
        output=text,
    )


def failure(
    code: Any,
    error_class: Any,
    message: Any,
    *,
    retryable: bool = False,
    retry_after_ms: int | None = None,
    output: str | None = None,
) -> ToolResult:
    """A call that failed."""
    error = {
        "message": message,
        "type": code,
        "class": error_class,
        "retryable": retryable,
        "retry_after_ms": retry_after_ms,
    }
    return ToolResult(success=False, output=output or message, error=error)
