"""Replace what a model does not get of a text, and put it back into the model's lines. Pure.

These are bytes that are not UTF-8 and, for a model on another machine, passwords and tokens. Of
these only values that their own text or the name before them identifies are found; a password in
prose, or in `password = "..."`, is not. Source: the pages of each provider on the format of its
tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

PLACEHOLDER: Final = "[secret removed by lcursor]"
"""Written instead of each value."""
UNREADABLE: Final = "\N{REPLACEMENT CHARACTER}"
"""Written instead of each byte that is not UTF-8."""
_BYTE: Final = re.compile("[\ud800-\udfff]")


class Token(NamedTuple):
    """A kind of secret values."""

    hints: tuple[str, ...]
    """Texts of which each value, or the text around it, has one; searched first."""
    pattern: str
    """A regular expression; its group `value`, if any, is replaced, else all of it."""


def _word(start: str, rest: str, end: str = r"(?![\w-])") -> str:
    """Return a pattern for a whole word, which begins with a literal text for a fast search."""
    return rf"{start}(?:(?<![\w-]{start})|(?<=\\[bfnrt]{start})){rest}{end}"


_WEB: Final = "".join(f"(?<!(?i:{scheme})://)" for scheme in ("http", "https", "ftp", "ws", "wss"))
_EXAMPLE: Final = (
    r"(?:(?:[\w-]+\.)*example(?:\.[a-z]+)?(?![\w-])|(?:localhost|127\.0\.0\.1)(?![\w.-]))"
)
"""Hosts that no one has, and the user's machine."""

