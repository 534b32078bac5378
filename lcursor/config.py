"""The settings that the host reads, as frozen values.

Defaults and help texts are in `lua/lcursor/config/schema.lua`, validation is in `init.lua` next to
it; a contract test keeps names, types and defaults equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args

from lcursor.errors import ConfigInvalid

AUTO = "auto"
"""The value of `completion.model` that leaves the choice to lcursor."""
FIXED = {"is_option": False}
"""Metadata of fields that are not options of the user; benchmarks and tests set some of them."""


def options(kind: type) -> list[Field[Any]]:
    """Return the fields of a settings class that are options of the user."""
    return [spec for spec in fields(kind) if spec.default is not MISSING and spec.metadata != FIXED]


class Provider(NamedTuple):
    """A hosted service: what `provider` of a model stands for."""

    url: str
    key_env: str
    """The usual environment variable of its key."""
    model: str = ""
    """Its model for code; "" if the user has to choose one."""
    api: str = "openai"


PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider(
        "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "claude-sonnet-5", "anthropic"
    ),
    # Its newer models reason and call tools at once only with this API.
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-5.6", "responses"),
    # Its own API shows the model's thoughts, says why an answer was cut off, and is advised by
    # Google; the one that imitates OpenAI's is a beta.
    "gemini": Provider(
        "https://generativelanguage.googleapis.com/v1beta",
        "GEMINI_API_KEY",
        "gemini-flash-latest",
        "gemini",
    ),
    # Its default would choose a company that the user did not name.
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-v4-flash"),
    "moonshot": Provider("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "kimi-k2.6"),
    "zai": Provider("https://api.z.ai/api/paas/v4", "ZAI_API_KEY", "glm-5.2"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral-medium-latest"),
}
PROVIDER_TOKENS = 128_000
"""Context of a hosted model by default. All have at least so much, and more is slow and costs."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A model on a server."""

    name: str
    """The name that the user gave it."""
    provider: str = ""
    """A name of `PROVIDERS`, which sets the defaults of the other fields; "" for none."""
    url: str = ""
    """Address of the server; `unix:///path` for a socket."""
    api: str = "auto"
    """Its API: a name of `llm.providers.APIS`, or "auto" to detect it."""
    model: str = ""
    """Name of the model on the server; "" for its only one."""
    family: str = ""
    """Family of a completion or next-edit model; "" to infer it from the name."""
    key_env: str = ""
    """Environment variable with the key."""
    key_command: str = ""
    """Command that prints the key."""
    context_tokens: int = 0
    """Context of the model; 0 to ask the server."""

    @property
    def setting(self) -> str:
        """Prefix of its settings, for messages."""
        return f"models.{self.name}."


@dataclass(frozen=True, slots=True)
class CompletionConfig:
    """Settings of completion."""

    model: str = AUTO
    """A name in `models` or of the manifest, or the path of a GGUF file; `AUTO` for the recommended
    one if it is on this machine, else the small one."""
    gpu_layers: int = -1
    """Layers on the GPU; -1 is all, if the build supports a GPU."""
    main_gpu: int = 0
    """Index of the GPU; -1 splits the model over all."""
    threads: int = 0
    """Threads of llama.cpp; 0 is the number of physical cores."""
    context_tokens: int = -1
    """Size of the KV cache; -1, here and below, depends on the machine, see
    `fim.placement.resolve`."""
    files_tokens: int = -1
    """Maximum from other files, and from the imports of the current one."""
    max_tokens: int = 64
    """Maximum length of a suggestion."""
    max_lines: int = 12
    """Maximum length of a suggestion."""
    min_confidence: float = 0.2
    """Probability of a line, 0 to 1, below which it is not shown; 0 shows everything."""
    save_cache: bool = True
    """Whether the KV cache is saved to disk for the next start."""
    endpoint: ModelConfig | None = field(default=None, metadata=FIXED)
    """The server that completes, if `model` names one of `models`."""
    kv_type: str = field(default="f16", metadata=FIXED)
    """Type of the keys and values in the KV cache: "f16" or "q8_0"."""
    prefix_tokens: int = field(default=-1, metadata=FIXED)
    """Maximum before the cursor."""
    suffix_tokens: int = field(default=-1, metadata=FIXED)
    """Maximum after the cursor."""
    idle_minutes: int = field(default=-1, metadata=FIXED)
    """Time without a request after which the model is unloaded; 0 for never."""
    budget_ms: int = field(default=4000, metadata=FIXED)
    """Time limit of a suggestion; the rest comes in idle time."""

    @property
    def local_model(self) -> str:
        """The model that needs memory of this machine; "" if a server completes."""
        return "" if self.endpoint else self.model


@dataclass(frozen=True, slots=True)
class PrivacyConfig:
    """Settings of what is never read."""

    exclude: tuple[str, ...] = ()
    """Globs of files that are never read or indexed, besides the built-in ones."""


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """Settings of the index."""

    enabled: bool = True
    """Whether projects are indexed and searched at all."""
    embedder: str = "minilm-l6-v2-int8"
    """A name of the manifest; "" disables semantic search."""


@dataclass(frozen=True, slots=True)
class ChatConfig:
    """Settings of the chat."""

    model: str = ""
    """A name in `models` or of the manifest, or the path of a GGUF file; "" for the recommended
    one."""
    server: str = "auto"
    """The local server: "auto" finds or starts one, "off" never does."""
    context_tokens: int = 0
    """Context of the local server; 0 for what fits."""
    max_tokens: int = 0
    """Limit of an answer; 0 for none."""
    idle_minutes: int = 15
    """Time without a request after which the local server unloads the model."""
    rule_files: bool = True
    """Whether to add the project's rules files."""
    models: tuple[ModelConfig, ...] = field(default=(), metadata=FIXED)
    """The table `models`, which all features share."""
    temperature: float = field(default=0.2, metadata=FIXED)
    """Sampling temperature."""


