"""One process of `toolward serve`, and MCP with it: JSON-RPC, a message on each line."""

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from .config import Config

logger = logging.getLogger(__name__)

PROTOCOL_VERSION = "2025-11-25"
# The largest line that is read. A result of 16 MiB, the largest that a policy allows unless it
# raises `output_bytes`, takes at most 96 MiB as JSON.
MAX_LINE_BYTES = 128 << 20
# Reports of progress that wait for hooks; the rest is dropped.
MAX_QUEUED_REPORTS = 64
# How long a process may take to be gone after SIGKILL.
KILL_TIMEOUT = 5.0

Json = dict[str, Any]
# Asks a person for one of a few choices.
Ask = Callable[[str, list[str]], Awaitable[str | None]]

# What the server lets a person choose from. Its other questions are the drivers', which nobody is asked here.
CHOICES = {"allow this call", "allow it for this session", "deny"}


class ServerError(Exception):
    """The server ended, or does not speak the protocol."""


class NotSent(ServerError):
    """The server ended before anything of a message was sent to it."""


class RequestError(Exception):
    """The server answered a request with an error of the protocol."""

    def __init__(self, error: Json):
        super().__init__(str(error.get("message", "")))
        data = error.get("data")
        self.data: Json = data if isinstance(data, dict) else {}