TOKENS: Final = (
    # GitHub and GitLab
    Token(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _word("gh", "[pousr]_[A-Za-z0-9]{36,}")),
    Token(("github_pat_",), _word("github_pat_", r"\w{22,}")),
    Token(("glpat-", "gldt-", "glrt-"), _word("gl", r"(?:pat|dt|rt)-[\w.-]{20,}")),
    # Slack
    Token(("xox", "xapp-"), _word("x", "(?:ox[abeoprs]|app)-[A-Za-z0-9-]{20,}")),
    Token(("hooks.slack.com/",), r"hooks\.slack\.com/services/(?P<value>T\w+/B\w+/\w{20,})"),
    # Stripe
    Token(("k_live_", "k_test_"), r"(?:\b|(?<=\\[bfnrt]))[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    # OpenAI, Anthropic, OpenRouter and others
    Token(
        ("sk-",),
        _word("sk-", r"(?:(?:proj|svcacct|admin|ant|or)-[\w-]{20,}|[A-Za-z0-9]{32,})"),
    ),
    # Google
    Token(("AIza",), _word("AIza", r"[\w-]{35}")),
    Token(("GOCSPX-",), _word("GOCSPX-", r"[\w-]{20,}")),
    Token(("ya29.",), _word(r"ya29\.", r"[\w-]{20,}")),
    # npm, PyPI, Hugging Face, SendGrid, Docker, DigitalOcean, Grafana, Vault
    Token(("npm_",), _word("npm_", "[A-Za-z0-9]{36}")),
    Token(("pypi-AgE",), _word("pypi-AgE", r"[\w-]{50,}")),
    Token(("hf_",), _word("hf_", "[A-Za-z]{34}")),
    Token(("SG.",), _word(r"SG\.", r"[\w-]{20,}\.[\w-]{40,}")),
    Token(("dckr_pat_",), _word("dckr_pat_", r"[\w-]{24,}")),
    Token(("dop_v1_",), _word("dop_v1_", r"\w{60,}")),
    Token(("glsa_",), _word("glsa_", r"\w{32,}")),
    Token(("hvs.",), _word(r"hvs\.", r"[\w-]{24,}")),
    # Amazon: a key, and what identifies it
    Token(
        ("AKIA", "ASIA", "aws_", "AWS_"),
        r"(?i:secret)\w{0,20}\\?[\"']?\s{0,40}[:=]\s{0,40}\\?[\"']?(?P<value>[\w/+]{40})(?![\w/+=])",
    ),
    Token(("AKIA", "ASIA"), _word("A", "(?:KIA|SIA)[A-Z0-9]{16}")),
    # Azure
    Token(("AccountKey=", "SharedAccessKey="), r"Key=(?P<value>[\w+/]{40,}={0,2})"),
    # JSON Web Tokens
    Token(("eyJ",), _word("eyJ", r"[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*", "")),
    Token(("eyJhbGciOi",), _word("eyJhbGciOi", r"[\w.-]*", "")),
    # Kubernetes
    Token(("client-key-data:",), r"client-key-data:[ \t]*(?P<value>[\w+/=]{16,})"),
    # npm's settings
    Token(
        ("_authToken=", "_auth=", "_password="),
        r"(?m)(?:^|:|\\[nr])_(?:authToken|auth|password)=(?P<value>[^\s\"'\\${}\[\]]{6,})",
    ),
    # HTTP, except for the names and passwords in examples of its standards
    Token(
        ("uthorization", "UTHORIZATION"),
        r"(?i:uthorization)\\?[\"']?[ \t]*[:=,][ \t]*\\?[\"'`]?(?i:basic|bearer|token)[ \t]+"
        r"(?!(?i:your|my|the)[_-]|[xX]{4}|dXNlcjpwYXNz|dXNlcm5hbWU6cGFz|[QY]WxhZGRpbjpvcGVu)"
        r"(?P<value>[\w.~+/-]{16,}={0,2})",
    ),
    # what may be left of a private key; files with a whole one are not read
    Token(
        ("PRIVATE KEY-----",),
        r"-----BEGIN [A-Z\d ]*PRIVATE KEY-----"
        r"(?P<value>(?:[\w+/=\s:,.]|\\+[nr\n]|-(?!-)){40,})",
    ),
    # encrypted passwords of Apache
    Token(("$apr1$",), r"\$apr1\$[\w./]{1,8}\$[\w./]+"),
    # Addresses of databases and other services: a password, unless it is a variable or the name
    Token(
        ("://",),
        rf"://{_WEB}(?P<name>[\w.%+-]*):(?!(?P=name)@|(?i:password|passwd|secret)@)"
        rf"(?P<value>[^\s\"'\\`<>{{}}$/@:\[\]()*]{{6,}})@(?!{_EXAMPLE})(?=[\w\[])",
    ),
    # Addresses of web pages, which are in many tests: only what looks like a token
    Token(
        ("://",),
        r"://[\w.%+-]*:(?=[\w.~+-]*\d)(?=[\w.~+-]*[A-Za-z])(?P<value>[\w.~+-]{8,})@"
        rf"(?!{_EXAMPLE})(?=[\w\[])",
    ),
)
"""Tokens that have a prefix, which have almost no false hits, and values after a name."""

_COMPILED: Final = tuple((each.hints, re.compile(each.pattern)) for each in TOKENS)


def redact(text: str) -> tuple[str, int]:
    """Replace the secret values of a text; return the text and how many there were."""
    count = 0

    def replaced(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        if "value" not in found.re.groupindex:
            return PLACEHOLDER
        (start, end), whole = found.span("value"), found.start()
        return f"{found[0][: start - whole]}{PLACEHOLDER}{found[0][end - whole :]}"

    for hints, pattern in _COMPILED:
        if any(hint in text for hint in hints):
            text = pattern.sub(replaced, text)
    return text, count


def restored(lines: Sequence[str], old: Sequence[str]) -> tuple[str, ...]:
    """Return a model's lines with secret values instead of placeholders.

    A line gets the values of the old line that it repeats. It is left as it is if there is none,
    or if several differ in their values.
    """
    if not any(PLACEHOLDER in line for line in lines):
        return tuple(lines)
    return _repeated(lines, old, redact("\n".join(old))[0], PLACEHOLDER)


def encodable(text: str) -> str:
    """Return a text with `UNREADABLE` instead of each byte that is not UTF-8."""
    return _BYTE.sub(UNREADABLE, text)


def with_bytes(lines: Sequence[str], old: Sequence[str]) -> tuple[str, ...]:
    """Return a model's lines with bytes that are not UTF-8 instead of `UNREADABLE`.

    A line gets the bytes of the old line that it repeats. If there are other lines with
    `UNREADABLE`, and as many in all as in the old text, the bytes are in the same order.
    """
    if not any(UNREADABLE in line for line in lines):
        return tuple(lines)
    text, new_text = "\n".join(old), "\n".join(lines)
    sent = encodable(text)
    original = _repeated(lines, old, sent, UNREADABLE)
    known = [char for char, replaced in zip(text, sent, strict=True) if replaced == UNREADABLE]
    if UNREADABLE in "\n".join(original) and new_text.count(UNREADABLE) == len(known):
        parts = zip(new_text.split(UNREADABLE), [*known, ""], strict=True)
        return tuple("".join(part + char for part, char in parts).split("\n"))
    return original


def _repeated(lines: Sequence[str], old: Sequence[str], sent: str, sign: str) -> tuple[str, ...]:
    """Return lines with the old line instead of each one with a sign that repeats what was sent."""
    originals: dict[str, set[str]] = {}
    for line, text in zip(old, sent.split("\n"), strict=False):
        originals.setdefault(text.strip(), set()).add(line.strip())
    new_lines = []
    for line in lines:
        text = line.strip()
        values = originals.get(text, set()) if sign in text else set()
        new_lines.append(line.replace(text, min(values)) if len(values) == 1 else line)
    return tuple(new_lines)


def redact_all(value: Any) -> tuple[Any, int]:
    """Replace the secret values of all texts in a JSON value, but not of the names of fields."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        made = {name: redact_all(each) for name, each in value.items()}
        return {name: each for name, (each, _) in made.items()}, sum(n for _, n in made.values())
    if isinstance(value, Sequence):
        found = [redact_all(each) for each in value]
        return [each for each, _ in found], sum(n for _, n in found)
    return value, 0
