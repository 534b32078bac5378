"""Which paths are meant."""

from __future__ import annotations

import re
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from lcursor.project.globs import MAX_CHARS, path_test, rule_test, translate

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
    (("app/[slug]/",), "app/[slug]/page.tsx", True),
    (("app/[slug]/",), "app/s/page.tsx", True),
    (("app/[...all]",), "app/[...all]/page.tsx", True),
    (("[[...all]]/*.tsx",), "app/[[...all]]/page.tsx", True),
    (("/app/[slug]/**/*.tsx",), "app/[slug]/a/page.tsx", True),
    (("/[slug]/*.tsx",), "app/[slug]/page.tsx", False),
    (("[*]/*.py",), "src/[*]/a.py", True),
]


@pytest.mark.parametrize(("patterns", "path", "passes"), CASES)
def test_globs_and_parts_of_paths(patterns: tuple[str, ...], path: str, passes: bool) -> None:
    assert path_test(patterns)(path) is passes


BRACKETS = ["app/[slug]/page.tsx", "app/s/page.tsx", "app/[id]/page.tsx", "lib/a.ts", "lib/s.ts"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("app/[slug]/", [0]),
        ("app/[slug]/*.tsx", [0]),
        ("/app/[slug]", [0]),
        ("[id]", [2]),
        ("[slug]/page.tsx", [0]),
        ("app/[ls]/", [1]),
        ("lib/[as].ts", [3, 4]),
    ],
)
def test_brackets_are_literal_if_a_path_has_them(pattern: str, found: list[int]) -> None:
    """So that folders such as those of web frameworks can be named."""
    test = path_test([pattern], BRACKETS)
    assert [each for each in BRACKETS if test(each)] == [BRACKETS[number] for number in found]


def test_each_pattern_decides_for_itself_whether_it_is_literal() -> None:
    test = path_test(["app/[slug]/", "lib/[a].ts"], BRACKETS)
    assert [each for each in BRACKETS if test(each)] == [BRACKETS[0], BRACKETS[3]]


GLOBS = st.lists(
    st.sampled_from(["a", "b", "/", "*", "*", "?", "**", "**/", "{", ",", "}", "[ab]", "[!a]"]),
    max_size=8,
).map("".join)
PATHS = st.lists(st.sampled_from("ab/\n,{"), max_size=8).map("".join)


@given(GLOBS, PATHS)
def test_a_glob_matches_what_its_regular_expression_matches(glob: str, path: str) -> None:
    bare = f"{glob}*".strip("/")
    regex = f"(?s:(?:.*/)?(?:{translate(bare)})(?:/.*)?)"
    assert path_test([bare])(path) is (re.fullmatch(regex, path) is not None)
    rooted = re.fullmatch(f"(?s:(?:{translate(bare)})(?:/.*)?)", path)
    assert path_test([f"/{bare}"])(path) is (rooted is not None)


RULES = st.lists(
    st.sampled_from(["a", "b", "/", "*", "*", "?", "**", "/**/", "[ab]", "[!a]", "\\*", "(", "."]),
    min_size=1,
    max_size=8,
).map("".join)


@given(RULES, st.lists(st.sampled_from("ab/*(\n"), max_size=8).map("".join))
def test_an_ignore_rule_matches_what_its_regular_expression_matches(rule: str, path: str) -> None:
    regex = GitIgnoreSpecPattern(f"*a*{rule}").regex
    assume("//" not in path and not path.startswith("/"))
    assert regex is not None
    expected = re.fullmatch(regex.pattern, path, re.S) is not None
    assert bool(rule_test(regex.pattern)(path)) is expected


def test_an_ignore_rule_with_many_stars_takes_few_steps() -> None:
    regex = GitIgnoreSpecPattern("*a" * 30 + "b").regex
    assert regex is not None
    assert rule_test(regex.pattern)("a" * 200) is False
    assert rule_test(regex.pattern)("a" * 200 + "b") is True


def _lines(pattern: str, path: str) -> int:
    """Return how many lines of Python are run to match a path."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert not path_test([pattern])(path)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("part", ["*a", "**/a", "**a", "{a,a*}", "a*/**/", "[!b]*", "?*"])
def test_the_work_for_a_glob_grows_with_the_length_of_a_path_only(part: str) -> None:
    path = "aaaaaaa/" * 5 + "a" * 60
    work = [_lines(part * 10 + "b", path * times) for times in (1, 2, 4)]
    assert 0 < work[2] <= 6 * work[0]


def test_a_very_long_glob_matches_nothing() -> None:
    assert path_test(["a" * MAX_CHARS + "*"])("a" * MAX_CHARS) is False
    assert path_test(["{" * 200 + "a*" + "}" * 200])("ab") is True
