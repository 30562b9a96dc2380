"""The server's tools, kept mounted while the server changes, ends and is started again."""

import asyncio
import logging
from typing import Any

from amplifier_core import ToolResult
from amplifier_core.approval import ApprovalTimeoutError

from .config import Config
from .server import Json, NotSent, RequestError, Server, ServerError
from .tool import ToolwardTool, failure, result

logger = logging.getLogger(__name__)

PROGRESS = "toolward:progress"

# Seconds before a server that ended is started again: doubled each time, and back to the first
# once a server ran for STEADY.
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
STEADY = 60.0

# Seconds that a person has for an approval.
ANSWER = 300.0


class Service:
    """A server and what is mounted of it."""

    def __init__(self, coordinator: Any, config: Config):
        self._coordinator = coordinator
        self._config = config
        self._mounted: dict[str, ToolwardTool] = {}
        self._server: Server | None = None
        self._up = asyncio.Event()
        self._pause = FIRST_PAUSE
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def open(self) -> None:
        """Starts the server and mounts its tools. Raises ServerError, and ValueError if nobody can be asked."""
        if self._config.asks and self._coordinator.approval_system is None:
            raise ValueError("approvals: `session` needs an application with an approval system")
        try:
            await self._start()
        except BaseException as error:
            await self.close()
            if isinstance(error, TimeoutError | RequestError):
                raise ServerError(f"the server lists no tools: {str(error) or 'it does not answer'}") from error
            raise
        self._task = asyncio.create_task(self._supervise())

    async def close(self) -> None:
        """Unmounts the tools and ends the server. May be called again."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._up.clear()
        try:
            for name in list(self._mounted):
                await self._unmount(name)
        finally:
            if self._server is not None:
                await self._server.stop()

    async def call(self, name: str, arguments: Json) -> ToolResult:
        """Calls a tool. Never raises but when it is cancelled."""
        # Orchestrators say here which call of the model this is.
        context = getattr(self._coordinator, "_tool_dispatch_context", None) or {}
        known = {"tool_name": name, "tool_call_id": context.get("tool_call_id")}
        try:
            await asyncio.wait_for(self._up.wait(), 0 if self._closed else self._config.start_timeout)
        except TimeoutError:
            return self._unavailable()
        try:
            params = {"name": name, "arguments": arguments}
            server, limit = self._server, self._config.call_timeout
            answer = await server.request("tools/call", params, limit, lambda report: self._report(known, report))
            return result(answer, self._config.max_output)
        except RequestError as error:
            wait = error.data.get("retry_after_ms")
            code = error.data.get("code", "toolward:request_refused")
            error_class = "rate_limited" if code == "rate_limited" else "execution_failed"
            return failure(code, error_class, str(error), retryable=wait is not None, retry_after_ms=wait)
        except NotSent:
            return self._unavailable()
        except ServerError as error:
            # It may have run: whether to call again is for whoever knows the tool.
            return failure("toolward:server_ended", "execution_failed", f"{error}; the call may have had effects")
        except TimeoutError:
            return failure("timeout", "timeout", f"no result in {self._config.call_timeout:g} s")
        except (TypeError, ValueError, RecursionError) as error:
            return failure("input_invalid", "schema_validation_failed", f"the input is not JSON: {error}")

    def _unavailable(self) -> ToolResult:
        """The failure of a call that the server never got."""
        code, error_class = "toolward:server_unavailable", "dependency_unavailable"
        if self._closed:
            return failure(code, error_class, "the session has ended the server")
        message = "the server ended and has not come back yet"
        wait = round(self._pause * 1000)
        return failure(code, error_class, message, retryable=True, retry_after_ms=wait)

    async def _ask(self, prompt: str, options: list[str]) -> str | None:
        """The choice of the person whom the application asks; `None` without one."""
        system = self._coordinator.approval_system
        try:
            chosen = await system.request_approval(prompt, options, ANSWER, "deny")
        except ApprovalTimeoutError:
            return None
        except Exception:
            logger.exception("the application's approval system failed")
            return None
        return chosen if chosen in options else None

    async def _report(self, known: Json, report: Json) -> None:
        data = known | {key: report.get(key) for key in ("progress", "total", "message")}
        try:
            await self._coordinator.hooks.emit(PROGRESS, data)
        except Exception:
            logger.exception("a hook on %s failed", PROGRESS)

    async def _start(self) -> None:
        self._server = await Server.start(self._config, self._ask if self._config.asks else None)
        await self._mount()
        self._up.set()

    async def _supervise(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            started = clock()
            await self._follow()
            self._up.clear()
            await self._server.stop()
            if clock() - started >= STEADY:
                self._pause = FIRST_PAUSE
            while not self._up.is_set():
                logger.warning("the server ended; it is started again in %.1f s", self._pause)
                await asyncio.sleep(self._pause)
                self._pause = min(self._pause * 2, LONGEST_PAUSE)
                try:
                    await self._start()
                except Exception as error:
                    logger.warning("the server could not be started: %r", error)
                    await self._server.stop()

    async def _follow(self) -> None:
        """Keeps the mounted tools those that the server lists, until it ends."""
        server = self._server
        while True:
            await server.changed.wait()
            server.changed.clear()
            if server.ended:
                return
            try:
                await self._mount()
            except Exception as error:
                logger.warning("the server's tools could not be listed: %r", error)
                if isinstance(error, ServerError):
                    return
                # The server is well, and so are the calls that it runs.
                server.changed.set()
                await asyncio.sleep(self._pause)

    async def _mount(self) -> None:
        listed = {tool["name"]: tool for tool in await self._server.tools()}
        for name, tool in list(self._mounted.items()):
            if name not in listed or not tool.shows(listed[name]):
                await self._unmount(name)
        for name, tool in listed.items():
            if name in self._mounted:
                continue
            if self._coordinator.get("tools", name) is not None:
                logger.warning("another module has mounted a tool named %s; the server's is left out", name)
                continue
            mounted = self._mounted[name] = ToolwardTool(tool, self.call)
            try:
                await self._coordinator.mount("tools", mounted, name=name)
            except BaseException:
                if self._coordinator.get("tools", name) is not mounted:
                    del self._mounted[name]
                raise

    async def _unmount(self, name: str) -> None:
        if self._coordinator.get("tools", name) is self._mounted[name]:
            await self._coordinator.unmount("tools", name=name)
        # Not before, so that what failed is tried again.
        del self._mounted[name]
