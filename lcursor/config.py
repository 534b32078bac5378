"""The settings that the host reads, as frozen values.

Defaults and help texts are in `lua/lcursor/schema.lua`, validation in `lua/lcursor/config.lua`; a
contract test keeps names, types and defaults equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from lcursor.errors import ConfigInvalid


@dataclass(frozen=True, slots=True)
class CompletionConfig:
    """Settings of completion."""

    model: str = "qwen2.5-coder-0.5b"
    """A name of the manifest, or the path of a GGUF file."""
    gpu_layers: int = -1
    """Layers on the GPU; -1 is all, if the build supports a GPU."""
    main_gpu: int = 0
    """Index of the GPU; -1 splits the model over all."""
    threads: int = 0
    """Threads of llama.cpp; 0 is the number of physical cores."""
    context_tokens: int = -1
    """Size of the KV cache; -1, here and below, depends on the machine, see
    `fim.placement.resolve`."""
    kv_type: str = "f16"
    """Type of the keys and values in the KV cache: "f16" or "q8_0"."""
    prefix_tokens: int = -1
    """Maximum before the cursor."""
    suffix_tokens: int = -1
    """Maximum after the cursor."""
    files_tokens: int = -1
    """Maximum from other files, and from the imports of the current one."""
    max_tokens: int = 64
    """Maximum length of a suggestion."""
    max_lines: int = 12
    """Maximum length of a suggestion."""
    budget_ms: int = 4000
    """Time limit of a suggestion; the rest comes in idle time."""
    min_confidence: float = 0.5
    """Probability of a line, 0 to 1, below which it is not shown; 0 shows everything."""
    idle_minutes: int = -1
    """Time without a request after which the model is unloaded; 0 for never."""
    save_cache: bool = True
    """Whether the KV cache is saved to disk for the next start."""
    backend: str = "inproc"
    """Where the model runs: "inproc" in the host, "endpoint" on a server."""
    endpoint_url: str = "http://127.0.0.1:8012"
    """Address of the server."""
    endpoint_api: str = "auto"
    """Its API: "llama.cpp", "ollama", "openai", or "auto" to detect it."""
    endpoint_model: str = ""
    """Name of the model on the server; "" for its only one."""
    endpoint_family: str = ""
    """FIM family of the model; "" to infer it from the name."""
    endpoint_key_env: str = ""
    """Environment variable with the key."""
    endpoint_key_command: str = ""
    """Command that prints the key."""
    secrets: tuple[str, ...] = ()
    """Globs of files that are never read or indexed, besides the built-in ones."""


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """Settings of the index."""

    enabled: bool = True
    """Whether projects are indexed and searched at all."""
    embedder: str = "minilm-l6-v2-int8"
    """A name of the manifest; "" disables semantic search."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A chat model on another server."""

    name: str
    """The name that the user gave it."""
    url: str = ""
    """Address of the server; `unix:///path` for a socket."""
    api: str = "auto"
    """Its API: "llama.cpp", "ollama", "openai", or "auto" to detect it."""
    model: str = ""
    """Name of the model on the server; "" for its only one."""
    key_env: str = ""
    """Environment variable with the key."""
    key_command: str = ""
    """Command that prints the key."""
    context_tokens: int = 0
    """Context of the model; 0 to ask the server."""


@dataclass(frozen=True, slots=True)
class ChatConfig:
    """Settings of the chat."""

    enabled: bool = True
    """Whether there is a chat."""
    model: str = ""
    """A name in `models` or of the manifest, or the path of a GGUF file; "" for the recommended
    one."""
    models: tuple[ModelConfig, ...] = ()
    """Models on other servers."""
    server: str = "auto"
    """The local server: "auto" finds or starts one, "off" never does."""
    context_tokens: int = 0
    """Context of the local server; 0 for what fits."""
    max_tokens: int = 0
    """Limit of an answer; 0 for none."""
    temperature: float = 0.2
    """Sampling temperature."""
    idle_minutes: int = 15
    """Time without a request after which the local server unloads the model."""
    rules: bool = True
    """Whether to add the project's rules files."""


