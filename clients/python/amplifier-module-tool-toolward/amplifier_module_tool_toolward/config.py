"""The module's configuration: the server's command line, its environment, and how long to wait.

Only what is named here is passed on. In particular there is no way to let the server take an
agent's approval, serve unsigned bundles or run without confinement. `approvals: session` lets it take
the answers of the application's approval system.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Where the operator's configuration, bundles and state are.
DEFAULT_ENVIRONMENT = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")

KEYS = ("command", "bundles", "arguments", "environment", "timeouts", "max_output", "approvals")

# Options of `toolward serve` whose values are paths; those in LISTS may be given again.
PATHS = ("cache-dir", "config", "policy-file", "state-dir", "store-dir", "trust-key")
LISTS = ("policy-file", "trust-key")
NUMBERS = ("defer-above",)

# Seconds. The server bounds each call itself, at five minutes from its beginning on.
TIMEOUTS = {"start": 60.0, "call": 600.0, "stop": 10.0}
MAX_TIMEOUT = 86_400.0

# Characters of a result that a model reads; Amplifier's contract of tools has the number.
MAX_OUTPUT = 50_000


@dataclass(frozen=True)
class Config:
    """A checked configuration."""

    command: tuple[str, ...]
    environment: dict[str, str]
    start_timeout: float
    call_timeout: float
    stop_timeout: float
    max_output: int
    asks: bool

    @classmethod
    def read(cls, raw: Mapping[str, Any], process: Mapping[str, str] = os.environ) -> "Config":
        """Checks a module's configuration. Raises ValueError."""
        _known("the configuration", raw, KEYS)
        command = [_path("command", raw.get("command")), "serve", "--stdio"]
        command += [f"--bundle={_path('bundles', path)}" for path in _list("bundles", raw.get("bundles", []))]
        arguments = _table("arguments", raw.get("arguments", {}))
        _known("arguments", arguments, PATHS + NUMBERS)
        for name, value in arguments.items():
            values = _list(name, value) if name in LISTS else [value]
            check = _number if name in NUMBERS else _path
            # One word for each, so that a value is never taken for an option.
            command += [f"--{name}={check(name, value)}" for value in values]
        asks = _asks(raw.get("approvals", "none"))
        if asks:
            command.append("--trust-client")
        names = [_variable(name) for name in _list("environment", raw.get("environment", DEFAULT_ENVIRONMENT))]
        timeouts = _table("timeouts", raw.get("timeouts", {}))
        _known("timeouts", timeouts, TIMEOUTS)
        waits = {name: _seconds(name, timeouts.get(name, default)) for name, default in TIMEOUTS.items()}
        return cls(
            tuple(command),
            {name: process[name] for name in names if name in process},
            waits["start"],
            waits["call"],
            waits["stop"],
            _number("max_output", raw.get("max_output", MAX_OUTPUT)),
            asks,
        )


def _known(where: str, table: Mapping[str, Any], known: Any) -> None:
    for name in table:
        if name not in known:
            raise ValueError(f"{where}: `{name}` is not supported; expected one of {', '.join(known)}")


def _table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name}: expected a table, found {value!r}")
    return value


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name}: expected a list, found {value!r}")
    return list(value)


def _path(name: str, value: Any) -> str:
    if not isinstance(value, str) or not os.path.isabs(value) or "\0" in value:
        raise ValueError(f"{name}: expected an absolute path, found {value!r}")
    return value


def _number(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 32:
        raise ValueError(f"{name}: expected a number, found {value!r}")
    return value


def _asks(value: Any) -> bool:
    if value not in ("none", "session"):
        raise ValueError(f"approvals: expected `none` or `session`, found {value!r}")
    return value == "session"


def _variable(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError(f"environment: expected the name of a variable, found {value!r}")
    return value


def _seconds(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not 0 < value <= MAX_TIMEOUT:
        raise ValueError(f"timeouts.{name}: expected seconds, up to {MAX_TIMEOUT:g}, found {value!r}")
    return float(value)
