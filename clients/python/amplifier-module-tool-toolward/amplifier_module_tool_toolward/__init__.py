"""Amplifier's tools from signed bundles, run by `toolward serve`."""

from collections.abc import Awaitable, Callable
from typing import Any

from .config import Config
from .service import PROGRESS, Service

__all__ = ["mount"]
__amplifier_module_type__ = "tool"


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Awaitable[None]]:
    """Starts the server and mounts its tools; returns what ends it.

    Raises ValueError for a configuration that is not valid, and ServerError for a server that
    does not start.
    """
    service = Service(coordinator, Config.read(config or {}))
    await service.open()
    try:
        coordinator.register_contributor("observability.events", "tool-toolward", lambda: [PROGRESS])
    except BaseException:
        await service.close()
        raise
    return service.close
