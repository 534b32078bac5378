"""From several lists to one: the arithmetic."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.index import rank
from lcursor.index.query import Kind, parse
from lcursor.index.rank import Facts, Leg, Ranked, Scored


def ranked(
    text: str,
    facts: dict[int, Facts],
    *,
    has_rules: bool = True,
    decay: float = 0.95,
    **legs: list[int],
) -> list[Ranked]:
    lists: dict[Leg, Scored] = {
        name: [(chunk, decay**place) for place, chunk in enumerate(legs[name])]
        for name in ("lexical", "vector", "symbol", "recent")
        if name in legs
    }
    return rank.rank(parse(text), lists, facts, has_rules=has_rules)


def order(found: list[Ranked]) -> list[int]:
    return [one.id for one in found]


def paths(*names: str) -> dict[int, Facts]:
    return {number: Facts(name) for number, name in enumerate(names, start=1)}


def test_the_last_of_a_short_list_of_similar_vectors_counts_nearly_as_much_as_the_first() -> None:
    found = rank.fuse({"vector": [(1, 0.71), (2, 0.70)]}, "text")
    assert found[2].score == pytest.approx(1 - 0.01 / rank.COSINE_SPAN)


def test_names_follow_the_words_and_sentences_the_vectors() -> None:
    facts = paths("a.py", "b.py")

    def first(text: str) -> int:
        found = ranked(text, facts, has_rules=False, decay=0.7, lexical=[1, 2], vector=[2, 1])
        return order(found)[0]

    assert (first("open_doors"), first("open the doors")) == (1, 2)


LISTS: dict[Leg, Scored] = {
    "lexical": [(1, 4.0), (2, 1.0)],
    "vector": [(1, 0.9), (2, 0.7), (3, 0.5)],
    "symbol": [(2, 0.5), (3, 0.25)],
    "recent": [(3, 0.0), (1, -1.0)],
}


@pytest.mark.parametrize(
    ("kind", "lists", "expected"),
    [
        (
            "mixed",
            LISTS,
            {
                1: {"lexical": 0.5, "vector": 0.6, "recent": 0.05 * 61 / 62},
                2: {"lexical": 0.125, "vector": 0.2, "symbol": 0.6},
                3: {"symbol": 0.3, "recent": 0.05},
            },
        ),
        (
            "text",
            LISTS,
            {
                1: {"lexical": 0.2, "vector": 1.0, "recent": 0.05 * 61 / 62},
                2: {"lexical": 0.05, "vector": 1 / 3},
                3: {"recent": 0.05},
            },
        ),
        # Where all of a list score the same, all count as its best.
        (
            "mixed",
            {"vector": [(1, 0.3)], "lexical": [(2, 0.0), (3, 0.0)], "symbol": []},
            {1: {"vector": 0.6}, 2: {"lexical": 0.5}, 3: {"lexical": 0.5}},
        ),
    ],
)
def test_each_list_counts_relative_to_its_best(
    kind: Kind, lists: dict[Leg, Scored], expected: dict[int, dict[str, float]]
) -> None:
    found = {one.id: one.parts for one in rank.fuse(lists, kind).values()}
    assert found == {number: pytest.approx(each) for number, each in expected.items()}


@pytest.mark.parametrize(
    ("question", "facts", "expected"),
    [
        (
            "open_doors",
            {1: Facts("open_doors.py", 0.5, "open_doors"), 2: Facts("tests/b.py")},
            {
                1: {"lexical": 0.7, "definition": 1.05, "named file": 0.525, "file": 0.11375},
                2: {"lexical": 0.35, "file": 0.0175, "tests": -0.25725},
            },
        ),
        (
            "open_doors",
            {1: Facts("a.py"), 2: Facts("b.py", is_literal=True)},
            {
                1: {"lexical": 0.7, "file": 0.035},
                2: {"lexical": 0.35, "literal": 2.8, "file": 0.1575},
            },
        ),
        (
            "open doors",
            {1: Facts("a.py"), 2: Facts("doors/x.py")},
            {
                1: {"lexical": 0.2, "file": 0.01},
                2: {"lexical": 0.1, "path": 0.05, "file": 0.0075},
            },
        ),
        (
            "open doors",
            {1: Facts("a.py"), 2: Facts("b.py"), 3: Facts("b.py")},
            {
                1: {"lexical": 0.2, "file": 0.01},
                2: {"lexical": 0.1, "file": 0.2 * 0.05 * (1 / 2 + 1 / 3)},
                3: {"lexical": 0.2 / 3},
            },
        ),
        (
            "open doors",
            {1: Facts("tests/__init__.py")},
            {1: {"lexical": 0.2, "file": 0.01, "tests": -0.147, "facade": -0.0315}},
        ),
    ],
)
def test_the_amount_of_each_rule(
    question: str, facts: dict[int, Facts], expected: dict[int, dict[str, float]]
) -> None:
    lists: dict[Leg, Scored] = {"lexical": [(number, 1 / number) for number in facts]}
    found = {one.id: one.parts for one in rank.rank(parse(question), lists, facts)}
    assert found == {number: pytest.approx(each) for number, each in expected.items()}


def test_a_chunk_that_is_gone_is_left_out() -> None:
    assert order(ranked("open doors", paths("a.py"), lexical=[7, 1])) == [1]


@pytest.mark.parametrize("path", ["net/proxy.py", "proxy/main.go", "lib/proxies.ts"])
def test_a_file_that_is_called_like_the_question_is_lifted(path: str) -> None:
    found = ranked("connect through a proxy", paths("net/other.py", path), lexical=[1, 2])
    assert order(found) == [2, 1]
    assert "path" in found[0].parts


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("tests/unit/open.py", "tests"),
        ("src/test_open.py", "tests"),
        ("src/open_test.go", "tests"),
        ("src/open.spec.ts", "tests"),
        ("conftest.py", "tests"),
        ("examples/open.py", "aside"),
        ("compat.py", "aside"),
        ("src/__init__.py", "facade"),
        ("open.d.ts", "declared"),
        ("docs/open.md", "prose"),
        ("doc/open.txt", "prose"),
        ("CHANGELOG", "prose"),
    ],
)
def test_paths_that_are_seldom_meant_are_lowered(path: str, part: str) -> None:
    found = ranked("close every door", paths(path, "src/main.py"), lexical=[1, 2])
    assert order(found) == [2, 1]
    assert found[1].parts[part] < 0


@pytest.mark.parametrize(
    "path",
    [
        "src/contest.py", "src/latest/open.py", "attest.py", "src/example.py", "protest/a.py",
        "src/CMakeLists.txt",
    ],
)  # fmt: skip
def test_paths_that_only_look_like_tests_or_prose_are_not_lowered(path: str) -> None:
    assert order(ranked("close doors", paths(path, "src/main.py"), lexical=[1, 2])) == [1, 2]


@pytest.mark.parametrize(
    "question",
    ["what does the readme say about doors", "doors path:*.md", "documentation of doors"],
)
def test_questions_about_documents_find_them(question: str) -> None:
    facts = paths("README.md", "src/main.py")
    if "path:" in question:
        facts = paths("README.md", "docs/main.md")
    assert order(ranked(question, facts, lexical=[1, 2])) == [1, 2]


@pytest.mark.parametrize(
    ("low", "part"),
    [
        (Facts("src/a.rs", scope="tests"), "tests"),
        (Facts("src/a.rs", scope="tests > opens"), "tests"),
        (Facts("src/a.rs", scope="fmt_tests > opens"), "tests"),
        (Facts("src/a.rs", is_bare=True), "bare"),
    ],
)
def test_chunks_that_are_seldom_meant_are_lowered(low: Facts, part: str) -> None:
    found = ranked("close every door", {1: low, 2: Facts("b.rs", scope="Door")}, lexical=[1, 2])
    assert order(found) == [2, 1]
    assert found[1].parts[part] < 0


@pytest.mark.parametrize(
    "high",
    [
        Facts("src/a.rs", scope="latest > opens"),
        Facts("src/a.rs", scope="tests_left > opens"),
        Facts("src/a.rs", scope="Door > tests"),
    ],
)
def test_scopes_that_only_look_like_tests_are_not_lowered(high: Facts) -> None:
    assert order(ranked("close doors", {1: high, 2: Facts("b.rs")}, lexical=[1, 2])) == [1, 2]


@pytest.mark.parametrize("question", ["test that doors close", "doors path:tests"])
def test_questions_about_tests_find_tests(question: str) -> None:
    facts = paths("tests/a.py", "src/main.py")
    assert order(ranked(question, facts, lexical=[1, 2])) == [1, 2]


def test_a_question_about_tests_finds_those_in_files_of_code() -> None:
    facts = {1: Facts("src/a.rs", scope="tests > opens"), 2: Facts("src/b.rs", scope="open")}
    assert order(ranked("test that doors close", facts, lexical=[1, 2])) == [1, 2]


LIST = st.lists(st.integers(1, 12), unique=True)


@given(
    text=st.sampled_from(["open_doors", "doors", "who calls open_doors", "open all doors"]),
    lexical=LIST,
    vector=LIST,
    symbol=LIST,
    recent=LIST,
    files=st.lists(
        st.sampled_from(["a.py", "b.py", "tests/a.py", "doors/__init__.py", "open_doors.py"]),
        min_size=12,
        max_size=12,
    ),
    sure=st.lists(st.sampled_from([0.0, 0.4, 1.0]), min_size=12, max_size=12),
    has_rules=st.booleans(),
)
def test_the_parts_add_up_and_the_order_follows(
    text: str,
    lexical: list[int],
    vector: list[int],
    symbol: list[int],
    recent: list[int],
    files: list[str],
    sure: list[float],
    has_rules: bool,
) -> None:
    facts = {
        number: Facts(path, certain, "open_doors" if certain else "")
        for number, (path, certain) in enumerate(zip(files, sure, strict=True), start=1)
    }
    found = ranked(
        text,
        facts,
        has_rules=has_rules,
        lexical=lexical,
        vector=vector,
        symbol=symbol,
        recent=recent,
    )
    assert {one.id for one in found} == {*lexical, *vector, *symbol}
    for one in found:
        assert math.isclose(one.score, math.fsum(one.parts.values()), abs_tol=1e-12)
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("wanted", "path", "share"),
    [
        (["proxy"], "proxy.py", 1.0),
        (["proxy", "door"], "net/proxy.py", 0.5),
        (["proxy"], "proxy/net/main.py", 0.0),
        (["net"], "proxy/net/main.py", 1.0),
        (["conf"], "config.py", 1.0),
        (["co"], "config.py", 0.0),
        ([], "config.py", 0.0),
    ],
)
def test_the_share_of_words_in_a_path(wanted: list[str], path: str, share: float) -> None:
    assert rank.share(wanted, path) == share
