"""Heads of markdown files, as people and Cursor write them."""

from __future__ import annotations

import pytest

from lcursor.context import front_matter

CASES = [
    ("no head", {}, "no head"),
    ("---\na: b\n---\ntext", {"a": "b"}, "text"),
    ("---\r\na: b\r\n---\r\ntext", {"a": "b"}, "text"),
    ("\ufeff---\na: b\n---\n", {"a": "b"}, ""),
    ("---\na: b\n---", {"a": "b"}, ""),
    ("---\na: b\nnever closed", {}, "---\na: b\nnever closed"),
    ("---\n---\ntext", {}, "text"),
    ("---\nglobs: **/*.ts, **/*.tsx\n---\n", {"globs": "**/*.ts, **/*.tsx"}, ""),
    ("---\nglobs:\n  - a\n  - 'b c'\n---\n", {"globs": ["a", "b c"]}, ""),
    ("---\nglobs:\n- a\n---\n", {"globs": ["a"]}, ""),
    ('---\nglobs: ["a", b]\n---\n', {"globs": ["a", "b"]}, ""),
    ("---\nalwaysApply: true # really\n---\n", {"alwaysapply": "true"}, ""),
    ("---\ndescription: >-\n  one\n  two\nx: 1\n---\n", {"description": "one two", "x": "1"}, ""),
    ('---\ndescription: "a: b"\n---\n', {"description": "a: b"}, ""),
    ("---\n# note\n\na:\n---\nt", {"a": ""}, "t"),
    ("---\n}{ not yaml\na: b\n---\nt", {"a": "b"}, "t"),
    ("text\n---\na: b\n---\n", {}, "text\n---\na: b\n---\n"),
]


@pytest.mark.parametrize(("text", "head", "rest"), CASES)
def test_the_front_matter_of_a_file(text: str, head: dict[str, object], rest: str) -> None:
    assert front_matter.split(text) == (head, rest)


GLOBS = [
    ("**/*.{ts,tsx}", ["**/*.ts", "**/*.tsx"]),
    ("a/{b,c}/*.{d,e}", ["a/b/*.d", "a/b/*.e", "a/c/*.d", "a/c/*.e"]),
    ("a, b", ["a", "b"]),
    (["a", "{b,c}"], ["a", "b", "c"]),
    ("", []),
    (None, []),
    ("{", ["{"]),
    ("[id].tsx, b", ["[id].tsx", "b"]),
]


@pytest.mark.parametrize(("value", "globs"), GLOBS)
def test_globs_in_front_matter(value: str | list[str] | None, globs: list[str]) -> None:
    assert front_matter.globs(value) == globs


def test_many_braces_are_written_out_only_so_far() -> None:
    """All of them would be 2 to the power of 40 globs."""
    found = front_matter.globs("{a,b}" * 40)
    assert 2 <= len({*found}) == len(found) < 200
