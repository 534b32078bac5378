"""The search eval: reading CoSQA, docstrings, ranks and what they come to."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evals import search as judge
from evals.search import Question

CODES = [
    'def remove(path):\n    """Delete a file."""\n    os.unlink(path)',
    'def mean(values):\n    """Average of numbers."""\n    return sum(values) / len(values)',
    "def connect(host, port):\n    return socket.create_connection((host, port))",
]
ASKED = [("delete a file", 0), ("connect to host", 2), ("zzz", 1)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "cosqa"
    folder.mkdir()
    numbers = {code: number for number, code in reversed(list(enumerate(CODES)))}
    (folder / judge.CODES).write_text(json.dumps(numbers))
    asked = [{"doc": text, "retrieval_idx": answer, "label": 1} for text, answer in ASKED]
    (folder / judge.QUESTIONS).write_text(json.dumps(asked))
    return folder


def test_the_data_is_read_in_the_order_of_its_numbers(data: Path) -> None:
    corpus = judge.load(data)
    assert corpus.codes == tuple(CODES)
    assert corpus.questions == tuple(Question(text, answer) for text, answer in ASKED)
    assert judge.load(data, 2).questions == corpus.questions[:2]


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ('def a():\n    """One."""\n    return 1', "def a():\n    \n    return 1"),
        (
            'def a():\n    """One.\n\n    Two.\n    """\n    return 1',
            "def a():\n    \n    return 1",
        ),
        ('def a():\n    """ä ö."""\n    return "ü"', 'def a():\n    \n    return "ü"'),
        ('def a():\n    x = """no docstring"""', 'def a():\n    x = """no docstring"""'),
        ("def a():\n    return 1", "def a():\n    return 1"),
        ('def a():\n    """Old."""\n    print 1', "def a():\n    \n    print 1"),
        ("def a():\n    print '''x'''", "def a():\n    print '''x'''"),
        ("", ""),
    ],
)
def test_a_docstring_is_taken_out_and_nothing_else(code: str, left: str) -> None:
    assert judge.without_docstring(code) == left


def test_the_scores_of_ranks() -> None:
    found = judge.scores([1, 2, 0, 20])
    assert found.questions == 4
    assert found.mrr == pytest.approx((1 + 1 / 2 + 1 / 20) / 4)
    assert found.ndcg10 == pytest.approx((1 + 1 / math.log2(3)) / 4)
    assert (found.recall1, found.recall10) == (0.25, 0.5)
    assert judge.scores([]).mrr == 0


def test_ranks_are_those_of_the_answers() -> None:
    class Searcher:
        def search(self, text: str, **how: Any) -> list[SimpleNamespace]:
            assert how == {"limit": judge.LIMIT, "mode": "lexical", "has_rules": False}
            return [SimpleNamespace(path=judge.path_of(number)) for number in (2, 0)]

    questions = [Question("a", 0), Question("b", 2), Question("c", 1)]
    found = judge.ranks(Searcher(), questions, "lexical", has_rules=False)  # type: ignore[arg-type]
    assert list(found) == [2, 1, 0]


def test_the_words_of_a_function_find_it(data: Path, tmp_path: Path) -> None:
    corpus = judge.load(data)
    name, tables = judge.measure(corpus, ["lexical"])
    assert name == "none"
    assert set(tables) == set(judge.TABLES)
    assert tables["modes"]["lexical"].recall1 == pytest.approx(2 / 3)
    assert tables["without_docstrings"]["lexical"].recall1 == pytest.approx(1 / 3)


def test_a_function_is_found_by_its_vector_which_is_kept(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lcursor.index.embed import Embedder

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    corpus, said = judge.load(data), list[str]()
    _, tables = judge.measure(corpus, judge.MODES, everything=False, report=said.append)
    assert set(tables) == {"modes"}
    assert tables["modes"]["vector"].recall1 >= 2 / 3
    assert tables["modes"]["hybrid"].recall1 >= 2 / 3
    assert "3 of 3 functions with docstrings embedded" in said

    def fail(*_: Any) -> None:
        raise AssertionError("embedded again")

    monkeypatch.setattr(Embedder, "texts", fail)
    _, again = judge.measure(corpus, judge.MODES, everything=False)
    assert again == tables
