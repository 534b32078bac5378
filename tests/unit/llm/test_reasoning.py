"""What a model thinks is told from what it answers, wherever the stream is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.llm.records import Reasoning, Text
from lcursor.llm.streaming import TAGS, ReasoningSplitter

CASES: list[tuple[str, str, str]] = [
    ("Hello", "", "Hello"),
    ("<think>hm</think>\n\nHello", "hm", "Hello"),
    ("\n <think>hm</think>Hello", "hm", "Hello"),
    ("<think></think>Hello", "", "Hello"),
    ("<think>\n\n</think>\n\n", "\n\n", ""),
    ("<thinking>a</thinking>b", "a", "b"),
    ("[THINK]a[/THINK]b", "a", "b"),
    ("<think>never ends </thin", "never ends </thin", ""),
    ("<think>a < b </ c </think>d", "a < b </ c ", "d"),
    ("<thin", "", "<thin"),
    ("<thinker>a", "", "<thinker>a"),
    ("The tag <think>x</think> is mine", "", "The tag <think>x</think> is mine"),
    ("<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
    ("  indented", "", "  indented"),
    ("   ", "", "   "),
    ("", "", ""),
]


def told(pieces: list[str]) -> tuple[str, str]:
    """Return what was thought and what was answered."""
    split, found = ReasoningSplitter(), []
    for piece in pieces:
        found += split.feed(piece)
    found += split.finish()
    assert all(one.text for one in found)
    thought = "".join(one.text for one in found if isinstance(one, Reasoning))
    return thought, "".join(one.text for one in found if isinstance(one, Text))


@pytest.mark.parametrize(("text", "thought", "answer"), CASES)
def test_any_cut_gives_the_same(text: str, thought: str, answer: str) -> None:
    for size in range(1, len(text) + 2):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert told(pieces) == (thought, answer), size


@given(
    st.sampled_from(TAGS),
    st.text(alphabet="<>/think a[]THINK\n", max_size=30),
    st.text(max_size=30),
    st.lists(st.integers(1, 9), max_size=40),
)
def test_nothing_is_lost(tag: tuple[str, str], thought: str, answer: str, cuts: list[int]) -> None:
    start, end = tag
    thought = thought.replace(end, "")
    text, pieces = start + thought + end + answer, []
    for cut in cuts:
        pieces.append(text[:cut])
        text = text[cut:]
    assert told([*pieces, text]) == (thought, answer.lstrip())


def test_certain_text_is_reported_at_once() -> None:
    split = ReasoningSplitter()
    assert split.feed("He") == [Text("He")]
    assert split.feed("<th") == [Text("<th")], "tags count at the beginning alone"
    split = ReasoningSplitter()
    assert split.feed("<think>a") == [Reasoning("a")]
    assert split.feed("b</") == [Reasoning("b")]
    assert split.feed("x") == [Reasoning("</x")]


def test_reasoning_that_a_server_reports_separately() -> None:
    split = ReasoningSplitter()
    split.skip()
    assert split.feed("\n\n") == []
    assert split.feed("<think>") == [Text("<think>")], "the answer is about tags"
