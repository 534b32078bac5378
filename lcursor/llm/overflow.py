"""Recognize a server's error for a prompt that exceeds its context. Pure.

Source: llama.cpp's server-context.cpp (`exceed_context_size_error`), the OpenAI API reference
(`context_length_exceeded`), and the messages of vLLM, Ollama, DeepSeek, GLM, Mistral and Gemini.
"""

from __future__ import annotations

import re

from lcursor.errors import ContextFull, ServerError

TYPES = ("exceed_context_size_error", "context_length_exceeded", "context_window_exceeded")
SENTENCES = re.compile(
    r"(context|prompt|input)\b.{0,40}\b(length|size|window|long|limit)\b.{0,60}"
    r"|input token count\b.{0,20} exceeds"
    r"|exceed\w*\b.{0,60}\b(context|max_model_len|model'?s? (limit|length))",
    re.I | re.S,
)
EXCEEDS = re.compile(r"exceed|too long|too large|maximum|longer than|greater than", re.I)
LIMITS = (
    re.compile(r"(?:maximum|max) (?:context|model|prompt) (?:length|len|size|limit)\D{0,12}(\d+)"),
    re.compile(r"(?:context size|tokens allowed) \((\d+)"),
    re.compile(r"(\d+)(?: tokens)? ?> ?(\d+)"),
)
SIZES = (
    re.compile(r"(?:request|token count) \((\d+)"),
    re.compile(
        r"(?:requested|resulted in|contains|has|of) (?:about |at least )?(\d+)(?: input)? tok"
    ),
)
SHARED = "Context size has been exceeded"
"""What a llama-server says if the prompts that it answers at once are too large together."""
HINT = "Remove some context, summarize the chat, or choose a model with a larger context"


def context_overflow(error: ServerError, name: str) -> ContextFull | None:
    """Return the error for a full context; None if the server's error is a different one."""
    words = error.message
    is_named = error.detail.get("type") in TYPES or error.detail.get("code") in TYPES
    is_status = error.status in (0, 400, 413, 422, 500)
    if not is_named and not (is_status and SENTENCES.search(words) and EXCEEDS.search(words)):
        return None
    limit, size = _detail(error, "n_ctx"), _detail(error, "n_prompt_tokens")
    limit = limit or _first(LIMITS[:2], words)
    size = size or _first(SIZES, words)
    pair = LIMITS[2].search(words)
    if pair and not limit:
        size, limit = int(pair[1]), int(pair[2])
    if size and limit:
        text = f"the prompt has {size} tokens, and the context of {name} has {limit}"
    elif limit:
        text = f"the prompt is longer than the {limit} tokens of {name}"
    else:
        text = f"the prompt is longer than the context of {name}"
    full = ContextFull(text, HINT)
    full.prompt_tokens, full.context_tokens = size, limit
    return full


def _detail(error: ServerError, name: str) -> int:
    value = error.detail.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _first(patterns: tuple[re.Pattern[str], ...], words: str) -> int:
    for pattern in patterns:
        match = pattern.search(words)
        if match:
            return int(match[1])
    return 0