@dataclass(frozen=True, slots=True)
class EditConfig:
    """Settings of edits."""

    model: str = ""
    """A name like `chat.model`; "" for the chat's."""
    formatter: str = ""
    """Command that formats standard input, `{path}` for the file's name; "" for none."""
    lint: str = ""
    """Command that is run on a copy of the project, in the sandbox, `{path}` for the file; "" for
    none."""
    test: str = ""
    """Command that is run on a copy of the project, in the sandbox; "" for none."""
    check_seconds: float = 20.0
    """Time limit of each of these commands."""
    max_tokens: int = field(default=4096, metadata=FIXED)
    """Maximum length of a rewrite."""
    retries: int = field(default=1, metadata=FIXED)
    """How often a rewrite that fails its checks is tried again."""


@dataclass(frozen=True, slots=True)
class NextEditConfig:
    """Settings of next edits."""

    model: str = ""
    """A next-edit model: a name in `models` or of the manifest, or the path of a GGUF file; "" for
    none."""
    endpoint: ModelConfig | None = field(default=None, metadata=FIXED)
    """The server, if `model` names one of `models`."""


@dataclass(frozen=True, slots=True)
class ForeignAgentConfig:
    """Settings of someone else's agent, see `acp.client.catalog`."""

    name: str
    command: tuple[str, ...] = ()
    """Program and arguments; empty for those of the catalogue."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables; `$NAME` is the user's variable."""
    hosts: tuple[str, ...] = ()
    """Hosts that it may reach, besides the user's model; empty for those of the catalogue with
    the user's login."""
    login: bool = False
    """Whether it uses its own model with the user's login, instead of the user's model."""
    model: str = ""
    """A name like `chat.model`; "" for the chat's."""


Policy = Literal["plan", "ask", "auto"]


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """Settings of agents."""

    model: str = ""
    """A name like `chat.model`, or of a foreign agent; "" for the chat's."""
    foreign: tuple[ForeignAgentConfig, ...] = field(default=(), metadata=FIXED)
    """The table `agents`."""
    policy: Policy = "auto"
    """What needs approval, see `agent.approvals`."""
    max_steps: int = 40
    """Steps after which a run ends."""
    max_minutes: int = 30
    """Time after which a run ends, without the time in which it waits for the user."""
    allow: tuple[str, ...] = ()
    """Beginnings of commands that run without approval: "make test"."""
    forbid: tuple[str, ...] = ()
    """Beginnings of commands that never run."""
    env: tuple[str, ...] = ()
    """Names of environment variables that commands in the sandbox get."""
    readable: tuple[str, ...] = ()
    """Paths outside the project that commands in the sandbox may read."""

    def __post_init__(self) -> None:
        """Check the policy, which Lua checks only in the editor.

        Raises:
            ConfigInvalid: there is no such policy.
        """
        names = get_args(Policy)
        if self.policy not in names:
            raise ConfigInvalid(
                f"agent.policy: there is no {self.policy!r}", f"Use {', '.join(names)}"
            )


@dataclass(frozen=True, slots=True)
class McpServerConfig:
    """A server of the Model Context Protocol. `$NAME` in a value is an environment variable."""

    name: str
    """The name that the user gave it."""
    command: tuple[str, ...] = ()
    """A program and its arguments, which run in the sandbox."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment variables of the program, by name."""
    network: tuple[str, ...] = ()
    """Hosts that it may connect to; none by default."""
    write: tuple[str, ...] = ()
    """Folders and files that it may change."""
    readable: tuple[str, ...] = ()
    """Folders and files that it may read, besides the system's."""
    url: str = ""
    """Address of a server that runs elsewhere, instead of a command."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of the requests to it, by name."""

    @property
    def setting(self) -> str:
        """Name of its setting, for messages."""
        return f"mcp.servers.{self.name}"


@dataclass(frozen=True, slots=True)
class McpConfig:
    """Settings of the Model Context Protocol."""

    servers: tuple[McpServerConfig, ...] = ()
    """Servers with tools for agents."""


@dataclass(frozen=True, slots=True)
class Config:
    """All settings that cross the wire."""

    completion: CompletionConfig = field(default_factory=CompletionConfig)
    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    index: IndexConfig = field(default_factory=IndexConfig)
    chat: ChatConfig = field(default_factory=ChatConfig)
    edit: EditConfig = field(default_factory=EditConfig)
    next_edit: NextEditConfig = field(default_factory=NextEditConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    mcp: McpConfig = field(default_factory=McpConfig)


EXAMPLE = 'Write it as models = { big = { url = "http://127.0.0.1:8012" } }'
SERVER_EXAMPLE = (
    'Write it as mcp = { servers = { git = { command = { "uvx", "mcp-server-git" } } } }'
)
SERVER_NAME: Final = re.compile(r"[a-z0-9-]+(_[a-z0-9-]+)*")
SERVER_SEPARATOR: Final = "__"
"""Between the names of a server and of its tool."""
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
    named = {model.name: model for model in models}
    return Config(
        completion=replace(completion, endpoint=named.get(completion.model)),
        privacy=_section(table, "privacy", PrivacyConfig),
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
