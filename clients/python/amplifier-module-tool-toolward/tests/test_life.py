"""A server that changes, ends, comes back and is ended."""

import asyncio
import os
import re
import shutil
import signal
import time

import pytest
from amplifier_core.testing import MockTool
from amplifier_module_tool_toolward import mount
from amplifier_module_tool_toolward import server as server_module
from amplifier_module_tool_toolward.server import RequestError, Server, ServerError

from conftest import halt, servers, state, until, warned


@pytest.mark.asyncio
async def test_tools_follow_what_is_installed(machine, coordinator, mounting) -> None:
    machine.trust("text", "text-stats", "json", "json-query")
    machine.install("text-stats")
    await mounting(machine.config())
    assert set(coordinator.get("tools")) == {"text_stats"}
    tool = coordinator.get("tools", "text_stats")

    machine.install("json-query")
    await until(lambda: set(coordinator.get("tools")) == {"text_stats", "json_query"})
    # What did not change was not mounted again.
    assert coordinator.get("tools", "text_stats") is tool
    assert (await tool.execute({"text": "one"})).success

    machine.run("remove", "text.stats-bundle")
    await until(lambda: set(coordinator.get("tools")) == {"json_query"})
    assert coordinator.get("tools", "text_stats") is None
    result = await tool.execute({"text": "one"})
    assert not result.success and not result.error["retryable"], result


@pytest.mark.asyncio
async def test_a_tool_whose_mounting_failed_is_mounted_later(machine, coordinator, mounting, monkeypatch) -> None:
    machine.trust("text", "text-stats", "json", "json-query")
    machine.install("text-stats")
    await mounting(machine.config())
    failed = fail_once(monkeypatch, coordinator, "mount", RuntimeError("not now"))
    machine.install("json-query")
    await until(lambda: coordinator.get("tools", "json_query") is not None)
    assert failed
    assert (await coordinator.get("tools", "json_query").execute({"query": ".", "data": 1})).success


@pytest.mark.asyncio
@pytest.mark.parametrize("error", [RequestError({"message": "not now"}), TimeoutError("not now")])
async def test_a_list_that_fails_is_asked_for_again(machine, coordinator, mounting, monkeypatch, caplog, error) -> None:
    machine.trust("text", "text-stats", "json", "json-query")
    machine.install("text-stats")
    await mounting(machine.config())
    before = servers()
    failed = fail_once(monkeypatch, Server, "tools", error)
    machine.install("json-query")
    await until(lambda: coordinator.get("tools", "json_query") is not None)
    assert failed and warned(caplog, f"could not be listed: {error!r}")
    # The server runs on, and the calls with it.
    assert servers() == before and not warned(caplog, "the server ended")


@pytest.mark.asyncio
@pytest.mark.parametrize("step", ["mount", "unmount"])
async def test_a_step_of_the_application_that_fails_is_repeated(
    machine, coordinator, mounting, monkeypatch, caplog, step: str
) -> None:
    machine.trust("text", "text-stats", "json", "json-query")
    machine.install("text-stats")
    await mounting(machine.config())
    before = servers()
    failed = fail_once(monkeypatch, coordinator, step, RuntimeError())
    machine.install("json-query")
    machine.run("remove", "text.stats-bundle")
    await until(lambda: set(coordinator.get("tools")) == {"json_query"})
    assert failed and warned(caplog, "could not be listed: RuntimeError()")
    assert servers() == before and not warned(caplog, "the server ended")


@pytest.mark.asyncio
async def test_a_tool_of_another_module_keeps_its_name(machine, coordinator, mounting, caplog) -> None:
    other = MockTool("text_stats")
    await coordinator.mount("tools", other, name="text_stats")
    cleanup = await mounting(machine.config("text-stats", "json-query"))
    assert coordinator.get("tools", "text_stats") is other
    assert warned(caplog, "text_stats")
    assert coordinator.get("tools", "json_query") is not None
    await cleanup()
    assert coordinator.get("tools") == {"text_stats": other}


@pytest.mark.asyncio
async def test_a_server_that_was_killed_is_started_again(machine, coordinator, mounting, caplog) -> None:
    await mounting(machine.config("text-stats"))
    tool = coordinator.get("tools", "text_stats")
    before = servers()
    os.kill(before[0], signal.SIGKILL)
    await until(lambda: warned(caplog, "started again in"))
    # A call in between waits for the new server.
    result = await tool.execute({"text": "one two"})
    assert result.success and result.output["words"] == 2, result
    assert coordinator.get("tools", "text_stats") is tool
    after = servers()
    assert len(after) == 1 and after != before