@dataclass(frozen=True, slots=True)
class EditConfig:
    """Settings of edits."""

    enabled: bool = True
    """Whether there are edits."""
    model: str = ""
    """A name like `chat.model`; "" for the chat's."""
    planner: str = ""
    """The model that plans and sketches project edits; "" is `model`."""
    format: str = "auto"
    """Form of the reply: "whole", "search_replace", "udiff", or "auto" for what measured best."""
    max_tokens: int = 4096
    """Maximum length of a rewrite."""
    retries: int = 1
    """How often a rewrite that fails its checks is tried again."""
    formatter: str = ""
    """Command that formats standard input, `{path}` for the file's name; "" for none."""
    lint: str = ""
    """Command that is run in a copy of the project, `{path}` for the file; "" for none."""
    test: str = ""
    """Command that is run in a copy of the project; "" for none."""
    check_seconds: float = 20.0
    """Time limit of each of these commands."""


@dataclass(frozen=True, slots=True)
class Config:
    """All settings that cross the wire."""

    completion: CompletionConfig = field(default_factory=CompletionConfig)
    index: IndexConfig = field(default_factory=IndexConfig)
    chat: ChatConfig = field(default_factory=ChatConfig)
    edit: EditConfig = field(default_factory=EditConfig)


Section = TypeVar("Section", CompletionConfig, IndexConfig, ModelConfig, ChatConfig, EditConfig)


def from_table(table: Mapping[str, Any]) -> Config:
    """Read the table of a `hello` or `config` message.

    Unknown keys are skipped: many settings concern only the Lua side.

    Raises:
        ConfigInvalid: a value has the wrong type.
    """
    return Config(
        completion=_section(table, "completion", CompletionConfig),
        index=_section(table, "index", IndexConfig),
        chat=_section(table, "chat", ChatConfig),
        edit=_section(table, "edit", EditConfig),
    )


def _section(table: Mapping[str, Any], name: str, kind: type[Section]) -> Section:
    raw = table.get(name) or {}
    if not isinstance(raw, Mapping):
        raise ConfigInvalid(f"{name}: expected a table", "See :help lcursor-config")
    return kind(**_values(raw, name, kind))


def _values(raw: Mapping[str, Any], where: str, kind: type) -> dict[str, Any]:
    """Return the fields of a settings class that a table has, each of its type."""
    values: dict[str, Any] = {}
    for spec in fields(kind):
        if spec.name not in raw:
            continue
        value, default = raw[spec.name], spec.default
        if isinstance(default, float) and type(value) is int:
            value = float(value)  # Lua has one type of number
        elif kind is ChatConfig and spec.name == "models":
            value = _models(value, f"{where}.{spec.name}")
        elif isinstance(default, tuple):
            value = _strings(value)
        if type(value) is not type(default):
            raise ConfigInvalid(
                f"{where}.{spec.name}: expected {type(default).__name__}, "
                f"found {type(value).__name__}",
                "See :help lcursor-config",
            )
        values[spec.name] = value
    return values


def _models(value: object, where: str) -> object:
    """Read the table of named models; in Lua an empty one may be an empty list."""
    if value == []:
        return ()
    if not isinstance(value, Mapping):
        return value
    found = []
    for name, one in value.items():
        if not isinstance(name, str) or not name or not isinstance(one, Mapping):
            raise ConfigInvalid(
                f"{where}: expected a name and a table, found {name!r}",
                'Write it as models = { big = { url = "http://127.0.0.1:8012" } }',
            )
        known = [spec.name for spec in fields(ModelConfig) if spec.name != "name"]
        odd = sorted(str(key) for key in one if key not in known)
        if odd:
            # The Lua schema does not check this table.
            raise ConfigInvalid(
                f"{where}.{name}: no such setting: {', '.join(odd)}",
                f"Use {', '.join(known)}",
            )
        found.append(ModelConfig(name, **_values(one, f"{where}.{name}", ModelConfig)))
    return tuple(sorted(found, key=lambda model: model.name))


def _strings(value: object) -> object:
    """Return a list of strings as a tuple; in Lua an empty one may be an empty table."""
    if isinstance(value, Mapping):
        value = list(value.values())
    is_right = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return tuple(value) if is_right and isinstance(value, list) else value
