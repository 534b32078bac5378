"""The differences between chat servers: their APIs, and the fields that some do not support.

Runs on the caller's thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

from lcursor.errors import ConfigInvalid
from lcursor.http import detect
from lcursor.llm import tool_calls
from lcursor.llm.apis.anthropic import Anthropic
from lcursor.llm.apis.api import Api, Ask, Chunk, Quirk, Request
from lcursor.llm.apis.gemini import Gemini
from lcursor.llm.apis.llama_server import LlamaServer
from lcursor.llm.apis.ollama import Ollama
from lcursor.llm.apis.openai import OpenAI
from lcursor.llm.apis.responses import Responses
from lcursor.llm.records import Message, SamplingParams, Served, ServedModel

APIS: Mapping[str, Api] = MappingProxyType(
    {
        api.name: api
        for api in (LlamaServer(), Ollama(), OpenAI(), Responses(), Anthropic(), Gemini())
    }
)
"""All APIs by their names in the settings."""
AUTO = "auto"
"""The name to detect one."""
UNSUPPORTED_STATUSES = (400, 404, 415, 422, 500, 501)
"""Statuses of servers for an unsupported field."""
_QUIRK_SIGNS: tuple[tuple[Quirk, re.Pattern[str]], ...] = (
    (
        "no_tools",
        re.compile(
            r"\btools?\b.{0,60}(support|requires?\b|unknown|unrecognized)"
            r"|(support|unknown|unrecognized|unexpected).{0,60}\btools?\b|^tools\b"
            r"|function.calling.{0,40}(support|enabled)",
            re.I,
        ),
    ),
    ("no_usage", re.compile(r"stream_options|include_usage", re.I)),
    (
        "no_limit",
        re.compile(r"max_(completion_|output_)?tokens.{0,80}(large|most|exceed|maximum)", re.I),
    ),
    (
        "completion_tokens",
        re.compile(r"max_completion_tokens|max_tokens.{0,40}not supported", re.I),
    ),
    ("no_temperature", re.compile(r"temperature", re.I)),
    ("no_schema", re.compile(r"response_format|json_schema|structured.?output|grammar", re.I)),
    ("no_stop", re.compile(r"^stop\b|[\"'`]stop[\"'`]", re.I)),
    ("no_seed", re.compile(r"^seed\b|[\"'`]seed[\"'`]", re.I)),
    (
        "no_system",
        re.compile(
            r"(system|developer).{0,20}(role|message|prompt|instruction).{0,40}(support|enabled)",
            re.I,
        ),
    ),
    (
        "no_reasoning",
        re.compile(r"encrypted.content|thinking.?config|thinking.{0,40}(support|enabled)", re.I),
    ),
)


def api_name(name: str, setting: str) -> str:
    """Return the configured API; "" to detect it.

    Args:
        setting: prefix of the model's settings: `models.NAME.`.

    Raises:
        ConfigInvalid: there is no such API.
    """
    if name == AUTO:
        return ""
    if name not in APIS:
        known = ", ".join((AUTO, *APIS))
        raise ConfigInvalid(f"{setting}api: there is no {name!r}", f"Set it to one of {known}")
    return name


def headers(target: ServedModel) -> Mapping[str, str]:
    """Return the headers that replace OpenAI's header with the key; {} for that."""
    return APIS[target.kind].headers(target.key) if target.kind else {}


def probe(target: ServedModel, api: str, ask: Ask, server: str) -> Served:
    """Detect the API and the capabilities of a target's server, with cheap requests.

    Args:
        api: the prefix of OpenAI's paths.
        server: its name for messages.

    Raises:
        ServerError: nothing answers, or the server is unusable.
        ConfigInvalid: the settings do not name one of its models.
    """
    names = {"model": target.model, "server": server, "setting": target.setting}
    if target.kind:
        one = APIS[target.kind]
        api = _prefix(one, api)
        reply = detect.check(ask, one.name, one.sign, api=api, **names)
    else:
        found = detect.find(ask, "", api=api, has_key=bool(target.key), **names)
        one, reply = APIS[found.kind], found.reply
    return one.describe(target, reply, api, ask, server)


def openai_prefix(kind: str, api: str) -> str:
    """Return the prefix of OpenAI's paths at an address of another API.

    Args:
        kind: that API; "" if it is not configured.
        api: the prefix of a server that has only OpenAI's API.
    """
    return f"{_prefix(APIS[kind], api)}{APIS[kind].openai_path}" if kind else api


def _prefix(one: Api, api: str) -> str:
    """Return the prefix of an API's paths, for that of OpenAI's at the same address."""
    return one.version if api == OpenAI.version else api


def quirk_of(words: str, field: str) -> Quirk | None:
    """Return the unsupported part that an error names; None for other errors.

    Args:
        words: the server's message.
        field: the field in the error; "" for none.
    """
    return next((name for name, sign in _QUIRK_SIGNS if sign.search(f"{field} {words}")), None)


def chat_request(
    served: Served,
    api: str,
    messages: Sequence[Message],
    sampling: SamplingParams,
    quirks: Set[Quirk],
) -> Request:
    """Return the path and the body of a request for an answer."""
    tools = sampling.tools if "no_tools" not in quirks else ()
    if sampling.tools and not tools:
        messages = tool_calls.as_text(messages, sampling.tools)
    one, messages = APIS[served.kind], adapted(messages, quirks)
    return one.request(served, _prefix(one, api), messages, tools, sampling, quirks)


def adapted(messages: Sequence[Message], quirks: Set[Quirk]) -> Sequence[Message]:
    """Return messages of the roles that a server knows."""
    return tool_calls.without_system(messages) if "no_system" in quirks else messages


def count_tokens(
    served: Served, what: str | Sequence[Message], quirks: Set[Quirk], ask: Ask
) -> int | None:
    """Return the tokens of a text or a prompt; None if the server cannot count."""
    what = what if isinstance(what, str) else adapted(what, quirks)
    return APIS[served.kind].count_tokens(served, what, ask)


def chunks(served: Served | None) -> Chunk:
    """Return what turns the objects of a new stream into those that `ResponseReader` reads."""
    return APIS[served.kind if served else "openai"].chunks()
