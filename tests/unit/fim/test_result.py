"""Suggestions that are found again, and what they tell of their cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lcursor.fim.prompt import Source
from lcursor.fim.result import MAX_ENTRIES, SUFFIX_CHARS, CompletionCache, Result

HERE = Source("x = ", "\ny = 2", 3, "a.py", "demo")
FOUND = Result("first + second", "line", replace_bytes=2, confidence=0.5, read_tokens=9)


def find(place: Source, single_line: bool = True, source: Source = HERE) -> Result | None:
    """Look for a place where only the suggestion `FOUND` is known."""
    cache = CompletionCache()
    cache.add(source, True, FOUND, is_ahead=False)
    return cache.find(place, single_line)


@pytest.mark.parametrize(
    ("typed", "rest"),
    [
        ("", "first + second"),
        ("fir", "st + second"),
        ("first + secon", "d"),
        ("first + second", None),  # nothing is left
        ("first + second ", None),
        ("second", None),
    ],
)
def test_the_rest_of_a_suggestion_behind_typed_text(typed: str, rest: str | None) -> None:
    found = find(replace(HERE, prefix=HERE.prefix + typed))
    assert (found.text if found else None) == rest


def test_the_fields_of_a_suggestion_that_is_found_again() -> None:
    assert find(HERE) == Result("first + second", "line", "cache", 2, 0.5)
    cache = CompletionCache()
    cache.add(HERE, True, FOUND, is_ahead=True)
    assert cache.find(HERE, True) == Result("first + second", "line", "speculation", 2, 0.5)


@pytest.mark.parametrize(
    "other",
    [
        replace(HERE, path="b.py"),
        replace(HERE, repo="other"),
        replace(HERE, first_row=4),
        replace(HERE, suffix="\ny = 3"),
        replace(HERE, prefix="y = "),
        replace(HERE, prefix="x ="),
    ],
)
def test_a_suggestion_is_not_found_at_another_place(other: Source) -> None:
    assert find(other) is None


def test_text_far_behind_the_cursor_does_not_count() -> None:
    long = replace(HERE, suffix="s" * SUFFIX_CHARS + "one")
    assert find(replace(long, suffix="s" * SUFFIX_CHARS + "two"), source=long)
    assert not find(replace(long, suffix="s" * (SUFFIX_CHARS - 1) + "xtwo"), source=long)


def test_a_single_line_is_no_suggestion_of_several_lines() -> None:
    assert find(HERE, single_line=False) is None


def test_an_empty_suggestion_is_found_again() -> None:
    cache = CompletionCache()
    cache.add(HERE, True, Result(), is_ahead=False)
    found = cache.find(HERE, True)
    assert found is not None
    assert found.text == ""
    assert cache.find(replace(HERE, prefix="x = a"), True) is None


def test_the_newest_suggestion_is_found_and_the_oldest_is_deleted() -> None:
    cache = CompletionCache()
    for number in range(MAX_ENTRIES + 1):
        cache.add(replace(HERE, first_row=number), True, FOUND, is_ahead=False)
    assert cache.find(replace(HERE, first_row=0), True) is None
    assert cache.find(replace(HERE, first_row=1), True)
    cache.add(replace(HERE, first_row=1), True, Result("newer"), is_ahead=False)
    found = cache.find(replace(HERE, first_row=1), True)
    assert found is not None
    assert found.text == "newer"
    cache.clear()
    assert cache.find(replace(HERE, first_row=1), True) is None


def test_the_cost_of_a_suggestion() -> None:
    result = Result(
        "x",
        confidence=0.123456,
        prompt_tokens=100,
        read_tokens=30,
        prompt_passes=2,
        window="short",
        generated_tokens=5,
        prompt_ms=1.234,
        first_ms=2.0,
        total_ms=3.0,
    )
    assert result.stats(threshold=0.33333, queue_ms=10.0) == {
        "prompt_tokens": 100,
        "reused_tokens": 70,
        "decoded_tokens": 30,
        "passes": 2,
        "generated_tokens": 5,
        "queue_ms": 10.0,
        "prompt_ms": 1.23,
        "first_ms": 12.0,
        "total_ms": 13.0,
        "confidence": 0.1235,
        "threshold": 0.3333,
        "source": "model",
        "window": "short",
    }
    nothing = Result(prompt_tokens=3, read_tokens=5).stats(queue_ms=10.0)
    assert (nothing["reused_tokens"], nothing["first_ms"], nothing["total_ms"]) == (0, 0.0, 10.0)