@pytest.mark.asyncio
async def test_pauses_between_restarts_grow(machine, coordinator, mounting, caplog) -> None:
    await mounting(machine.config("text-stats"))
    tool = coordinator.get("tools", "text_stats")
    for _ in range(3):
        [server] = servers()
        os.kill(server, signal.SIGKILL)
        await until(lambda server=server: set(servers()) - {server})
        assert (await tool.execute({"text": "one"})).success
    assert re.findall(r"started again in ([0-9.]+) s", caplog.text) == ["0.5", "1.0", "2.0"]


@pytest.mark.asyncio
async def test_a_call_whose_server_ends_is_not_called_retryable(machine, coordinator, mounting) -> None:
    await mounting(machine.config("text-stats"))
    tool = coordinator.get("tools", "text_stats")
    [server] = servers()
    halt(server)
    call = asyncio.create_task(tool.execute({"text": "one"}))
    await asyncio.sleep(0.1)
    os.kill(server, signal.SIGKILL)
    result = await call
    assert result.error["type"] == "toolward:server_ended", result
    assert result.error["retryable"] is False


@pytest.mark.asyncio
async def test_a_call_that_was_never_sent_had_no_effects(machine, coordinator, mounting, monkeypatch) -> None:
    await mounting(machine.config("text-stats"))
    tool = coordinator.get("tools", "text_stats")
    request = Server.request

    async def late(self, method, *more):
        if method == "tools/call" and not self.ended:
            os.kill(servers()[0], signal.SIGKILL)
            await until(lambda: self.ended)
        return await request(self, method, *more)

    monkeypatch.setattr(Server, "request", late)
    result = await tool.execute({"text": "one"})
    assert result.error["type"] == "toolward:server_unavailable", result
    assert result.error["class"] == "dependency_unavailable"
    assert result.error["retryable"] is True and result.error["retry_after_ms"] > 0


@pytest.mark.asyncio
async def test_while_there_is_no_server_calls_say_so_and_the_module_goes_on_trying(
    machine, coordinator, mounting, caplog
) -> None:
    command = machine.home / "toolward"
    command.symlink_to(machine.toolward)
    await mounting(machine.config("text-stats", command=str(command), timeouts={"start": 5}))
    tool = coordinator.get("tools", "text_stats")
    command.unlink()
    [server] = servers()
    os.kill(server, signal.SIGKILL)
    await until(lambda: warned(caplog, "could not be started"))
    result = await tool.execute({"text": "one"})
    assert result.error["type"] == "toolward:server_unavailable", result
    assert result.error["class"] == "dependency_unavailable"
    assert result.error["retryable"] is True and result.error["retry_after_ms"] > 0
    command.symlink_to(machine.toolward)
    async with asyncio.timeout(60):
        while not (result := await tool.execute({"text": "one"})).success:
            assert result.error["type"] == "toolward:server_unavailable", result


@pytest.mark.asyncio
async def test_cleanup_leaves_no_tool_and_no_process(machine, coordinator, mounting) -> None:
    cleanup = await mounting(machine.config("text-stats", "json-query"))
    [server] = servers()
    assert group_exists(server)
    tool = coordinator.get("tools", "text_stats")
    await cleanup()
    assert state(server) == ""
    assert not group_exists(server)
    assert coordinator.get("tools") == {}
    # Again, as coordinators may.
    await cleanup()
    result = await asyncio.wait_for(tool.execute({"text": "one"}), 20)
    assert result.error["type"] == "toolward:server_unavailable"
    assert result.error["retryable"] is False and result.error["retry_after_ms"] is None
    # It is not started again.
    await asyncio.sleep(1)
    assert servers() == []


@pytest.mark.asyncio
async def test_cleanup_ends_the_server_though_a_tool_stays(machine, coordinator, mounting, monkeypatch) -> None:
    cleanup = await mounting(machine.config("text-stats", "json-query"))
    fail_once(monkeypatch, coordinator, "unmount", RuntimeError("not now"))
    with pytest.raises(RuntimeError, match="not now"):
        await cleanup()
    assert servers() == []
    await cleanup()
    assert coordinator.get("tools") == {}


@pytest.mark.asyncio
async def test_a_server_that_does_not_end_is_killed(machine, coordinator, mounting) -> None:
    cleanup = await mounting(machine.config("text-stats", timeouts={"stop": 0.5}))
    [server] = servers()
    halt(server)
    began = time.monotonic()
    await cleanup()
    assert 0.5 <= time.monotonic() - began < 10
    assert state(server) == ""
    # Nor is the process left that compiles for it.
    await until(lambda: not group_exists(server))


