"""What an API of chat servers is to the client.

An API is one module in this package and one row in `llm.providers.APIS`. Its streams are translated
into objects of OpenAI's stream, which `llm.streaming` reads. Builds requests and reads replies;
callers pass a function that sends them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, ClassVar, Literal, TypeAlias

from lcursor.http import detect
from lcursor.http.detect import Sign
from lcursor.llm import tool_calls
from lcursor.llm.records import Message, SamplingParams, Served, ServedModel, ToolSpec

Quirk = Literal[
    "no_usage",
    "no_limit",
    "completion_tokens",
    "no_temperature",
    "no_system",
    "no_schema",
    "no_stop",
    "no_seed",
    "no_tools",
    "no_reasoning",
]
"""A part of a request that a server does not support."""
Ask: TypeAlias = Callable[..., dict[str, Any]]
"""Sends a GET, or a POST with a body, to a path; returns the object or raises `ServerError`."""
Chunk: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns an object of a stream as one of OpenAI's stream; errors as they are."""
Request: TypeAlias = tuple[str, dict[str, Any]]
"""Path and body."""
OPENAI_MODELS = Sign("{api}/models", "data", list, is_list=True)
"""OpenAI's list of models."""
CUT_OFF = "content_filter"
"""Why an answer ended that the server did not complete."""
CONTEXT_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Fields with a model's context in lists: vLLM; OpenRouter, Together; Groq; LM Studio."""


class Api(ABC):
    """An API of chat servers. Has no state; by default models are listed as OpenAI does."""

    name: ClassVar[str]
    """Its name in the settings."""
    summary: ClassVar[str]
    """A line for the help."""
    version: ClassVar[str] = "/v1"
    """Version in the paths of an address that has none, or version 1."""
    openai_path: ClassVar[str] = ""
    """Where OpenAI's chat API begins at an address of this one, after the version."""
    sign: ClassVar[Sign] = OPENAI_MODELS
    """The reply that identifies it, or lists its models."""

    @abstractmethod
    def request(
        self,
        served: Served,
        api: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        sampling: SamplingParams,
        quirks: Set[Quirk],
    ) -> Request:
        """Return a request for an answer.

        Args:
            api: the prefix of OpenAI's paths at this address.
            tools: those of the request; those of `sampling` may be in a text.
            quirks: what the server does not support.
        """

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers that replace OpenAI's header with the key; {} for that."""
        return {}

    def chunks(self) -> Chunk:
        """Return what translates the objects of a new stream."""
        return lambda found: found

    def describe(
        self, target: ServedModel, reply: Mapping[str, Any], api: str, ask: Ask, server: str
    ) -> Served:
        """Return what a server of this API is and can do.

        Args:
            reply: the server's reply at the path of `sign`; {} if it is optional.
            server: its name for messages.

        Raises:
            ServerError: the server is unusable.
            ConfigInvalid: the settings do not name one of its models.
        """
        rows = reply.get("data")
        names = detect.model_names(rows, "id")
        model = target.model or detect.only_model(names, server, target.setting)
        rows = [row for row in rows or [] if isinstance(row, Mapping)]
        row: Mapping[str, Any] = next((row for row in rows if str(row.get("id")) == model), {})
        tokens = next((positive(row, name) for name in CONTEXT_FIELDS if positive(row, name)), 0)
        return Served(
            self.name,
            model,
            smaller_context(target, tokens),
            can_count="max_model_len" in row,  # vLLM
            models=tuple(names),
            has_tools=True,
        )

    def count_tokens(self, served: Served, what: str | Sequence[Message], ask: Ask) -> int | None:
        """Return the tokens of a text or a prompt, by vLLM; None if the server cannot count."""
        body: dict[str, Any] = {"model": served.model}
        if isinstance(what, str):
            body |= {"prompt": what, "add_special_tokens": False}
        else:
            body["messages"] = tool_calls.openai_rows(what)
        count = ask("/tokenize", body).get("count")
        return count if isinstance(count, int) else None


def smaller_context(target: ServedModel, tokens: int) -> int:
    """Return the configured context, unless the server has less."""
    wanted = target.context_tokens
    return min(wanted, tokens) if wanted and tokens else wanted or tokens


def positive(table: object, field: str) -> int:
    """Return a field with a positive number; 0 if it has none."""
    value = table.get(field) if isinstance(table, Mapping) else None
    return value if isinstance(value, int) and value > 0 else 0


def delta(fields: Mapping[str, Any], finish: str | None = None, reason: str = "") -> dict[str, Any]:
    """Return an object of OpenAI's stream.

    Args:
        finish: "stop", "length" or `CUT_OFF` at the end of the answer.
        reason: why it is cut off, for a message.
    """
    choice = {"delta": dict(fields), "finish_reason": finish}
    return {"choices": [{**choice, "reason": reason} if finish == CUT_OFF else choice]}


def table_in(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a field with an object; {} if it has none."""
    value = found.get(name)
    return value if isinstance(value, Mapping) else {}
