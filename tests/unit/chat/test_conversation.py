"""A chat's tree: whatever is done to it, nothing that was said is lost."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcursor.chat import prompt
from lcursor.chat.conversation import (
    Conversation,
    Op,
    preview_of,
    title_of,
)
from lcursor.llm.records import Message


def chat_of(*ops: Op) -> Conversation:
    """Return a chat to which operations were done."""
    chat = Conversation(key="k", root="/p")
    for op in ops:
        chat.apply(op)
    return chat


def say(number: int, parent: int, text: str = "") -> Op:
    return {"op": "say", "number": number, "parent": parent, "text": text or f"question {number}"}


def answer(number: int, parent: int, text: str = "", end: str = "stop") -> tuple[Op, ...]:
    return (
        {"op": "answer", "number": number, "parent": parent, "model": "m"},
        {"op": "more", "number": number, "text": text or f"answer {number}", "reasoning": "hm"},
        {"op": "end", "number": number, "reason": end, "cost": {"prompt_tokens": 3}},
    )


def pairs(count: int) -> list[Op]:
    """Return the operations of so many questions with their answers, one after another."""
    ops: list[Op] = []
    for number in range(1, 2 * count, 2):
        ops += [say(number, number - 1), *answer(number + 1, number)]
    return ops


def summed(number: int, last: int, text: str = "short") -> Op:
    return {"op": "sum", "number": number, "last": last, "text": text}


def texts(messages: list[Message]) -> list[str]:
    return [each.text for each in messages]


def test_a_line_is_what_was_said_last() -> None:
    chat = chat_of(*pairs(2))
    assert [each.number for each in chat.branch()] == [1, 2, 3, 4]
    assert chat.last == 4
    assert [each.number for each in chat.branch(2)] == [1, 2]


def test_another_question_in_the_place_of_one_is_a_branch_and_the_old_one_stays() -> None:
    chat = chat_of(*pairs(2), say(5, 2, "rather"), *answer(6, 5))
    assert [each.number for each in chat.branch()] == [1, 2, 5, 6]
    assert chat.siblings(5) == [3, 5]
    assert [chat.sibling(5, step) for step in (-1, 1, -9)] == [3, 5, 3]
    chat.apply({"op": "show", "number": 4})
    assert [each.number for each in chat.branch()] == [1, 2, 3, 4]
    chat.apply(say(7, 6))  # said on a branch that is not shown: it is shown then
    assert [each.number for each in chat.branch()] == [1, 2, 5, 6, 7]


def test_a_summary_stands_for_messages_on_the_branches_behind_it_only() -> None:
    chat = chat_of(*pairs(2), summed(5, 2), say(6, 4), *answer(7, 6))
    found = chat.active_summary(chat.branch())
    assert found is not None
    assert found.number == 5
    assert chat.resolve(5) == 2
    chat.apply(say(8, 0, "from the start"))
    assert chat.active_summary(chat.branch()) is None


def test_the_summary_that_stands_for_most_is_taken_and_can_be_taken_back() -> None:
    chat = chat_of(*pairs(3), summed(7, 2), summed(8, 4))
    line = chat.branch()
    assert texts(prompt.messages(chat))[3:] == ["question 5", "answer 6"]
    chat.apply({"op": "expand", "number": 8})
    assert chat.active_summary(line) == chat.summaries[7]
    chat.apply({"op": "expand", "number": 7})
    assert len(prompt.messages(chat)) == 7


@pytest.mark.parametrize(
    "op",
    [
        say(1, 0),
        say(0, 0),
        {"op": "more", "number": 1, "text": "an answer to nothing"},
        {"op": "end", "number": 4, "reason": "stop"},
        {"op": "show", "number": 9},
        summed(9, 8),
        summed(2, 1),
        {"op": "expand", "number": 1},
        {"op": "say", "number": 9},
        {"op": "nonsense"},
        {"op": "_add"},
    ],
)
def test_an_operation_that_makes_no_sense_changes_nothing(op: Op) -> None:
    chat = chat_of(*pairs(1))
    before = chat.copy()
    with pytest.raises((KeyError, ValueError)):
        chat.apply(op)
    assert chat == before


@pytest.mark.parametrize(
    ("end", "is_partial"),
    [("stop", False), ("length", False), ("stopped", True), ("failed", True)],
)
def test_an_answer_that_the_model_did_not_end_is_partial(end: str, is_partial: bool) -> None:
    assert chat_of(say(1, 0), *answer(2, 1, end=end)).messages[2].is_partial is is_partial


def test_an_answer_whose_writer_was_killed_is_partial() -> None:
    assert chat_of(say(1, 0), *answer(2, 1)[:2]).messages[2].is_partial


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Why does it hang?", "Why does it hang?"),
        ("\n\n  two   blanks\nsecond line", "two blanks"),
        ("```py\ncode\n```\nWhat is this?", "What is this?"),
        ("```py\nonly_code()\n```", "only_code()"),
        ("word " * 30, "word word word word word word word word word…"),
        ("x" * 80, "x" * 48 + "…"),
        ("", ""),
    ],
)
def test_a_title_is_the_first_words(question: str, title: str) -> None:
    assert title_of(question) == title
    assert len(title) <= 49


def test_a_given_title_stays() -> None:
    chat = chat_of(*pairs(1), {"op": "title", "title": "Mine"})
    assert chat.display_title() == "Mine"
    assert preview_of("a\nb  c") == "a b c"


def test_what_follows_a_lost_line_is_kept() -> None:
    chat = chat_of(say(1, 0), say(5, 4, "later"))
    assert [each.text for each in chat.branch()] == ["question 1", "later"]


class Doing:
    """Does what hypothesis says, and remembers all that was ever said."""

    def __init__(self) -> None:
        self.chat = Conversation(key="k", root="/p")
        self.ever: dict[int, str] = {}
        self.ops: list[Op] = []

    def do(self, op: Op) -> None:
        json.dumps(op)
        self.chat.apply(op)
        self.ops.append(op)
        for number, text in self.ever.items():
            assert self.chat.messages[number].text.startswith(text)
        self.ever = {each.number: each.text for each in self.chat.messages.values()}

    def step(self, kind: str, at: int, text: str) -> None:
        """Do one thing that can be done; else nothing."""
        chat, number = self.chat, self.chat.next_number
        asked = [each.number for each in chat.messages.values() if each.role == "user"]
        told = [each.number for each in chat.messages.values() if each.role == "assistant"]
        if kind == "ask":
            self.do(say(number, chat.last, text))
            self.do({"op": "attach", "number": number, "sent": f"[file]\n{text}", "items": []})
        elif kind == "edit" and asked:
            self.do(say(number, chat.messages[asked[at % len(asked)]].parent, text))
        elif kind == "answer" and asked:
            self.do({"op": "answer", "number": number, "parent": asked[at % len(asked)]})
        elif kind == "more" and told:
            self.do({"op": "more", "number": told[at % len(told)], "text": text})
        elif kind == "end" and told:
            reason = ("stop", "length", "stopped", "failed")[at % 4]
            self.do({"op": "end", "number": told[at % len(told)], "reason": reason})
        elif kind == "show" and chat.messages:
            self.do({"op": "show", "number": list(chat.messages)[at % len(chat.messages)]})
        elif kind == "sum" and told:
            self.do(summed(number, told[at % len(told)], text))
        elif kind == "expand" and chat.summaries:
            self.do({"op": "expand", "number": list(chat.summaries)[at % len(chat.summaries)]})
        elif kind == "title":
            self.do({"op": "title", "title": text})


KINDS = ["ask", "edit", "answer", "more", "end", "show", "sum", "expand", "title"]
STEPS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 99), st.text(max_size=12)), max_size=40
)


@given(STEPS)
@settings(max_examples=150, deadline=None)
def test_nothing_that_was_said_is_ever_lost(steps: list[tuple[str, int, str]]) -> None:
    doing = Doing()
    for step in steps:
        doing.step(*step)
    chat = doing.chat
    assert {each.number: each.text for each in chat.messages.values()} == doing.ever
    line = chat.branch()
    assert [each.parent for each in line] == [0, *(each.number for each in line)][: len(line)]
    for number in chat.messages:  # each can be shown again
        assert number in [each.number for each in chat.branch(number)]


@given(STEPS)
@settings(max_examples=100, deadline=None)
def test_a_chat_is_the_same_after_its_operations_as_json(steps: list[Any]) -> None:
    doing = Doing()
    for step in steps:
        doing.step(*step)
    again = Conversation(key="k", root="/p")
    for op in json.loads(json.dumps(doing.ops)):
        again.apply(op)
    assert again == doing.chat
    copied = doing.chat.copy()
    copied.apply(say(copied.next_number, 0))
    assert copied != doing.chat


@given(STEPS, st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_a_prompt_begins_with_the_prompt_of_the_turn_before(
    steps: list[Any], questions: list[str]
) -> None:
    doing = Doing()
    for step in steps:
        doing.step(*step)
    chat, before = doing.chat, prompt.messages(doing.chat)
    for question in questions:
        number = chat.next_number
        doing.do(say(number, chat.last, question))
        asked = prompt.messages(chat)
        assert asked[: len(before)] == before
        assert asked[-1] == Message("user", question)
        for op in answer(number + 1, number):
            doing.do(op)
        before = prompt.messages(chat)
        assert before[: len(asked)] == asked
        doing.do({"op": "title", "title": "changes nothing"})
        doing.do({"op": "model", "model": "another"})
        assert prompt.messages(chat) == before
        roles = [each.role for each in before]
        assert roles[0] == "system"
        assert all(one != other for one, other in itertools.pairwise(roles))


def test_what_was_attached_is_sent_and_what_is_shown_is_not_changed_by_it() -> None:
    attached: Op = {"op": "attach", "number": 1, "sent": "FILE\n\nquestion 1", "items": []}
    chat = chat_of(say(1, 0), attached, *answer(2, 1))
    assert texts(prompt.messages(chat))[1:] == ["FILE\n\nquestion 1", "answer 2"]
    assert chat.messages[1].text == "question 1"
    assert "hm" not in "".join(texts(prompt.messages(chat)))  # what it thought stays out


def test_a_question_that_got_no_answer_is_followed_by_a_word_about_that() -> None:
    chat = chat_of(say(1, 0), *answer(2, 1, " ", end="failed"), say(3, 2), say(4, 3))
    asked = texts(prompt.messages(chat))[1:]
    assert asked == ["question 1", prompt.NO_ANSWER, "question 3", prompt.NO_ANSWER, "question 4"]
    assert prompt.with_question(chat, 3, "x")[-2:] == [
        Message("assistant", prompt.NO_ANSWER),
        Message("user", "x"),
    ]
    assert prompt.NO_ANSWER.endswith(
        "?"
    )  # the 0.5B model says a statement again as its next answer
    asked_on = prompt.alternate([chat.messages[2], chat.messages[2]])[1:]
    assert asked_on == [Message("user", prompt.NO_QUESTION), Message("assistant", prompt.NO_ANSWER)]


def test_the_system_text_is_the_same_on_every_day() -> None:
    assert not any(sign.isdigit() or sign in "{}%" for sign in prompt.SYSTEM)
