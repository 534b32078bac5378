"""The settings that the Python half reads, as frozen values.

Vocabulary: imports only errors. Defaults, help texts and validation for people live in
`lua/lcursor/config.lua`; a contract test keeps names, types and defaults equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from lcursor.errors import ConfigInvalid


@dataclass(frozen=True, slots=True)
class CompletionConfig:
    """The completion slot."""

    model: str = "qwen2.5-coder-0.5b"
    """A name of the manifest, or the path of a GGUF file."""
    gpu_layers: int = -1
    """Layers on the GPU; -1 is all where the build has a GPU backend."""
    threads: int = 0
    """Threads of llama.cpp; 0 is the number of physical cores."""
    context_tokens: int = 4096
    """Cells of the KV cache."""
    prefix_tokens: int = 768
    """Most tokens before the cursor."""
    suffix_tokens: int = 96
    """Most tokens after the cursor."""
    files_tokens: int = -1
    """Most tokens of other files, and of the file's own top; -1 is what suits the machine."""
    max_tokens: int = 64
    """Most tokens of one suggestion."""
    max_lines: int = 12
    """Most lines of one suggestion."""
    budget_ms: int = 4000
    """Time that the model may write; then the suggestion is cut at what it has."""
    min_confidence: float = 0.5
    """Probability of a line, 0 to 1, below which it is not shown; 0 shows everything."""
    save_cache: bool = True
    """Whether what was read of a buffer is kept on disk for the next start."""
    backend: str = "inproc"
    """Where the model runs: "inproc" in the host itself, "endpoint" on a server."""
    endpoint_url: str = "http://127.0.0.1:8012"
    """Address of that server."""
    endpoint_api: str = "auto"
    """What it speaks: "llama.cpp", "ollama", "openai", or "auto" to find out."""
    endpoint_model: str = ""
    """A name that it knows; "" is the only one it has."""
    endpoint_family: str = ""
    """Family of that model; "" is what the name says."""
    endpoint_key_env: str = ""
    """Name of the environment's variable with its key."""
    endpoint_key_command: str = ""
    """Command that prints the key."""


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """The index of a project."""

    enabled: bool = True
    """Whether projects are indexed and searched at all."""
    auto: bool = True
    """Whether an index that was begun once goes on when a file of its project is entered."""
    embedder: str = "minilm-l6-v2-int8"
    """A name of the manifest; "" searches by words alone."""


@dataclass(frozen=True, slots=True)
class Config:
    """All settings that cross the wire."""

    completion: CompletionConfig = field(default_factory=CompletionConfig)
    index: IndexConfig = field(default_factory=IndexConfig)


Section = TypeVar("Section", CompletionConfig, IndexConfig)


def from_table(table: Mapping[str, Any]) -> Config:
    """Read the table of a `hello` or `config` message.

    Keys that are not ours are skipped: most settings concern the editor half alone.

    Raises:
        ConfigInvalid: a value has the wrong type.
    """
    return Config(
        completion=_section(table, "completion", CompletionConfig),
        index=_section(table, "index", IndexConfig),
    )


def _section(table: Mapping[str, Any], name: str, kind: type[Section]) -> Section:
    raw = table.get(name) or {}
    if not isinstance(raw, Mapping):
        raise ConfigInvalid(f"{name}: expected a table", "See :help lcursor-config")
    values: dict[str, Any] = {}
    for spec in fields(kind):
        if spec.name not in raw:
            continue
        value, default = raw[spec.name], spec.default
        if isinstance(default, float) and type(value) is int:
            value = float(value)  # Lua has one type of number
        if type(value) is not type(default):
            raise ConfigInvalid(
                f"{name}.{spec.name}: expected {type(default).__name__}, "
                f"found {type(value).__name__}",
                "See :help lcursor-config",
            )
        values[spec.name] = value
    return kind(**values)
