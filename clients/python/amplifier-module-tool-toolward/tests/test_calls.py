"""Tools of the example bundles, mounted and called."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from amplifier_core import HookResult, ToolResult
from amplifier_core.approval import ApprovalTimeoutError
from amplifier_core.loader import ModuleLoader
from amplifier_core.validation import ToolValidator
from amplifier_core.validation.behavioral import ToolBehaviorTests
from amplifier_core.validation.structural import ToolStructuralTests
from amplifier_module_tool_toolward import mount
from amplifier_module_tool_toolward.tool import result as result_of

from conftest import KEY, PATIENCE, Machine, servers, until


class TestContract(ToolBehaviorTests):
    """amplifier-core's own tests of tool modules."""

    @pytest_asyncio.fixture
    async def tool_module(self, machine, coordinator, mounting):
        await mounting(machine.config("text-stats"))
        return coordinator.get("tools", "text_stats")


class TestStructure(ToolStructuralTests):
    """The same of its structure: they mount the module without a configuration."""

    @pytest.fixture
    def module_path(self) -> str:
        return "amplifier_module_tool_toolward"


@pytest.mark.asyncio
async def test_amplifiers_validator_finds_nothing_wrong(machine) -> None:
    found = await ToolValidator().validate("amplifier_module_tool_toolward", config=machine.config("text-stats"))
    assert found.passed, found
    assert [check for check in found.checks if not check.passed] == []
    assert any(check.message == "Tool has name: 'text_stats'" for check in found.checks), found


@pytest.mark.asyncio
async def test_a_session_loads_the_installed_module_by_its_name(machine, coordinator) -> None:
    loader = ModuleLoader(coordinator)
    mount = await loader.load("tool-toolward", machine.config("text-stats"), coordinator=coordinator)
    cleanup = await mount(coordinator)
    try:
        assert (await coordinator.get("tools", "text_stats").execute({"text": "one"})).success
    finally:
        await cleanup()


@pytest.mark.asyncio
async def test_each_tool_is_mounted_with_what_the_server_says_of_it(machine, coordinator, mounting) -> None:
    await mounting(machine.config("text-stats", "json-query"))
    tools = coordinator.get("tools")
    assert set(tools) == {"text_stats", "json_query"}
    tool = tools["text_stats"]
    assert tool.name == "text_stats"
    assert "Counts characters, words, sentences" in tool.description
    assert tool.input_schema["type"] == "object"
    assert tool.input_schema["required"] == ["text"]
    assert await coordinator.collect_contributions("observability.events") == [["toolward:progress"]]


@pytest.mark.asyncio
async def test_a_call_gives_the_value_of_the_tool(machine, coordinator, mounting) -> None:
    await mounting(machine.config("text-stats"))
    result = await coordinator.get("tools", "text_stats").execute({"text": "one two\u2028three"})
    assert isinstance(result, ToolResult)
    assert result.success and result.error is None
    assert result.output["words"] == 3


@pytest.mark.asyncio
async def test_an_error_has_the_servers_code_and_class(machine, coordinator, mounting) -> None:
    await mounting(machine.config("text-stats"))
    tool = coordinator.get("tools", "text_stats")
    result = await tool.execute({"text": 1})
    assert not result.success
    assert "/text" in result.error["message"]
    assert result.error == {
        "message": result.error["message"],
        "type": "input_invalid",
        "class": "schema_validation_failed",
        "retryable": False,
        "retry_after_ms": None,
    }
    # What a model reads.
    assert result.output.startswith("input_invalid: ")
    assert result.error["message"] in result.output
    assert (await tool.execute({"text": "two words"})).output["words"] == 2


@pytest.mark.asyncio
@pytest.mark.parametrize("value", [float("nan"), "\ud800", {1, 2}, object()])
async def test_what_is_not_json_ends_the_call_alone(machine, coordinator, mounting, value: Any) -> None:
    await mounting(machine.config("text-stats"))
    tool = coordinator.get("tools", "text_stats")
    result = await tool.execute({"text": value})
    assert result.error["type"] == "input_invalid"
    assert (await tool.execute({"text": "one"})).output["words"] == 1


@pytest.mark.asyncio
async def test_calls_run_side_by_side(machine, coordinator, mounting) -> None:
    await mounting(machine.config("text-stats"))
    tool = coordinator.get("tools", "text_stats")
    results = await asyncio.gather(*(tool.execute({"text": "word " * count}) for count in range(1, 21)))
    assert [result.output["words"] for result in results] == list(range(1, 21))


