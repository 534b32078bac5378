"""Questions written by hand: read, asked, judged, reported."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from evals import queries
from evals.queries import Answer, Corpus, Judged, Question
from lcursor.errors import LcursorError
from lcursor.index.records import Hit

CODE = """class Garage:
    def open_door(self):
        return self.door


def wash(car):
    return car
"""
QUESTIONS = """# Of a garage.
[symbols]
open_door => src/garage.py::Garage.open_door
wash => src/garage.py::nothing_of_that_name | src/garage.py::wash

[sentences]
clean an automobile that is dirty => src/garage.py::wash
how does a door open => src/garage.py
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    folder = tmp_path / "project/src"
    folder.mkdir(parents=True)
    (folder / "garage.py").write_text(CODE)
    (folder / "notes.bin").write_bytes(b"wash open_door")
    (tmp_path / "project/left_out.py").write_text("def wash(car): ...\n")
    return Corpus("garage", tmp_path / "project", ("src",))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "garage.txt").write_text(QUESTIONS)
    return tmp_path


def test_questions_are_read(data: Path) -> None:
    first, second, *rest = queries.load("garage", data)
    assert first == Question(
        "garage", "symbols", "open_door", (Answer("src/garage.py", "Garage.open_door"),)
    )
    assert len(second.answers) == 2
    assert [each.kind for each in rest] == ["sentences", "sentences"]
    assert rest[1].answers == (Answer("src/garage.py"),)


def test_questions_are_asked_and_judged(corpus: Corpus, data: Path) -> None:
    found = queries.measure(["lexical"], data=data, corpora=[corpus])
    assert [each.rank for each in found] == [1, 1, 0, 1]
    assert found[0].first == "src/garage.py:2"


def test_an_answer_that_is_gone_is_reported(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "garage.txt").write_text("[symbols]\nwash => src/garage.py::wash_up\n")
    with pytest.raises(LcursorError, match="wash"):
        queries.measure(["lexical"], data=tmp_path, corpora=[corpus])


@pytest.mark.parametrize("corpus", queries.CORPORA, ids=lambda each: each.name)
def test_the_questions_have_answers_still(corpus: Corpus) -> None:
    questions = queries.load(corpus.name)
    kinds = [each.kind for each in questions]
    assert min(kinds.count("symbols"), kinds.count("sentences")) >= 40
    assert len({each.text for each in questions}) == len(questions)
    for question in questions:
        for answer in question.answers:
            path = corpus.root / answer.path
            name = answer.name.rpartition(".")[2]
            there = path.is_file() and name in path.read_text(encoding="utf-8")
            is_any = len(question.answers) > 1  # some are of newer Pythons only
            assert there or is_any, f"{question.text} => {answer}"
        assert any((corpus.root / answer.path).is_file() for answer in question.answers)


def test_the_questions_about_other_repositories_are_about_a_commit() -> None:
    names = {path.stem for path in queries.DATA.glob("*.txt")}
    others = names - {corpus.name for corpus in queries.CORPORA}
    assert len(others) >= 4
    for name in others:
        head = (queries.DATA / f"{name}.txt").read_text().split("\n", 1)[0]
        assert re.match(rf"# [\w-]+/{re.escape(name)} at [0-9a-f]{{40}}\.", head)
        assert len(queries.load(name)) >= 12


@pytest.mark.parametrize(
    ("first", "end", "as_name", "as_sentence"),
    [(10, 20, True, True), (5, 11, True, True), (11, 12, False, True), (0, 10, False, False)],
)
def test_a_name_must_lead_to_the_definition_and_a_sentence_into_it(
    first: int, end: int, as_name: bool, as_sentence: bool
) -> None:
    hit = Hit("a.py", first, end, "", "python", "", 1.0)
    assert queries.is_right(hit, "symbols", "a.py", 10, 20) is as_name
    assert queries.is_right(hit, "sentences", "a.py", 10, 20) is as_sentence
    assert not queries.is_right(hit, "sentences", "b.py", 10, 20)


def test_ranks_are_counted() -> None:
    question = Question("garage", "symbols", "wash", (Answer("a.py"),))
    other = Question("boats", "symbols", "sail", (Answer("a.py"),))
    found = [Judged(question, "lexical", 1, "a.py:1"), Judged(other, "lexical", 2, "b.py:3")]
    document = queries.as_dict(found, {})
    rows = document["modes"]["lexical"]
    counted = rows["symbols"]
    assert counted.pop("ndcg10") == pytest.approx((1 + 1 / math.log2(3)) / 2)
    assert counted == {"questions": 2, "mrr": 0.75, "first": 0.5, "recall10": 1.0}
    assert rows["symbols of boats"]["mrr"] == 0.5
    assert [each["question"] for each in document["misses"]] == ["sail"]
