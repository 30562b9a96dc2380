"""What a configuration may say, and what the server is started with."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from amplifier_module_tool_toolward import mount
from amplifier_module_tool_toolward.config import Config

from conftest import BUNDLES, KEY, ROOT, servers

COMMAND = {"command": "/usr/bin/toolward"}


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({}, "command"),
        ({"command": "toolward"}, "command"),
        ({"command": "./toolward"}, "command"),
        ({"command": ["/usr/bin/toolward"]}, "command"),
        ({"command": "/usr/bin/tool\0ward"}, "command"),
        (COMMAND | {"bundles": "/a.toolbundle"}, "bundles"),
        (COMMAND | {"bundles": ["a.toolbundle"]}, "bundles"),
        (COMMAND | {"bundles": ["--no-confine"]}, "bundles"),
        (COMMAND | {"args": []}, "args"),
        (COMMAND | {"arguments": ["--no-confine"]}, "arguments"),
        # What approves.
        (COMMAND | {"arguments": {"trust-client": True}}, "trust-client"),
        # What leaves the sandbox or the signature out.
        (COMMAND | {"arguments": {"no-confine": True}}, "no-confine"),
        (COMMAND | {"arguments": {"dev": "/work"}}, "dev"),
        # What listens.
        (COMMAND | {"arguments": {"http": "127.0.0.1:0"}}, "http"),
        (COMMAND | {"arguments": {"no-token": True}}, "no-token"),
        (COMMAND | {"arguments": {"policy-file": ["policy.toml"]}}, "policy-file"),
        (COMMAND | {"arguments": {"policy-file": "/policy.toml"}}, "policy-file"),
        (COMMAND | {"arguments": {"config": ["/toolward.toml"]}}, "config"),
        (COMMAND | {"arguments": {"defer-above": True}}, "defer-above"),
        (COMMAND | {"arguments": {"defer-above": "1 --no-confine"}}, "defer-above"),
        (COMMAND | {"environment": "HOME"}, "environment"),
        (COMMAND | {"environment": ["HOME=/root"]}, "environment"),
        (COMMAND | {"environment": [""]}, "environment"),
        (COMMAND | {"timeouts": {"start": 0}}, "start"),
        (COMMAND | {"timeouts": {"call": "10"}}, "call"),
        (COMMAND | {"timeouts": {"stop": float("nan")}}, "stop"),
        (COMMAND | {"timeouts": {"restart": 1}}, "restart"),
        (COMMAND | {"max_output": "all"}, "max_output"),
        (COMMAND | {"max_output": -1}, "max_output"),
        (COMMAND | {"approvals": True}, "approvals"),
        (COMMAND | {"approvals": "always"}, "approvals"),
    ],
)
def test_what_is_not_allowed_is_refused_by_its_name(config: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Config.read(config)


def test_an_option_and_its_value_are_one_word() -> None:
    config = Config.read(COMMAND | {"bundles": ["/a"], "arguments": {"policy-file": ["/p", "/q"], "defer-above": 3}})
    assert config.command[1:] == ("serve", "--stdio", "--bundle=/a", "--policy-file=/p", "--policy-file=/q", "--defer-above=3")
    assert config.max_output == 50_000 and not config.asks


def test_only_the_settings_let_the_server_take_answers() -> None:
    assert "--trust-client" not in Config.read(COMMAND | {"approvals": "none"}).command
    assert Config.read(COMMAND | {"approvals": "session"}).command[-1] == "--trust-client"


@pytest.mark.asyncio
async def test_nothing_is_started_for_a_configuration_that_is_refused(machine, coordinator) -> None:
    config = machine.config("text-stats")
    with pytest.raises(ValueError, match="no-confine"):
        await mount(coordinator, config | {"arguments": {"no-confine": True}})
    with pytest.raises(ValueError, match="absolute"):
        await mount(coordinator, config | {"command": os.path.relpath(machine.toolward)})
    assert coordinator.mount_history == []
    assert servers() == []


@pytest.mark.asyncio
async def test_the_server_gets_the_arguments_and_the_variables_that_are_named(machine, mounting, monkeypatch) -> None:
    monkeypatch.setenv("API_KEY", "a secret of the application")
    monkeypatch.setenv("TOOL_TOKEN", "for a tool")
    await mounting(machine.config("text-stats", environment=[*machine.environment, "TOOL_TOKEN", "NOT_SET"]))
    [server] = servers()
    words = Path(f"/proc/{server}/cmdline").read_bytes().decode().split("\0")[:-1]
    bundle = f"--bundle={BUNDLES}/text-stats.toolbundle"
    assert words == [machine.toolward, "serve", "--stdio", bundle, f"--trust-key={KEY}"]
    variables = dict(line.split("=", 1) for line in Path(f"/proc/{server}/environ").read_text().split("\0")[:-1])
    assert variables == machine.environment | {"TOOL_TOKEN": "for a tool"}
    assert os.readlink(f"/proc/{server}/cwd") == "/"


@pytest.mark.asyncio
async def test_by_default_the_server_gets_what_says_where_its_files_are(machine, mounting, monkeypatch) -> None:
    monkeypatch.setenv("API_KEY", "a secret of the application")
    await mounting(machine.config("text-stats"))
    [server] = servers()
    variables = Path(f"/proc/{server}/environ").read_text()
    assert f"HOME={machine.home}\0" in variables
    assert "API_KEY" not in variables and "PATH=" not in variables


@pytest.mark.asyncio
async def test_ctrl_c_of_the_terminal_does_not_reach_the_server(machine, mounting) -> None:
    await mounting(machine.config("text-stats"))
    [server] = servers()
    # A terminal signals its foreground group, which is this process's.
    assert os.getpgid(server) != os.getpgrp()
    assert os.getsid(server) != os.getsid(0)


def test_the_example_of_the_book_is_valid() -> None:
    page = (ROOT / "docs/src/amplifier.md").read_text()
    [tool] = yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])["tools"]
    assert tool["module"] == "tool-toolward"
    config = Config.read(tool["config"])
    assert config.command[:2] == ("/usr/local/bin/toolward", "serve")
    assert config.call_timeout == 120
