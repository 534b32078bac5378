"""A prompt that does not fit is recognized in what each server says; nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from lcursor.errors import ServerBusy, ServerFailed
from lcursor.llm import overflow

LLAMA = {"type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096}
OPENAI = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens"  # noqa: E501

FULL: list[tuple[str, dict[str, Any], int, int, int]] = [
    # what it says, its details, status, tokens of the prompt, of the context
    ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
     LLAMA, 400, 5000, 4096),
    ("the request exceeds the available context size, try increasing it",
     {"type": "exceed_context_size_error"}, 400, 0, 0),
    ("request (5000 tokens) exceeds the available context size (4096 tokens)", {}, 400, 5000, 4096),
    (OPENAI, {"code": "context_length_exceeded", "param": "messages"}, 400, 9000, 8192),
    ("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4900 "
     "in the messages, 100 in the completion)", {"type": "BadRequestError"}, 400, 5000, 4096),
    ("The decoder prompt (length 5000) is longer than the maximum model length of 4096", {}, 400,
     0, 4096),
    ("input length exceeds the context length", {}, 400, 0, 0),
    ("prompt is too long: 5000 tokens > 4096 maximum", {}, 400, 5000, 4096),
    ("The input token count (5000) exceeds the maximum number of tokens allowed (4096)",
     {"code": 400}, 400, 5000, 4096),
    ("Your input exceeds the context window of this model. Please adjust your input and try again",
     {"code": "context_length_exceeded"}, 0, 0, 0),
    ("Prompt exceeds max length", {"code": "1261"}, 400, 0, 0),
    ("Context size has been exceeded", {"type": "server_error"}, 0, 0, 0),
]  # fmt: skip


def failure(words: str, detail: dict[str, Any], status: int) -> ServerFailed:
    error = ServerFailed(f"http://x answers with status {status}: {words}")
    error.detail, error.status = detail, status
    return error


@pytest.mark.parametrize(("words", "detail", "status", "size", "limit"), FULL)
def test_errors_of_a_prompt_that_is_too_long(
    words: str, detail: dict[str, Any], status: int, size: int, limit: int
) -> None:
    full = overflow.context_overflow(failure(words, detail, status), "big")
    assert full is not None
    assert (full.prompt_tokens, full.context_tokens) == (size, limit)
    assert "big" in full.message
    assert all(str(number) in full.message for number in (size, limit) if number and limit)
    assert full.hint


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("Loading model", 503),
        ("Internal error", 500),
        ("Unknown field: context_id", 400),
        ("temperature exceeds 2", 400),
        ("You exceeded your current quota, please check your plan", 429),
        ("Request body too large", 413),
    ],
)
def test_other_errors_are_not_taken_for_a_prompt_that_is_too_long(words: str, status: int) -> None:
    assert overflow.context_overflow(failure(words, {}, status), "big") is None


def test_too_many_questions_are_no_long_one() -> None:
    busy = ServerBusy("Rate limit reached: the limit of input tokens per minute is exceeded")
    busy.status = 429
    assert overflow.context_overflow(busy, "big") is None
