"""Read the settings from the table of a message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final, TypeVar

from lcursor.config import (
    PROVIDER_TOKENS,
    PROVIDERS,
    AgentConfig,
    ChatConfig,
    CompletionConfig,
    Config,
    EditConfig,
    ForeignAgentConfig,
    IndexConfig,
    McpConfig,
    McpServerConfig,
    ModelConfig,
    NextEditConfig,
    PrivacyConfig,
    options,
)
from lcursor.errors import ConfigInvalid

EXAMPLE = 'Write it as models = { big = { url = "http://127.0.0.1:8012" } }'
SERVER_EXAMPLE = 'Write it as mcp = { servers = { git = { command = { "mcp-server-git" } } } }'
SERVER_NAME: Final = re.compile(r"[a-z0-9-]+(_[a-z0-9-]+)*")
Section = TypeVar(
    "Section",
    CompletionConfig,
    PrivacyConfig,
    IndexConfig,
    ChatConfig,
    EditConfig,
    NextEditConfig,
    AgentConfig,
)


def from_table(table: Mapping[str, Any]) -> Config:
    """Read the table of a `hello` or `config` message.

    Unknown keys are skipped: many settings concern only the Lua side.

    Raises:
        ConfigInvalid: a value has the wrong type, or is none of those that there are.
    """
    models = _models(table.get("models") or {})
    completion = _section(table, "completion", CompletionConfig)
    next_edit = _section(table, "next_edit", NextEditConfig)
    privacy = _section(table, "privacy", PrivacyConfig)
    named = {model.name: model for model in models}
    return Config(
        completion=replace(
            completion, endpoint=named.get(completion.model), excluded=privacy.exclude
        ),
        privacy=privacy,
        index=_section(table, "index", IndexConfig),
        chat=replace(_section(table, "chat", ChatConfig), models=models),
        edit=_section(table, "edit", EditConfig),
        next_edit=replace(next_edit, endpoint=named.get(next_edit.model)),
        agent=replace(
            _section(table, "agent", AgentConfig), foreign=_agents(table.get("agents") or {})
        ),
        mcp=McpConfig(mcp_servers((table.get("mcp") or {}).get("servers") or {})),
    )


def _section(table: Mapping[str, Any], name: str, kind: type[Section]) -> Section:
    raw = table.get(name) or {}
    if not isinstance(raw, Mapping):
        raise ConfigInvalid(f"{name}: expected a table", "See :help lcursor-config")
    return kind(**_values(raw, name, kind))


def _values(raw: Mapping[str, Any], where: str, kind: type) -> dict[str, Any]:
    """Return the fields of a settings class that a table has, each of its type."""
    values: dict[str, Any] = {}
    for spec in options(kind):
        if spec.name not in raw:
            continue
        value, default = raw[spec.name], spec.default
        if isinstance(default, float) and type(value) is int:
            value = float(value)  # Lua has one type of number
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


def _models(table: object) -> tuple[ModelConfig, ...]:
    """Read the table of named models."""
    if not isinstance(table, Mapping):
        raise ConfigInvalid("models: expected a table", EXAMPLE)
    found = []
    for name, one in table.items():
        if not isinstance(name, str) or not name or not isinstance(one, Mapping):
            raise ConfigInvalid(f"models: expected a name and a table, found {name!r}", EXAMPLE)
        known = [spec.name for spec in options(ModelConfig)]
        odd = sorted(str(key) for key in one if key not in known)
        if odd:
            # The settings of the command line are not checked by Lua.
            raise ConfigInvalid(
                f"models.{name}: no such setting: {', '.join(odd)}", f"Use {', '.join(known)}"
            )
        values = _values(one, f"models.{name}", ModelConfig)
        found.append(ModelConfig(name, **{**_defaults(name, values), **values}))
    return tuple(sorted(found, key=lambda model: model.name))


def mcp_servers(table: object) -> tuple[McpServerConfig, ...]:
    """Read a table of servers by name.

    Raises:
        ConfigInvalid: a name, a field or a value is wrong.
    """
    if not isinstance(table, Mapping):
        raise ConfigInvalid("mcp.servers: expected a table", SERVER_EXAMPLE)
    return tuple(_mcp_server(name, table[name]) for name in sorted(table, key=str))


def _mcp_server(name: object, one: object) -> McpServerConfig:
    if not isinstance(name, str) or not SERVER_NAME.fullmatch(name):
        raise ConfigInvalid(
            f"mcp.servers: {name!r} is no name of a server",
            "Use lower-case letters, digits, - and single _ between them",
        )
    where = f"mcp.servers.{name}"
    if not isinstance(one, Mapping):
        raise ConfigInvalid(f"{where}: expected a table", SERVER_EXAMPLE)
    known = {spec.name: type(spec.default) for spec in options(McpServerConfig)}
    values: dict[str, Any] = {}
    for key, value in one.items():
        if key not in known:
            raise ConfigInvalid(f"{where}: no such setting: {key}", f"Use {', '.join(known)}")
        read = _texts_by_name if key in ("env", "headers") else _strings
        values[key] = read(value) if known[key] is tuple else value
        if type(values[key]) is not known[key]:
            kind = "a text" if known[key] is str else "a list of texts"
            kind = "texts by name" if read is _texts_by_name else kind
            raise ConfigInvalid(f"{where}.{key}: expected {kind}", SERVER_EXAMPLE)
    server = McpServerConfig(name, **values)
    if bool(server.command) == bool(server.url):
        raise ConfigInvalid(f"{where}: it needs either a command or a url", SERVER_EXAMPLE)
    return server


def _texts_by_name(value: object) -> object:
    """Return a table of strings as pairs; in Lua an empty one may be an empty list."""
    pairs = sorted(value.items(), key=repr) if isinstance(value, Mapping) else value
    is_right = isinstance(pairs, list) and all(
        isinstance(pair, tuple) and all(isinstance(each, str) for each in pair) for pair in pairs
    )
    return tuple(pairs) if is_right and isinstance(pairs, list) else value


def _agents(table: object) -> tuple[ForeignAgentConfig, ...]:
    """Read the table of foreign agents."""
    hint = 'Write it as agents = { codex = { model = "big" } }'
    if not isinstance(table, Mapping):
        raise ConfigInvalid("agents: expected a table", hint)
    names, found = [spec.name for spec in fields(ForeignAgentConfig)][1:], []
    for name, row in table.items():
        if not isinstance(row, Mapping) or not set(row) <= set(names):
            raise ConfigInvalid(f"agents.{name}: expected {', '.join(names)}", hint)
        lists = {key: _strings(row.get(key) or []) for key in ("command", "hosts")}
        env = dict(row.get("env") or {})
        for key, value in {**lists, "env": tuple(env.values())}.items():
            if not isinstance(value, tuple) or not all(isinstance(each, str) for each in value):
                raise ConfigInvalid(f"agents.{name}.{key}: expected strings", hint)
        found.append(ForeignAgentConfig(str(name), **{**row, **lists, "env": env}))
    return tuple(sorted(found, key=lambda agent: agent.name))


def _defaults(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults that the provider of a model sets."""
    wanted = values.get("provider")
    if not wanted:
        return {}
    if wanted not in PROVIDERS:
        raise ConfigInvalid(
            f"models.{name}.provider: there is no {wanted!r}",
            f"Use {', '.join(PROVIDERS)}, or set the url",
        )
    provider = PROVIDERS[wanted]
    # Gateways at other addresses have OpenAI's chat API rather than these.
    is_own = not values.get("url") or provider.api not in ("responses", "gemini")
    return {
        "url": provider.url,
        "api": provider.api if is_own else "openai",
        "model": provider.model,
        "key_env": "" if values.get("key_command") else provider.key_env,
        "context_tokens": PROVIDER_TOKENS,
    }


def _strings(value: object) -> object:
    """Return a list of strings as a tuple; in Lua an empty one may be an empty table."""
    if isinstance(value, Mapping):
        value = list(value.values())
    is_right = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return tuple(value) if is_right and isinstance(value, list) else value
