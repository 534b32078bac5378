"""The three ways in which servers take a prompt and tell what they write. Pure.

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
"""How long Ollama keeps the model loaded; its own 5 minutes are over after a coffee."""
MAX_STOPS = 4
"""What the OpenAI API takes."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One object of a stream, read; -1 is what the server does not say."""

    text: str = ""
    reason: Reason | None = None
    """Set on the last one."""
    prompt_tokens: int = -1
    read_tokens: int = -1


class Dialect(Protocol):
    """What one kind of server wants and says."""

    models: str
    """A path that lists its models, or tells the one."""
    path: str
    """Where prompts go."""

    def names(self, found: Mapping[str, Any]) -> Sequence[str]:
        """Return the names in its list of models."""

    def body(self, prompt: TextPrompt, model: str, config: CompletionConfig) -> dict[str, Any]:
        """Return what is posted."""

    def read(self, found: Mapping[str, Any]) -> Piece:
        """Read one object of what it sends back."""


class LlamaCpp:
    """llama-server, by its own API: it caches, and says what the prompt cost."""

    models, path = "/props", "/completion"

    def names(self, found: Mapping[str, Any]) -> Sequence[str]:
        """Return the file's name; the alias may be anything."""
        path, alias = str(found.get("model_path") or ""), str(found.get("model_alias") or "")
        return [name for name in (PurePath(path).name, alias) if name][:1]

    def body(self, prompt: TextPrompt, model: str, config: CompletionConfig) -> dict[str, Any]:
        """Ask greedily; the model is what the server was started with."""
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
        """Read the text and what the prompt cost."""
        times = found.get("timings")
        read_tokens, cached = _count(times, "prompt_n"), max(_count(times, "cache_n"), 0)
        reason: Reason | None = None
        if found.get("stop") is True:
            why = found.get("stop_type")
            reason = "tokens" if why == "limit" else _line(found.get("stopping_word"))
        return Piece(
            str(found.get("content") or ""),
            reason,
            read_tokens + cached if read_tokens >= 0 else -1,
            read_tokens,
        )


class Ollama:
    """Ollama, with `raw`, so that it puts nothing around the prompt."""

    models, path = "/api/tags", "/api/generate"

    def names(self, found: Mapping[str, Any]) -> Sequence[str]:
        """Return what was pulled."""
        return detect.model_names(found.get("models"), "name")

    def body(self, prompt: TextPrompt, model: str, config: CompletionConfig) -> dict[str, Any]:
        """Ask greedily, and for the model to stay loaded."""
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
                # Its own choice may be less than the prompt, and it cuts without saying so.
                "num_ctx": config.context_tokens,
                "stop": list(prompt.stops),
            },
        }

    def read(self, found: Mapping[str, Any]) -> Piece:
        """Read the text; the last object has the counts."""
        reason: Reason | None = None
        if found.get("done") is True:
            reason = "tokens" if found.get("done_reason") == "length" else "end"
        read_tokens = _count(found, "prompt_eval_count")
        return Piece(str(found.get("response") or ""), reason, read_tokens, read_tokens)


class OpenAi:
    """vLLM and whatever else has `/v1/completions`."""

    models, path = "/v1/models", "/v1/completions"

    def names(self, found: Mapping[str, Any]) -> Sequence[str]:
        """Return the ids."""
        return detect.model_names(found.get("data"), "id")

    def body(self, prompt: TextPrompt, model: str, config: CompletionConfig) -> dict[str, Any]:
        """Ask greedily, with nothing that only some of these servers know."""
        return {
            "model": model,
            "prompt": prompt.text,
            "max_tokens": config.max_tokens,
            "temperature": 0,
            "stop": list(prompt.stops[:MAX_STOPS]),
            "stream": True,
        }

    def read(self, found: Mapping[str, Any]) -> Piece:
        """Read the first choice; the object with the usage has none."""
        choices = found.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else {}
        reason: Reason | None = None
        if isinstance(first, Mapping) and first.get("finish_reason"):
            reason = "tokens" if first["finish_reason"] == "length" else "end"
        text = first.get("text") if isinstance(first, Mapping) else ""
        return Piece(str(text or ""), reason, _count(found.get("usage"), "prompt_tokens"))


def _line(stop: object) -> Reason:
    return "line" if stop == "\n" else "end"


def _count(table: object, field: str) -> int:
    """Return a number of tokens, -1 where the server does not say it."""
    value = table.get(field) if isinstance(table, Mapping) else None
    return value if isinstance(value, int) else -1


DIALECTS: Mapping[Kind, Dialect] = MappingProxyType(
    {"llama.cpp": LlamaCpp(), "ollama": Ollama(), "openai": OpenAi()}
)
