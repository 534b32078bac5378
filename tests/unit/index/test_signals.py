"""What code says of itself in words, whether that is what was asked, and what stands out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.index import signals


@pytest.mark.parametrize(
    ("text", "language", "said"),
    [
        ('def a():\n    """Open it."""\n    return b', "python", "Open it."),
        ("def a():\n    '''Open\n    it.'''", "python", "Open\n    it."),
        ('def a():\n    """Never ends', "python", "Never ends"),
        ("x = 1  # one\n# two\ny = 2", "python", "one\ntwo"),
        ("/* Open\n it. */ int a; // close", "c", " Open\n it. \nclose"),
        ("/** Opens. */\nfn a() {}\n/// Closes.", "rust", " Opens. \nCloses."),
        ("-- open\nlocal x = 1 --[[ close ]]", "lua", "open\n close "),
        ("; open\n(defun a ())", "text", "; open\n(defun a ())"),
        ("<p>a</p><!-- open -->", "xml", " open "),
        ("SELECT 1; -- one", "sql", "one"),
        ("i--; a = b // c", "c", "c"),
        ("url = 'http://host/path'", "python", ""),
        ("# Title\nwords", "markdown", "# Title\nwords"),
        ("", "python", ""),
    ],
)
def test_prose_is_comments_and_docstrings(text: str, language: str, said: str) -> None:
    assert signals.prose(text, language) == said


def test_forms_are_the_telling_words_and_their_stems() -> None:
    forms = signals.forms("How do I open the files in python?")
    assert {"open", "files"} < set(forms)
    assert not {"how", "i", "the", "python"} & set(forms)
    assert len(forms) == len(set(forms))
    assert signals.forms("") == signals.forms("how do i") == []


def test_agreement_grows_with_the_words_and_is_whole_only_with_all() -> None:
    question = signals.forms("convert string to datetime")
    shares = [
        signals.agreement(question, said)
        for said in ("nothing", "a string", "convert a string", "Convert a string to a datetime.")
    ]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == 1
    assert shares[1] < 1 / 3  # a part of it says less than its share


def test_the_very_word_agrees_more_than_its_stem() -> None:
    question = signals.forms("iterating files")
    exact, stemmed = (
        signals.agreement(question, said) for said in ("iterating files", "iterate file")
    )
    assert exact == 1
    assert 0 < stemmed < 1


def test_parts_of_names_in_comments_count() -> None:
    assert signals.agreement(signals.forms("open file"), "See openFile.") == 1
    assert signals.agreement(signals.forms("open file"), "See open_file.") == 1


@given(st.text(max_size=200), st.text(max_size=200), st.sampled_from(["python", "text", "c"]))
def test_any_text_is_read(question: str, text: str, language: str) -> None:
    assert 0 <= signals.agreement(signals.forms(question), signals.prose(text, language)) <= 1


def test_vectors_near_many_others_are_crowded() -> None:
    angles = np.radians([0, 2, 4, 90])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    found = signals.crowding(vectors, 2)
    assert found.dtype == np.float32
    assert found[1] == pytest.approx(np.cos(angles[1]), abs=1e-6)
    assert found[1] > found[0] > found[3]
    assert found[3] == pytest.approx((np.sin(angles[2]) + np.sin(angles[1])) / 2, abs=1e-6)


@pytest.mark.parametrize(("count", "expected"), [(0, []), (1, [0.0]), (2, [1.0, 1.0])])
def test_few_vectors_are_compared_with_all_others(count: int, expected: list[float]) -> None:
    vectors = np.ones((count, 1), np.float32)
    assert signals.crowding(vectors, 10).tolist() == expected


@given(
    st.lists(st.sampled_from(["tries", "trying", "query", "x", "A", "openFile", "Read", "ssl"])),
    st.lists(st.sampled_from(["try", "queries", "x", "a", "open", "reading", "SSL", "file_name"])),
)
def test_words_that_are_skipped_would_not_have_agreed(said: list[str], asked: list[str]) -> None:
    question = signals.forms(" ".join(asked))
    having = {form for run in said for form in signals._forms(run)}
    share = sum(form in having for form in question) / len(question) if question and said else 0
    assert signals.agreement(question, " ".join(said)) == pytest.approx(share**2)
