"""A tool of the server as Amplifier sees it, and what becomes of its results."""

import json
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


def result(answer: Json, max_output: int) -> ToolResult:
    """The result of a call: its value, or the text of its blocks where there is none. Blocks that are more than text are
    its content, too."""
    blocks = [block for block in answer.get("content") or [] if isinstance(block, dict)]
    text = "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    if not answer.get("isError"):
        value = answer.get("structuredContent")
        output = text if value is None else value
        return ToolResult(success=True, output=within(output, max_output), content=content(blocks, max_output))
    meta = answer.get("_meta") or {}
    error = meta.get("toolward/error") or {"message": text, "code": "tool_error", "class": "execution_failed"}
    return failure(
        error.get("code"),
        error.get("class"),
        error.get("message"),
        retryable=error.get("retryable", False),
        retry_after_ms=error.get("retry_after_ms"),
        # It also has the next step.
        output=within(text, max_output),
    )


def within(output: Any, most: int) -> Any:
    """An output that a model reads at most so many characters of."""
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    return output if len(text) <= most else f"{text[:most]}…[Truncated: {len(text) - most} chars remaining]"


def content(blocks: list[Json], most: int) -> list[Json] | None:
    """The blocks as the kernel has them: texts and images. Of others a text says what they are. `None` if all are texts,
    which the output has."""
    if all(block.get("type") == "text" for block in blocks):
        return None
    kept: list[Json] = []
    for block in blocks:
        image = _image(block)
        if image is None:
            text = within(_text(block), most)
            most = max(0, most - len(text))
            kept.append({"type": "text", "text": text})
        else:
            kept.append(image)
    return kept


def _image(block: Json) -> Json | None:
    """A picture, if the kernel takes it."""
    if block.get("type") != "image":
        return None
    source = {"type": "base64", "media_type": block.get("mimeType"), "data": block.get("data")}
    image = {"type": "image", "source": source}
    try:
        ToolResult(content=[image])
    except ValueError:
        return None
    return image


def _text(block: Json) -> str:
    """A block in words: its text, or what it is and where."""
    resource = block.get("resource") or {}
    text = block.get("text") or resource.get("text")
    if text is not None:
        return str(text)
    about = {"uri": block.get("uri") or resource.get("uri"), "name": block.get("name")}
    about["type"] = block.get("mimeType") or resource.get("mimeType")
    words = [f"{key}: {value}" for key, value in about.items() if value]
    return f"[{block.get('type')}{''.join(f', {word}' for word in words)}]"


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