@pytest.mark.asyncio
async def test_a_call_that_policy_blocks_says_so(machine, coordinator, mounting) -> None:
    policy, _ = folder_policy(machine, 1)
    await mounting(machine.config("files-search", "text-stats") | arguments(policy))
    tool = coordinator.get("tools", "files_search")
    policy.write_text("")
    [server] = servers()
    os.kill(server, signal.SIGHUP)
    async with asyncio.timeout(PATIENCE):
        while (result := await tool.execute({"pattern": "x"})).success or result.error["type"] == "toolward:withdrawn":
            await asyncio.sleep(0.05)
    assert result.error["type"] == "unauthorised", result
    assert result.error["class"] in ("policy_blocked", "capability_gap"), result


@pytest.mark.asyncio
async def test_a_call_that_a_person_has_to_approve_is_denied(machine, coordinator, mounting) -> None:
    policy, notes = folder_policy(machine, 0)
    cleanup = await mounting(machine.config("notes-append") | arguments(policy))
    note = {"note": "a", "text": "Tea with Ada."}
    result = await coordinator.get("tools", "notes_append").execute(note)
    assert result.error["type"] == "toolward:approval_denied", result
    assert result.error["class"] == "approval_rejected"
    assert list(notes.iterdir()) == []
    # It is the approval alone that is missing.
    policy.write_text(policy.read_text() + "preapproved = true\n")
    await cleanup()
    await mounting(machine.config("notes-append") | arguments(policy))
    assert (await coordinator.get("tools", "notes_append").execute(note)).success
    assert list(notes.iterdir()) != []


class Approvals:
    """An application's approval system, and what it was asked."""

    def __init__(self, answer: str | Exception | None):
        self.answer = answer
        self.asked: list[tuple[Any, ...]] = []

    async def request_approval(self, *asked: Any) -> Any:
        self.asked.append(asked)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "ran"),
    [
        ("allow this call", True),
        ("deny", False),
        ("yes", False),
        (None, False),
        (ApprovalTimeoutError(), False),
        (RuntimeError("closed"), False),
    ],
)
async def test_the_applications_approval_system_is_asked_if_the_settings_say_so(
    machine, coordinator, mounting, answer, ran: bool
) -> None:
    policy, notes = folder_policy(machine, 0)
    system = coordinator.approval_system = Approvals(answer)
    await mounting(machine.config("notes-append", approvals="session") | arguments(policy))
    result = await coordinator.get("tools", "notes_append").execute({"note": "a", "text": "Tea with Ada."})
    assert result.success == ran, result
    assert (list(notes.iterdir()) != []) == ran
    [(prompt, options, seconds, default)] = system.asked
    assert "notes.append" in prompt and "Tea with Ada." in prompt
    assert "allow this call" in options and "deny" in options
    assert seconds > 0 and default == "deny"


@pytest.mark.asyncio
async def test_without_an_approval_system_nobody_can_be_asked(machine, coordinator) -> None:
    coordinator.approval_system = None
    with pytest.raises(ValueError, match="approval system"):
        await mount(coordinator, machine.config("text-stats", approvals="session"))


