"""Which paths are meant."""

from __future__ import annotations

import pytest

from lcursor.project.globs import path_test

CASES = [
    (("src/",), "src/net/url.py", True),
    (("SRC/",), "src/net/url.py", False),
    (("url",), "src/net/url.py", True),
    (("*.py",), "src/net/url.py", True),
    (("*.py",), "src/net/url.pyi", False),
    (("url.*",), "src/net/url.py", True),
    (("src/*.py",), "src/net/url.py", False),
    (("src/**/*.py",), "src/net/url.py", True),
    (("src/**/*.py",), "src/url.py", True),
    (("net/*.py",), "src/net/url.py", True),
    (("/src/n?t",), "src/net/url.py", True),
    (("n[ae]t",), "src/net/url.py", True),
    (("n[!e]t",), "src/net/url.py", False),
    (("src/n*",), "src/net/url.py", True),
    (("*.c", "*.py"), "src/net/url.py", True),
    (("**",), "a\nb.py", True),
    (("[",), "a[1].py", True),
    (("[1]",), "1", True),
    (("[z-a]",), "x/[z-a]", True),
    (("[!a-c]x",), "dx", True),
    (("[!a-c]x",), "bx", False),
    (("[]",), "a[].py", True),
    (("/src",), "src/net/url.py", True),
    (("/net",), "src/net/url.py", False),
    (("/net/*",), "src/net/url.py", False),
    (("/s*/net/",), "src/net/url.py", True),
    (("net/",), "src/net/url.py", True),
    (("",), "anything", True),
    ((), "anything", True),
]


@pytest.mark.parametrize(("patterns", "path", "passes"), CASES)
def test_globs_and_parts_of_paths(patterns: tuple[str, ...], path: str, passes: bool) -> None:
    assert path_test(patterns)(path) is passes