class Server:
    """A process that runs until `stop`, or until it ends by itself."""

    def __init__(self, process: asyncio.subprocess.Process, config: Config, ask: Ask | None):
        self._process = process
        self._ask = ask
        self._questions: dict[Any, asyncio.Task[None]] = {}
        self._config = config
        self._last_id = 0
        self._pending: dict[int, asyncio.Queue[Json | None]] = {}
        self._last_words: deque[str] = deque(maxlen=5)
        self.ended = False
        # Set when the list of tools changed, and when the server ended.
        self.changed = asyncio.Event()
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._log())]

    @classmethod
    async def start(cls, config: Config, ask: Ask | None = None) -> "Server":
        """Starts the process and opens the session. Raises ServerError."""
        pipe = asyncio.subprocess.PIPE
        try:
            # A session of its own: Ctrl-C is the application's, which cancels calls.
            process = await asyncio.create_subprocess_exec(
                *config.command, stdin=pipe, stdout=pipe, stderr=pipe, cwd="/",
                env=config.environment, limit=MAX_LINE_BYTES, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise ServerError(f"{config.command[0]} can't be started: {error.strerror}") from error
        server = cls(process, config, ask)
        try:
            client = {"name": "amplifier-module-tool-toolward", "version": "0.1.0"}
            hello = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {"elicitation": {}} if ask else {}, "clientInfo": client}
            await server.request("initialize", hello, config.start_timeout)
            server._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        except BaseException as error:
            await server.stop()
            if isinstance(error, TimeoutError | RequestError):
                raise ServerError(f"the server opened no session: {str(error) or 'it does not answer'}") from error
            raise
        return server

    async def tools(self) -> list[Json]:
        """The tools that the server lists."""
        tools: list[Json] = []
        page: Json = {}
        while True:
            result = await self.request("tools/list", page, self._config.start_timeout)
            tools += result.get("tools", [])
            if not (cursor := result.get("nextCursor")):
                return tools
            page = {"cursor": cursor}

    async def request(
        self, method: str, params: Json, timeout: float, progress: Callable[[Json], Awaitable[None]] | None = None
    ) -> Json:
        """Sends a request and awaits its result. Raises ServerError, RequestError, TimeoutError, and
        ValueError for parameters that are not JSON."""
        self._last_id += 1
        request_id = self._last_id
        if progress is not None:
            params = params | {"_meta": {"progressToken": request_id}}
        queue = self._pending[request_id] = asyncio.Queue()
        message = None
        failed: type[ServerError] = ServerError
        try:
            async with asyncio.timeout(timeout):
                self._send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
                await self._process.stdin.drain()
                while (message := await queue.get()) is not None and "method" in message:
                    if progress is not None:
                        await progress(message["params"])
        except (TimeoutError, asyncio.CancelledError):
            with contextlib.suppress(ServerError):
                cancelled = {"requestId": request_id}
                self._send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
            raise
        except NotSent:
            failed = NotSent
        except ConnectionError:
            # It ended before it read all of the request.
            message = None
        finally:
            del self._pending[request_id]
        if message is None:
            # It may have said why.
            await asyncio.wait(self._tasks, timeout=1)
            raise failed(f"the server ended: {' '.join(self._last_words) or 'it said nothing'}")
        if isinstance(error := message.get("error"), dict):
            raise RequestError(error)
        if not isinstance(result := message.get("result"), dict):
            raise ServerError("the server answered with neither a result nor an error")
        return result

    async def stop(self) -> None:
        """Ends the process: SIGTERM, and SIGKILL where it takes too long."""
        for send, wait in ((signal.SIGTERM, self._config.stop_timeout), (signal.SIGKILL, KILL_TIMEOUT)):
            if self._process.returncode is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, send)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), wait)
        tasks = [*self._tasks, *self._questions.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._process.stdin.close()

    def _send(self, message: Json) -> None:
        line = json.dumps(message, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        if self.ended or self._process.stdin.is_closing():
            raise NotSent("the server ended")
        self._process.stdin.write(line)

    async def _read(self) -> None:
        try:
            while line := await self._process.stdout.readline():
                self._take(json.loads(line))
        except (ValueError, RecursionError, ServerError) as error:
            logger.warning("the server does not speak the protocol: %s", error)
        finally:
            self.ended = True
            self.changed.set()
            for queue in self._pending.values():
                queue.put_nowait(None)

    def _take(self, message: Any) -> None:
        match message:
            case {"method": "notifications/progress", "params": {"progressToken": int(token)}}:
                queue = self._pending.get(token)
                if queue is not None and queue.qsize() < MAX_QUEUED_REPORTS:
                    queue.put_nowait(message)
            case {"method": "notifications/tools/list_changed"}:
                self.changed.set()
            case {"method": "ping", "id": asked}:
                self._send({"jsonrpc": "2.0", "id": asked, "result": {}})
            case {
                "method": "elicitation/create",
                "id": asked,
                "params": {"message": str(prompt), "requestedSchema": {"properties": {"decision": {"enum": list(options)}}}},
            } if self._ask and CHOICES.issuperset(options):
                question = asyncio.create_task(self._answer(asked, self._ask(prompt, options)))
                self._questions[asked] = question
                question.add_done_callback(lambda _: self._questions.pop(asked, None))
            case {"method": "notifications/cancelled", "params": {"requestId": asked}} if asked in self._questions:
                self._questions[asked].cancel()
            case {"method": str(), "id": asked}:
                error = {"code": -32601, "message": "this client answers no questions"}
                self._send({"jsonrpc": "2.0", "id": asked, "error": error})
            case {"id": int(answered)} if answered in self._pending:
                self._pending[answered].put_nowait(message)

    async def _answer(self, asked: Any, choice: Awaitable[str | None]) -> None:
        chosen = await choice
        answer = {"action": "cancel"} if chosen is None else {"action": "accept", "content": {"decision": chosen}}
        with contextlib.suppress(ServerError):
            self._send({"jsonrpc": "2.0", "id": asked, "result": answer})

    async def _log(self) -> None:
        """Passes on what the server says to people."""
        while True:
            # A line that is too long is left out. What nobody reads would block the server.
            with contextlib.suppress(ValueError):
                if not (line := await self._process.stderr.readline()):
                    return
                words = line.decode(errors="replace").strip()[:500]
                self._last_words.append(words)
                level = logging.WARNING if words.startswith(("error", "warning")) else logging.INFO
                logger.log(level, "toolward: %s", words)
