"""The agents of others that were run with lcursor, by name. Data only.

In arguments, variables and files, `{url}`, `{key}`, `{model}` and `{context}` stand for the user's
model as the agent reaches it, see `model_port`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from lcursor.config import ForeignAgentConfig

Api = Literal["chat", "responses", "messages"]
"""What the agent asks of a model's server: `/v1/chat/completions`, `/v1/responses` of OpenAI, or
`/v1/messages` of Anthropic."""


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """An agent of someone else, and how to start it."""

    name: str
    title: str
    command: tuple[str, ...]
    install: str
    """The command that installs it."""
    api: Api = "chat"
    tried: str = ""
    """The version that was run."""
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Files of its home, by relative path."""
    model_env: Mapping[str, str] = field(default_factory=dict)
    """Variables that name the user's model."""
    model_files: Mapping[str, str] = field(default_factory=dict)
    """Files of its home that name the user's model."""
    asks: tuple[str, ...] = ()
    """Its modes that ask before a change, the best first."""
    plans: tuple[str, ...] = ()
    """Its modes that change nothing."""
    plan_option: tuple[str, str, str] | None = None
    """Another option that does this: its name, and its values to plan and to work."""
    login_files: tuple[str, ...] = ()
    """Files of the user's home with its login, and nothing that it runs."""
    hosts: tuple[str, ...] = ()
    """What it needs to reach with the user's login."""
    note: str = ""
    """What it needs besides."""
    asks_little: bool = False
    """Whether no mode of it asks before each command: ours then decides only about some."""


OPENCODE_SETTINGS: Final = """{
  "$schema": "https://opencode.ai/config.json",
  "autoupdate": false,
  "share": "disabled",
  "permission": {"edit": "ask", "bash": "ask", "webfetch": "ask"}
}
"""
OPENCODE_MODEL: Final = """{
  "$schema": "https://opencode.ai/config.json",
  "model": "lcursor/{model}",
  "small_model": "lcursor/{model}",
  "provider": {"lcursor": {
    "npm": "@ai-sdk/openai-compatible",
    "name": "lcursor",
    "options": {"baseURL": "{url}/v1", "apiKey": "{key}"},
    "models": {"{model}": {
      "name": "{model}", "tool_call": true, "limit": {"context": {context}, "output": 8192}
    }}
  }}
}
"""

CODEX_SETTINGS: Final = """approval_policy = "on-request"
default_permissions = "lcursor"

[permissions.lcursor.filesystem]
":root" = "write"

[permissions.lcursor.network]
enabled = true

[features]
default_mode_request_user_input = true
"""
"""It may ask the user, and confines no commands: its own sandbox does not work in ours."""

AGENTS: Final = (
    KnownAgent(
        "claude-code",
        "Claude Code",
        ("claude-agent-acp",),
        "npm install -g @agentclientprotocol/claude-agent-acp",
        api="messages",
        tried="0.101.0",
        env={
            "IS_SANDBOX": "1",  # as root it would not start
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
        asks=("default",),
        plans=("plan",),
        login_files=(".claude/.credentials.json",),
        hosts=("api.anthropic.com", "claude.ai", "console.anthropic.com", "platform.claude.com"),
        note="node 22 or newer; its first request has 48 KB",
    ),
    KnownAgent(
        "codex",
        "Codex",
        ("codex-acp",),
        "npm install -g @agentclientprotocol/codex-acp",
        api="responses",
        tried="2.6.0",
        files={".codex/config.toml": CODEX_SETTINGS},
        # Under names of OpenAI's models it uses tools that only those know.
        model_env={"CODEX_CONFIG": '{"model": "{model}"}'},
        asks=("permission-profile:lcursor",),
        plan_option=("collaboration_mode", "plan", "default"),
        login_files=(".codex/auth.json",),
        hosts=("api.openai.com", "chatgpt.com", "auth.openai.com"),
        note="its first request has 44 KB",
        asks_little=True,
    ),
    KnownAgent(
        "opencode",
        "opencode",
        ("opencode", "acp"),
        "npm install -g opencode-ai",
        tried="1.18.33",
        env={"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        files={".config/opencode/config.json": OPENCODE_SETTINGS},
        model_files={".config/opencode/opencode.json": OPENCODE_MODEL},
        asks=("build",),
        plans=("plan",),
        login_files=(".local/share/opencode/auth.json",),
        hosts=("opencode.ai", "*.opencode.ai", "models.dev"),
        note="its first request has 31 KB; it takes 790 MB of memory",
    ),
    KnownAgent(
        "qwen-code",
        "Qwen Code",
        ("qwen", "--acp"),
        "npm install -g @qwen-code/qwen-code",
        tried="0.24.4",
        model_env={
            "OPENAI_BASE_URL": "{url}/v1",
            "OPENAI_API_KEY": "{key}",
            "OPENAI_MODEL": "{model}",
        },
        asks=("default",),
        plans=("plan",),
        login_files=(".qwen/oauth_creds.json",),
        hosts=("chat.qwen.ai", "portal.qwen.ai", "dashscope.aliyuncs.com"),
        note="node 22 or newer; its first request has 84 KB",
    ),
)
USUAL_MODES: Final = ("default", "ask", "manual", "read-only", "build")
"""Modes that ask, as agents call them, for one that the catalogue does not have."""
KNOWN: Final[Mapping[str, KnownAgent]] = {each.name: each for each in AGENTS}


def find(name: str, settings: ForeignAgentConfig | None) -> KnownAgent | None:
    """Return an agent of the catalogue, or one that only the settings describe."""
    known = KNOWN.get(name)
    if known is None and settings is not None and settings.command:
        known = KnownAgent(name, name, settings.command, "", asks=USUAL_MODES)
    return known