@pytest.mark.asyncio
async def test_cleanup_between_two_servers_starts_none(machine, coordinator, mounting, caplog) -> None:
    cleanup = await mounting(machine.config("text-stats"))
    os.kill(servers()[0], signal.SIGKILL)
    await until(lambda: warned(caplog, "started again in"))
    await cleanup()
    assert coordinator.get("tools") == {}
    await asyncio.sleep(1)
    assert servers() == []


@pytest.mark.asyncio
async def test_a_server_that_does_not_start_is_an_error_with_its_reason(machine, coordinator, tmp_path) -> None:
    with pytest.raises(ServerError, match="bundle-missing"):
        await mount(coordinator, machine.config())
    with pytest.raises(ServerError, match="can't be started"):
        await mount(coordinator, {"command": str(tmp_path / "missing")})
    assert coordinator.get("tools") == {}
    assert servers() == []


@pytest.mark.asyncio
@pytest.mark.parametrize("program", ["false", "echo", "yes"])
async def test_a_program_that_is_no_server_is_an_error_and_ended(coordinator, program: str) -> None:
    with pytest.raises(ServerError, match="the server ended"):
        await mount(coordinator, {"command": shutil.which(program)})
    assert servers() == []


@pytest.mark.asyncio
async def test_a_program_that_does_not_answer_is_ended(machine, coordinator) -> None:
    with pytest.raises(ServerError, match="opened no session: it does not answer"):
        await mount(coordinator, program(machine, "exec sleep 600") | {"timeouts": {"start": 0.5}})
    assert servers() == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "start", "reason"),
    [("", 3, "it does not answer"), ('echo \'{"id": 2, "error": {"message": "not today"}}\'', 60, "not today")],
)
async def test_a_server_that_lists_no_tools_is_an_error_and_ended(
    machine, coordinator, answer: str, start: int, reason: str
) -> None:
    session = 'read -r line; echo \'{"id": 1, "result": {}}\'; read -r line; read -r line'
    config = program(machine, session, answer, "exec sleep 600") | {"timeouts": {"start": start}}
    with pytest.raises(ServerError, match=f"lists no tools: {reason}"):
        await mount(coordinator, config)
    assert servers() == []


@pytest.mark.asyncio
async def test_a_line_that_is_too_long_does_not_end_the_log(machine, coordinator, mounting, monkeypatch, caplog) -> None:
    monkeypatch.setattr(server_module, "MAX_LINE_BYTES", 1 << 20)
    lines = ["head -c 8000000 /dev/zero | tr '\\0' x >&2", "echo >&2", "echo 'warning: the next line' >&2"]
    await mounting(machine.config("text-stats") | program(machine, *lines, f'exec {machine.toolward} "$@"'))
    await until(lambda: warned(caplog, "the next line"))
    assert (await coordinator.get("tools", "text_stats").execute({"text": "one"})).success


@pytest.mark.asyncio
async def test_a_mount_that_the_application_refuses_leaves_nothing(machine, coordinator, monkeypatch) -> None:
    def refuses(*words) -> None:
        raise RuntimeError("no contributors here")

    monkeypatch.setattr(coordinator, "register_contributor", refuses)
    with pytest.raises(RuntimeError, match="no contributors"):
        await mount(coordinator, machine.config("text-stats"))
    assert servers() == []
    assert coordinator.get("tools") == {}


@pytest.mark.asyncio
async def test_a_mount_that_is_cancelled_leaves_no_process(machine, coordinator) -> None:
    mounting = asyncio.create_task(mount(coordinator, program(machine, "exec sleep 600")))
    await until(servers)
    mounting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await mounting
    assert servers() == []
    assert coordinator.get("tools") == {}


def program(machine, *lines: str) -> dict[str, str]:
    """A configuration with a program of the shell."""
    program = machine.home / "program"
    program.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    program.chmod(0o700)
    return {"command": str(program)}


def fail_once(monkeypatch, owner: object, name: str, error: Exception) -> list[Exception]:
    """Lets the next call of an asynchronous function fail; the list has the error once it did."""
    function = getattr(owner, name)
    failed: list[Exception] = []

    async def fails(*words, **more):
        if not failed:
            failed.append(error)
            raise error
        return await function(*words, **more)

    monkeypatch.setattr(owner, name, fails)
    return failed


def group_exists(group: int) -> bool:
    """Whether a process of this group is there."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
