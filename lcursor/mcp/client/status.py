"""The state of a server for a project: what it offers, and why it cannot be used."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lcursor.config import McpServerConfig
from lcursor.mcp.client.records import ServerTool


@dataclass(slots=True)
class ServerStatus:
    """A server of the settings, for a project."""

    settings: McpServerConfig
    problem: str = ""
    """Why it cannot be used, or why it ended."""
    is_broken: bool = False
    """Whether the settings are the problem."""
    is_ready: bool = False
    starts: int = 0
    """The number of the helper's start with which it is ready."""
    is_starting: bool = False
    is_stale: bool = False
    """Whether it said that its tools have changed."""
    tools: dict[str, ServerTool] = field(default_factory=dict)
    unusable: dict[str, str] = field(default_factory=dict)
    """Why further tools cannot be used, by name."""
    resources: list[Mapping[str, Any]] = field(default_factory=list)
    """As the helper lists them; texts of the server that nobody has cleaned."""
    prompts: list[Mapping[str, Any]] = field(default_factory=list)
    revision: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while it is started or listed."""
