"""The words of code and of questions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.index import words
from lcursor.index.records import Chunk


def chunk(text: str, scope: str = "") -> Chunk:
    return Chunk(0, 1, text, scope, "code", b"")


@pytest.mark.parametrize(
    ("run", "terms"),
    [
        ("open", "open"),
        ("Files", "fil"),
        ("parse_http_header", "parse_http_header pars http head"),
        ("HTTPServer", "httpserver http serv"),
        ("parseURL2", "parseurl2 pars url"),
        ("sha256", "sha256 sha 256"),
        ("__init__", "init"),
        ("_", "_"),
        ("MAX_SIZE", "max_size max siz"),
        ("tokenizers", "tokeniz"),
        ("Café", "caf"),
        ("日本語", "日本 本語"),
    ],
)
def test_an_identifier_is_split(run: str, terms: str) -> None:
    assert " ".join(words.split(run)) == terms


@pytest.mark.parametrize(
    "forms",
    [
        "tokenize tokenizer tokenized tokenizing tokenization",
        "cache caches cached caching",
        "run runs running",
        "stop stops stopped stopping",
        "query queries",
        "entry entries",
        "connect connects connected connection connecting connector",
        "match matches matched matching",
        "class classes",
        "index indexes indexed indexing",
        "pass passes passed passing",
        "file files",
        "error errors",
        "edit edits editor editors editing",
        "format formats formatter formatting",
        "process processes processor",
        "remove removes removed removing",
    ],
)
def test_the_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({words.stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    "pair",
    [
        "form format",
        "string str",
        "bus busy",
        "test text",
        "thing the",
        "author auth",
        "letter let",
        "order ord",
        "error err",
        "color col",
    ],
)
def test_other_words_have_other_stems(pair: str) -> None:
    assert len({words.stem(word) for word in pair.split()}) == 2


def test_a_chunk_is_found_by_its_path_and_its_scope() -> None:
    stored = words.index_text("src/net/http_client.py", chunk("x = 1", "Client > fetch")).split()
    assert {"net", "http_client", "client", "fetch", "x", "1"} <= set(stored)


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("zqsave0x", "zqsave0x zqsave0x zqsave0x zqsav"),
        ("sha256", "sha256 sha256 sha256 sha"),
        ("x1", "x1 x1 x1"),
        ("where is parse_url", "parse_url parse_url parse_url pars url"),
        ("cache", "cach"),
        ("3 cats", "3 cat"),
        ("日本語", "日本 本語"),
        (
            " ".join(f"name_{n}" for n in "abcdefg"),
            "name_a nam name_b name_c name_d name_e name_f name_g",
        ),
    ],
)
def test_an_identifier_counts_more_than_its_parts(question: str, terms: str) -> None:
    assert " ".join(words.terms(question)) == terms


@pytest.mark.parametrize(
    ("name", "term"),
    [
        ("zqsave0x", "zqsave0x"),
        ("parseURL", "parseurl"),
        ("_parse_url", "parse_url"),
        ("cache", ""),
        ("_cache", ""),
        ("日本語", ""),
    ],
)
def test_the_term_of_a_whole_identifier(name: str, term: str) -> None:
    assert words.whole(name) == term


def test_a_question_of_words_that_say_nothing_keeps_them() -> None:
    assert words.terms("to be or to do") == ["to", "be", "or", "do"]


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("read a file in python", "read fil"),
        ("python read lines", "read lin"),
        ("open sockets using C++", "open socket"),
        ("sort a list python 3", "sort list"),
        ("find the python interpreter", "find python interpret"),
        ("in python", "in python"),
        ("python", "python"),
    ],
)
def test_a_mention_of_a_language_is_dropped(question: str, terms: str) -> None:
    assert " ".join(words.terms(question)) == terms


@pytest.mark.parametrize(
    "text",
    ["def wash(car):", "class Wash:", "local function M.wash(car)", "  fn wash() {", "func wash()"],
)
def test_defined_names_count_twice(text: str) -> None:
    assert words.index_text("a.py", chunk(text)).split().count("wash") == 2


@pytest.mark.parametrize("nothing", ["", "  ", "+-*/", "\udc80", "x" * 5000])
def test_a_question_without_words_has_no_terms(nothing: str) -> None:
    assert words.terms(nothing) == []


def test_a_pasted_file_is_a_question_of_bounded_size() -> None:
    assert len(words.terms(" ".join(f"word{n}" for n in range(9999)))) < 65


@given(text=st.text())
def test_the_terms_of_any_question_are_words(text: str) -> None:
    assert all(re.fullmatch(r"\w+", term) for term in words.terms(text))


@given(text=st.text(min_size=1, max_size=60))
def test_words_of_a_text_find_it(text: str) -> None:
    stored = set(words.index_text("a.py", chunk(text)).split())
    assert set(words.terms(text)) <= stored


@pytest.mark.parametrize(
    ("question", "is_name"),
    [
        ("parse_url", True),
        ("HTTPServer", True),
        ("os.path.join", True),
        ("std::vector", True),
        ("Foo#bar", True),
        ("ptr->next", True),
        ("run()", True),
        ("open(path, mode)", True),
        ("@run", True),
        ("`run`", True),
        ("_private", True),
        ("run", False),
        ("open a file", False),
        ("HTTPServer handler", False),
        ("", False),
        ("3.5", False),
    ],
)
def test_names_and_sentences_are_distinguished(question: str, is_name: bool) -> None:
    assert words.is_symbol_like(question) is is_name


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("where is ModelCorrupt raised", ["ModelCorrupt"]),
        ("who calls parse_url and os.walk?", ["parse_url", "os.walk"]),
        ("How to open a File", []),
        ("the README of setup.py, e.g. this.", []),
        ("`_run` fails", ["_run"]),
        ("call fetchAll(x) twice, fetchAll(y)", ["fetchAll"]),
    ],
)
def test_names_are_found_in_sentences(question: str, names: list[str]) -> None:
    assert words.names(question) == names


def test_keywords_are_words_that_may_be_in_a_path() -> None:
    assert words.keywords("how does the functionCache of python work") == ["cache", "work"]


@pytest.mark.parametrize(
    ("name", "last", "around"),
    [
        ("a.b.c", "c", ["a", "b"]),
        ("std::vector", "vector", ["std"]),
        ("run", "run", []),
        ("Foo#bar", "bar", ["Foo"]),
    ],
)
def test_a_qualified_name_is_taken_apart(name: str, last: str, around: list[str]) -> None:
    assert (words.last_name(name), words.scope_names(name)) == (last, around)
