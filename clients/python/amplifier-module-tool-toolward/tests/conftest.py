"""The real `toolward`, the example bundles, and a person's machine of its own for each test."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from amplifier_core.testing import MockCoordinator
from amplifier_module_tool_toolward import mount

ROOT = Path(__file__).resolve().parents[4]
BUNDLES = ROOT / "examples/bundles"
KEY = ROOT / "examples/keys/example.pub.pem"
# Far above what anything here takes, also on a busy machine.
PATIENCE = 60.0


@pytest.fixture(scope="session")
def toolward() -> str:
    """The command."""
    command = os.environ.get("TOOLWARD")
    if not command or not os.access(command, os.X_OK):
        pytest.exit("set TOOLWARD to the `toolward` that these tests run", returncode=3)
    return os.path.abspath(command)


class Machine:
    """A home directory, and the command with it."""

    def __init__(self, toolward: str, home: Path):
        self.toolward = toolward
        self.home = home
        cache = os.environ.get("XDG_CACHE_HOME")
        self.environment = {"HOME": str(home)} | ({"XDG_CACHE_HOME": cache} if cache else {})

    def run(self, *words: str | Path) -> str:
        """Runs the command, which has to succeed."""
        ended = subprocess.run(
            [self.toolward, *map(str, words)],
            env=self.environment, cwd=self.home, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def config(self, *examples: str, **more: Any) -> dict[str, Any]:
        """A configuration with these example bundles, or with what is installed."""
        config: dict[str, Any] = {"command": self.toolward}
        if examples:
            config["bundles"] = [str(BUNDLES / f"{example}.toolbundle") for example in examples]
            config["arguments"] = {"trust-key": [str(KEY)]}
        return config | more

    def install(self, *examples: str) -> None:
        """Installs example bundles, signed with the key of a publisher who is trusted."""
        for example in examples:
            folder = self.home / example
            if not folder.exists():
                self.run("publisher", "sign", BUNDLES / f"{example}.toolbundle", "--key", "own.pem", "-o", folder)
                # It is signed with the example key, which nobody trusts.
                (folder / "provenance.dsse.json").unlink()
            self.run("install", folder)

    def trust(self, *prefixes: str) -> None:
        """Makes a key, and trusts it as that of the examples' publisher."""
        name = "toolward-examples"
        self.run("publisher", "keys", "new", "--out", "own.pem")
        self.run("publisher", "new", name, "--public-key", "own.pub.pem", "--key", "own.pem", "-o", "p.json")
        fingerprint = json.loads(self.run("publisher", "show", "p.json", "--json"))["fingerprint"]
        flags = [flag for prefix in prefixes for flag in ("--prefix", prefix)]
        self.run("trust", "add", "p.json", "--fingerprint", fingerprint, *flags)


@pytest.fixture
def machine(toolward: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine whose user runs this test."""
    machine = Machine(toolward, tmp_path)
    for name, value in machine.environment.items():
        monkeypatch.setenv(name, value)
    return machine


@pytest.fixture
def coordinator() -> MockCoordinator:
    """amplifier-core's own coordinator for tests."""
    return MockCoordinator()


Mounting = Callable[[dict[str, Any]], Awaitable[Callable[[], Awaitable[None]]]]


@pytest_asyncio.fixture
async def mounting(coordinator: MockCoordinator) -> AsyncIterator[Mounting]:
    """Mounts the module; what was mounted is cleaned up when the test ends."""
    cleanups = []

    async def mounted(config: dict[str, Any]) -> Callable[[], Awaitable[None]]:
        cleanups.append(await mount(coordinator, config))
        return cleanups[-1]

    yield mounted
    for cleanup in cleanups:
        await cleanup()


@pytest.fixture(autouse=True)
def no_server_is_left() -> Iterator[None]:
    """No test leaves a server, whether it succeeds or not."""
    yield
    assert servers() == []


def servers() -> list[int]:
    """The processes that this one started and that are there still."""
    children: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        # A thread may have ended, and while a child ends its list is not exact.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            children.update(map(int, (task / "children").read_text().split()))
    return sorted(child for child in children if state(child) not in ("", "Z"))


def state(process: int, thread: str = "") -> str:
    """The state of a process, or of a thread of it; empty where it is gone."""
    try:
        return Path(f"/proc/{process}", *(["task", thread] if thread else []), "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def halt(process: int) -> None:
    """Stops a process, and returns once none of its threads runs."""
    os.kill(process, signal.SIGSTOP)
    for task in Path(f"/proc/{process}/task").iterdir():
        while state(process, task.name) != "T":
            time.sleep(0.001)


async def until(condition: Callable[[], Any]) -> None:
    """Waits for a condition."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.02)


def warned(caplog: pytest.LogCaptureFixture, words: str) -> bool:
    """Whether a warning with these words was logged."""
    return any(words in record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)
