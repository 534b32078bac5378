"""The settings that the host reads, as frozen values.

Defaults and help texts are in `lua/lcursor/config/schema.lua`, validation is in `init.lua` next to
it; a contract test keeps names, types and defaults equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Final, Literal, NamedTuple, get_args

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
    excluded: tuple[str, ...] = field(default=(), metadata=FIXED)
    """The setting `privacy.exclude`."""
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
    evidence: bool = False
    """Whether failed tests run again under a tracer, see `workspace.evidence`."""
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


SERVER_SEPARATOR: Final = "__"
"""Between the names of a server and of its tool."""


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
