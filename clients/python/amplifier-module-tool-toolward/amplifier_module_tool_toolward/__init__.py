"""Amplifier's tools from signed bundles, run by `toolward serve`."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from .config import Config
from .service import PROGRESS, Service

__all__ = ["mount"]
__amplifier_module_type__ = "tool"

logger = logging.getLogger(__name__)


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Awaitable[None]]:
    """Starts the server and mounts its tools; returns what ends it.

    Raises ValueError for a configuration that is not valid, and ServerError for a server that
    does not start. An empty configuration mounts nothing: which program runs, the settings name.
    """
    if not config:
        logger.warning("no tools are mounted: the configuration has no `command`")
        return _nothing
    service = Service(coordinator, Config.read(config or {}))
    await service.open()
    try:
        coordinator.register_contributor("observability.events", "tool-toolward", lambda: [PROGRESS])
    except BaseException:
        await service.close()
        raise
    return service.close


async def _nothing() -> None:
    """The cleanup of a module that started nothing."""