def test_blocks_are_those_of_the_kernel() -> None:
    picture = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}
    link = {"type": "resource_link", "uri": "https://a.example/x", "name": "x"}
    odd = {"type": "image", "mimeType": "image/png", "data": "!"}
    found = result_of({"content": [{"type": "text", "text": "a plot"}, picture, link, odd]}, 100)
    assert found.output == "a plot"
    assert found.model_dump()["content"] == [
        {"type": "text", "text": "a plot"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
        {"type": "text", "text": "[resource_link, uri: https://a.example/x, name: x]"},
        {"type": "text", "text": "[image, type: image/png]"},
    ]
    assert result_of({"content": [{"type": "text", "text": "a"}]}, 100).content is None


def test_a_result_is_cut_where_it_gets_too_long_for_a_model() -> None:
    text = {"content": [{"type": "text", "text": "x" * 50_010}]}
    end = "…[Truncated: 10 chars remaining]"
    for failed in (False, True):
        assert result_of(text | {"isError": failed}, 50_000).output == "x" * 50_000 + end
    value = {"structuredContent": {"text": "x" * 50_010}}
    whole = json.dumps(value["structuredContent"])
    found = result_of(value, 50_000).output
    assert found == f"{whole[:50_000]}…[Truncated: {len(whole) - 50_000} chars remaining]"
    assert result_of({"structuredContent": {"text": "x"}}, 50_000).output == {"text": "x"}


@pytest.mark.asyncio
async def test_a_long_result_of_a_tool_is_cut(machine, coordinator, mounting) -> None:
    await mounting(machine.config("json-query", max_output=100))
    query = {"query": ".", "data": ["word"] * 100}
    result = await coordinator.get("tools", "json_query").execute(query)
    assert result.success and "…[Truncated: " in result.output, result


@pytest.mark.asyncio
async def test_progress_reaches_hooks_before_the_result(machine, coordinator, mounting) -> None:
    policy, _ = folder_policy(machine, 201)
    await mounting(machine.config("files-search") | arguments(policy))
    seen: list[dict[str, Any]] = []

    async def hook(event: str, data: dict[str, Any]) -> HookResult:
        # A slow hook delays the result, and loses nothing.
        await asyncio.sleep(0.05)
        seen.append(data)
        return HookResult(action="continue")

    coordinator.hooks.register("toolward:progress", hook, name="test")
    # As orchestrators do before each call.
    coordinator._tool_dispatch_context = {"tool_call_id": "call-1"}
    result = await coordinator.get("tools", "files_search").execute({"pattern": "absent"})
    assert result.success, result
    reports = [(report["progress"], report["total"]) for report in seen]
    # The server drops reports that still wait when the result is known.
    assert reports and reports == [(0, 201), (100, 201), (200, 201)][: len(reports)]
    assert {report["tool_name"] for report in seen} == {"files_search"}
    assert {report["tool_call_id"] for report in seen} == {"call-1"}


@pytest.mark.asyncio
async def test_a_hook_that_fails_does_not_fail_the_call(machine, coordinator, mounting) -> None:
    policy, _ = folder_policy(machine, 1)
    await mounting(machine.config("files-search") | arguments(policy))
    asked = []

    async def hook(event: str, data: dict[str, Any]) -> HookResult:
        asked.append(event)
        raise RuntimeError("a defect of a hook")

    coordinator.hooks.register("toolward:progress", hook, name="test")
    result = await coordinator.get("tools", "files_search").execute({"pattern": "absent"})
    assert result.success, result
    assert asked


# It would take years.
ENDLESS = {"query": "last(range(1e15))", "data": None}


@pytest.mark.asyncio
async def test_a_call_that_takes_too_long_ends_here_and_in_the_server(
    machine, coordinator, mounting, monkeypatch, caplog
) -> None:
    await mounting(logging_calls(machine, monkeypatch, caplog) | {"timeouts": {"call": 2}})
    tool = coordinator.get("tools", "json_query")
    result = await tool.execute(ENDLESS)
    assert (result.error["type"], result.error["class"]) == ("timeout", "timeout"), result
    await until(lambda: "toolward:canceled" in caplog.text)
    # On a busy machine this one may take too long as well.
    async with asyncio.timeout(PATIENCE):
        while not (result := await tool.execute({"query": ".", "data": 1})).success:
            assert result.error["type"] == "timeout", result


@pytest.mark.asyncio
async def test_a_call_that_is_cancelled_ends_here_and_in_the_server(
    machine, coordinator, mounting, monkeypatch, caplog
) -> None:
    await mounting(logging_calls(machine, monkeypatch, caplog))
    tool = coordinator.get("tools", "json_query")
    call = asyncio.create_task(tool.execute(ENDLESS))
    await asyncio.sleep(1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(call, 20)
    await until(lambda: "toolward:canceled" in caplog.text)
    assert (await tool.execute({"query": ".", "data": 1})).success


def logging_calls(machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    """A server that says how calls end."""
    caplog.set_level("INFO")
    monkeypatch.setenv("TOOLWARD_LOG", "toolward_host=info")
    return machine.config("json-query", environment=[*machine.environment, "TOOLWARD_LOG"])


def folder_policy(machine: Machine, files: int) -> tuple[Path, Path]:
    """A policy that lets `files.search` read a folder, and `notes.append` write to another one; and that one."""
    folder, notes = machine.home / "files", machine.home / "notes"
    folder.mkdir()
    notes.mkdir()
    for number in range(files):
        (folder / f"{number}.txt").write_text("needle\n")
    policy = machine.home / "policy.toml"
    publisher = "key:cd841c22fb88b5562fa3e6a5fdd74be5dd34deb54cf96b6b16c43d6c4d4f74a5"
    policy.write_text(
        f"""
        [[workspace]]
        path = "/files"
        directory = "{folder}"
        [[workspace]]
        path = "/notes"
        directory = "{notes}"
        [[grant]]
        publisher = "{publisher}"
        tool = "files.search"
        requires = ["workspace:/files"]
        [[grant]]
        publisher = "{publisher}"
        tool = "notes.append"
        mutates = ["workspace:/notes"]
        """
    )
    return policy, notes


def arguments(policy: Path) -> dict[str, Any]:
    """A policy and the example key."""
    return {"arguments": {"trust-key": [str(KEY)], "policy-file": [str(policy)]}}
