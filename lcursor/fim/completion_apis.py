"""The completion APIs of llama.cpp, Ollama and OpenAI-like servers. Pure.

Source: llama.cpp's tools/server/README.md (`/completion`, `/props`), Ollama's docs/api.md
(`/api/generate` with `raw`), and the OpenAI API reference, legacy completions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Protocol

from lcursor.config import CompletionConfig
from lcursor.fim.prompt_text import TextPrompt
from lcursor.fim.result import Reason
from lcursor.http import detect
from lcursor.http.detect import Kind

KEEP_ALIVE = "30m"
"""How long Ollama keeps the model loaded; its default is 5 minutes."""
MAX_STOPS = 4
"""Limit of the OpenAI API."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One object of a stream; unknown numbers are -1, and only the last object has a reason."""

    text: str = ""
    reason: Reason | None = None
    prompt_tokens: int = -1
    read_tokens: int = -1


class CompletionApi(Protocol):
    """The API of one kind of server: the paths that list the models and complete a prompt.

    `{api}` in a path is the prefix of OpenAI's paths.
    """

    models: str
    path: str

    def names(self, found: Mapping[str, Any]) -> Sequence[str]:
        """Return the names in the list of models."""

    def body(self, prompt: TextPrompt, model: str, config: CompletionConfig) -> dict[str, Any]:
        """Return the body of a request for the likeliest tokens."""

    def read(self, found: Mapping[str, Any]) -> Piece:
        """Parse one object of the answer."""


class LlamaCpp:
    """The API of llama-server, which caches prompts and reports their cost."""

    models, path = "/props", "/completion"

    def names(self, found: Mapping[str, Any]) -> Sequence[str]:
        """Return the name of the model's file, or else its alias, which is arbitrary."""
        path, alias = str(found.get("model_path") or ""), str(found.get("model_alias") or "")
        return [name for name in (PurePath(path).name, alias) if name][:1]

    def body(self, prompt: TextPrompt, model: str, config: CompletionConfig) -> dict[str, Any]:
        """See `CompletionApi`; the server has only one model."""
        return {
            "prompt": prompt.text,
            "n_predict": config.max_tokens,
            "temperature": 0,
            "top_k": 1,
            "stop": list(prompt.stops),
            "stream": True,
            "cache_prompt": True,
            "n_probs": 0,
            "timings_per_token": True,
        }

    def read(self, found: Mapping[str, Any]) -> Piece:
        """See `CompletionApi`."""
        times = found.get("timings")
        read_tokens, cached = _count(times, "prompt_n"), max(_count(times, "cache_n"), 0)
        prompt_tokens = read_tokens + cached if read_tokens >= 0 else -1
        reason: Reason | None = None
        if found.get("stop") is True:
            by_word: Reason = "line" if found.get("stopping_word") == "\n" else "end"
            reason = "tokens" if found.get("stop_type") == "limit" else by_word
        return Piece(str(found.get("content") or ""), reason, prompt_tokens, read_tokens)


class Ollama:
    """The API of Ollama, with `raw`, so that it adds nothing to the prompt."""

    models, path = "/api/tags", "/api/generate"

    def names(self, found: Mapping[str, Any]) -> Sequence[str]:
        """Return the models that were pulled."""
        return detect.model_names(found.get("models"), "name")

    def body(self, prompt: TextPrompt, model: str, config: CompletionConfig) -> dict[str, Any]:
        """See `CompletionApi`; the model stays loaded."""
        return {
            "model": model,
            "prompt": prompt.text,
            "raw": True,
            "stream": True,
            "keep_alive": KEEP_ALIVE,
            "options": {
                "temperature": 0,
                "top_k": 1,
                "num_predict": config.max_tokens,
                # With its default Ollama may silently truncate the prompt.
                "num_ctx": config.context_tokens,
                "stop": list(prompt.stops),
            },
        }

    def read(self, found: Mapping[str, Any]) -> Piece:
        """Parse the text; the last object has the counts."""
        reason: Reason | None = None
        if found.get("done") is True:
            reason = "tokens" if found.get("done_reason") == "length" else "end"
        read_tokens = _count(found, "prompt_eval_count")
        return Piece(str(found.get("response") or ""), reason, read_tokens, read_tokens)


class OpenAi:
    """The API of vLLM and others with `/v1/completions`."""

    models, path = "{api}/models", "{api}/completions"

    def names(self, found: Mapping[str, Any]) -> Sequence[str]:
        """Return the ids."""
        return detect.model_names(found.get("data"), "id")

    def body(self, prompt: TextPrompt, model: str, config: CompletionConfig) -> dict[str, Any]:
        """See `CompletionApi`; only options that all these servers support."""
        return {
            "model": model,
            "prompt": prompt.text,
            "max_tokens": config.max_tokens,
            "temperature": 0,
            "stop": list(prompt.stops[:MAX_STOPS]),
            "stream": True,
        }

    def read(self, found: Mapping[str, Any]) -> Piece:
        """Parse the first choice; the object with the usage has none."""
        choices = found.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else {}
        reason: Reason | None = None
        if isinstance(first, Mapping) and first.get("finish_reason"):
            reason = "tokens" if first["finish_reason"] == "length" else "end"
        text = first.get("text") if isinstance(first, Mapping) else ""
        return Piece(str(text or ""), reason, _count(found.get("usage"), "prompt_tokens"))


def _count(table: object, field: str) -> int:
    """Return a number of tokens; -1 if the server does not report it."""
    value = table.get(field) if isinstance(table, Mapping) else None
    return value if isinstance(value, int) else -1


APIS: Mapping[Kind, CompletionApi] = MappingProxyType(
    {"llama.cpp": LlamaCpp(), "ollama": Ollama(), "openai": OpenAi()}
)
