"""Parts of grammars in GBNF, the notation of llama.cpp. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby, permutations

INTEGER = '"-"? [0-9] [0-9]{0,8}'
JSON_STRING = (
    r'"\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F]'
    r' [0-9a-fA-F]))* "\""'
)

JSON_OBJECT = {
    "object": '"{" space (pair ("," space pair)*)? "}"',
    "pair": 'string ":" space value space',
    "list": '"[" space (value space ("," space value space)*)? "]"',
    "value": 'object | list | string | number | "true" | "false" | "null"',
    "number": '"-"? [0-9] [0-9]{0,15} ("." [0-9]{1,15})?',
    "string": JSON_STRING,
    "space": "[ \\n]{0,20}",
}
"""Rules of any JSON object."""


def rules(named: Mapping[str, str]) -> str:
    """Return a grammar of rules by name."""
    return "\n".join(f"{name} ::= {body}" for name, body in named.items()) + "\n"


def literal(text: str) -> str:
    """Return a text as a quoted string."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + quoted.replace("\r", "\\r").replace("\t", "\\t") + '"'


def one_of(texts: Iterable[str]) -> str:
    """Return an expression for one of several texts, of which at least one is not empty.

    Common beginnings are written once: the cost of a token depends on the number of alternatives
    that are still possible.
    """
    return _trie(sorted({*texts}))


def _trie(texts: list[str]) -> str:
    is_optional = texts[0] == ""
    parts = []
    for _, group in groupby(texts[is_optional:], key=lambda text: text[0]):
        same = list(group)
        size = _common(same[0], same[-1])  # they are sorted
        rest = [text[size:] for text in same]
        head = literal(same[0][:size])
        parts.append(head if rest == [""] else f"{head} {_trie(rest)}")
    joined = " | ".join(parts)
    if is_optional:
        return f"({joined})?"
    return joined if len(parts) == 1 else f"({joined})"


def _common(one: str, other: str) -> int:
    size = 0
    while size < min(len(one), len(other)) and one[size] == other[size]:
        size += 1
    return size


def until(name: str, end: str) -> dict[str, str]:
    """Return rules for the text before the first occurrence of `end`, which is part of it.

    Args:
        name: name of the first rule, and prefix of the others.
        end: a text that has its first character only once, so that no end is missed.
    """
    states = {}
    for at, sign in enumerate(end):
        here, following = _state(name, at), _state(name, at + 1)
        last = literal(sign) if at + 1 == len(end) else f"{literal(sign)} {following}"
        others = f"[^{_escaped(end[0])}{_escaped(sign) if at else ''}] {name}"
        again = f" | {literal(end[0])} {_state(name, 1)}" if at else ""
        states[here] = f"{last} | {others}{again}"
    return states


def _state(name: str, at: int) -> str:
    return f"{name}-{at}" if at else name


def _escaped(sign: str) -> str:
    return {"\n": "\\n", "\\": "\\\\", "]": "\\]", "^": "\\^", "-": "\\-"}.get(sign, sign)


def in_any_order(names: Iterable[str]) -> str:
    """Return an expression for all of a few rules, in any order."""
    return "(" + " | ".join(" ".join(each) for each in permutations(names)) + ")"
