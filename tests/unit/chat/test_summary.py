"""Making room in a long chat: what is summarized, what stays, what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcursor.chat import prompt, summary
from lcursor.chat.conversation import Conversation, Op
from lcursor.errors import ContextFull
from lcursor.llm import tokens
from lcursor.llm.records import Message
from tests.fakes.chat_server import Answer, ChatServer, overflow, say
from tests.fakes.heard import config_of
from tests.unit.chat.desk import Desk, attachment

WORDS = "## Goal\nto mend the clock"


def measure(messages: Sequence[Message]) -> int:
    """Count four letters as a token, as the fake server does."""
    return sum(len(each.text) // 4 + 4 for each in messages)


def chat_of(*sizes: int, items: Sequence[Sequence[str]] = ()) -> Conversation:
    """Return a chat of questions and answers with so many letters each."""
    chat = Conversation(key="k", root="/p")
    for at, size in enumerate(sizes):
        asked, told = 2 * at + 1, 2 * at + 2
        ops: list[Op] = [
            {"op": "say", "number": asked, "parent": asked - 1, "text": f"q{at} " + "x" * size},
            {"op": "answer", "number": told, "parent": asked},
            {"op": "more", "number": told, "text": f"a{at} " + "y" * size},
            {"op": "end", "number": told, "reason": "stop"},
        ]
        names = items[at] if at < len(items) else ()
        rows = [{"key": name, "kind": "file", "name": name} for name in names]
        ops.insert(1, {"op": "attach", "number": asked, "sent": "", "items": rows})
        for op in ops:
            chat.apply(op)
    return chat


def test_a_small_last_exchange_stays_as_it_is() -> None:
    chat = chat_of(8000, 8000, 400)
    plan = summary.plan(chat, 6, 16_000, measure)
    assert plan is not None
    assert (plan.last, plan.replaced) == (4, 4)
    assert plan.messages[-1] == Message("user", summary.INSTRUCTION)
    assert plan.messages[:-1] == prompt.messages(chat, 4)  # found in the server's cache
    assert plan.tokens + plan.max_tokens <= 16_000


def test_a_large_last_exchange_is_summarized_too() -> None:
    plan = summary.plan(chat_of(800, 16_000), 4, 16_000, measure)
    assert plan is not None
    assert plan.last == 4


def test_what_is_too_long_to_be_summarized_at_once_is_summarized_in_part() -> None:
    chat = chat_of(12_000, 12_000, 12_000, 12_000)
    plan = summary.plan(chat, 8, 16_000, measure)
    assert plan is not None
    assert plan.last == 4  # two of four fit, with room to write
    chat.apply({"op": "sum", "number": 9, "last": 4, "text": "s" * 4000})
    further = summary.plan(chat, 8, 16_000, measure)
    assert further is not None
    assert further.last == 8
    assert "s" * 4000 in further.messages[1].text


@pytest.mark.parametrize("sizes", [(), (70_000,)])
def test_where_nothing_can_be_summarized_there_is_no_plan(sizes: Sequence[int]) -> None:
    chat = chat_of(*sizes)
    assert summary.plan(chat, chat.last, 16_000, measure) is None


@given(st.lists(st.integers(0, 9000), max_size=8), st.sampled_from([2048, 4096, 16_384, 32_768]))
@settings(max_examples=120, deadline=None)
def test_a_plan_fits_and_makes_the_prompt_shorter(sizes: list[int], limit: int) -> None:
    chat = chat_of(*sizes)
    plan = summary.plan(chat, chat.last, limit, measure)
    if plan is None:  # not even the first question and its answer can be summarized
        if sizes:
            first = [*prompt.messages(chat, 2), Message("user", summary.INSTRUCTION)]
            assert measure(first) + min(summary.WANTED_TOKENS, limit // 8) > limit
        return
    assert measure(plan.messages) + plan.max_tokens <= limit
    assert plan.max_tokens >= min(summary.WANTED_TOKENS, limit // 8)
    before = prompt.messages(chat)
    chat.apply({"op": "sum", "number": 99, "last": plan.last, "text": "short"})
    after = prompt.messages(chat)
    assert after[-1] == before[-1] or after[-1].text == prompt.SUMMARY_REPLY
    assert [each.role for each in after[:3]] == ["system", "user", "assistant"]
    assert len(chat.messages) == 2 * len(sizes)


def test_what_was_attached_is_listed_to_the_letter() -> None:
    chat = chat_of(9, 9, items=[["a.py:1-20", "b.py"], ["a.py:1-20", "c.py"]])
    edit: Op = {
        "op": "edit", "after": 2, "name": "a.py", "first_row": 4, "rows": 3, "what": "rewritten",
    }  # fmt: skip
    chat.apply(edit)
    text = summary.text(WORDS, chat, 4)
    assert text == (
        f"{WORDS}\n\n## Attached so far\n- b.py\n- a.py:1-20\n- c.py\n\n"
        "## Edits so far\n- a.py:5-7: rewritten"
    )
    assert text == summary.text(WORDS, chat, 4)


def test_a_long_list_says_what_it_leaves_out() -> None:
    chat = chat_of(9, items=[[f"f{number}.py" for number in range(80)]])
    rows = summary.files_and_edits(chat, chat.branch()).splitlines()
    assert rows[1] == "- (20 earlier ones)"
    assert rows[-1] == "- f79.py"


PARROT = "## Goal\nWhat I want, in my words where they matter\n## Open ends"


@pytest.mark.parametrize("written", ["  ", PARROT, summary.INSTRUCTION.partition("\n")[2]])
def test_a_model_that_writes_nothing_of_its_own_leaves_the_questions(written: str) -> None:
    text = summary.text(written, chat_of(9, 9), 4)
    assert "in my words" not in text
    assert "- q0" in text
    assert "- q1" in text


def test_a_prompt_that_does_not_fit_is_rejected_with_the_numbers() -> None:
    items = [
        {"key": key, "kind": "file", "name": key, "tokens": tokens, "is_exact": True, "note": "",
         "is_left_out": tokens < 0, "path": "", "first_row": 0}
        for key, tokens in [("small", 5), ("big.py", 4000), ("out", -1), ("bigger.py", 5000)]
    ]  # fmt: skip
    with pytest.raises(ContextFull, match=r"9,105 tokens, 4,000 fit \(bigger.py 5,000, big.py"):
        summary.check_fits(items, 9105, 4000)  # type: ignore[arg-type]
    summary.check_fits(items, 4000, 4000)  # type: ignore[arg-type]
    summary.check_fits(items, 10**9, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("context", "most", "limit"),
    [(16_384, 0, 14_336), (4096, 0, 3584), (131_072, 0, 129_024), (4096, 9999, 2048), (0, 0, 0)],
)
def test_an_answer_has_room(context: int, most: int, limit: int) -> None:
    assert tokens.prompt_limit(context, most) == limit


@given(st.lists(st.text(max_size=80), max_size=4))
def test_what_a_prompt_hardly_reaches_is_more_than_what_it_has(texts: list[str]) -> None:
    messages = [Message("user", text) for text in texts]
    assert tokens.upper_bound(messages) >= measure(messages)


class Clerk:
    """A fake server that writes summaries when it is asked for one."""

    def __init__(self, context_tokens: int) -> None:
        self.server = ChatServer(self.answer, context_tokens=context_tokens)
        self.summaries = 0

    def answer(self, body: dict[str, Any]) -> Answer:
        if body["messages"][-1]["content"] == summary.INSTRUCTION:
            self.summaries += 1
            return self.server.natural(body, WORDS)
        return self.server.natural(body, "fine")


@pytest.fixture
def clerk() -> Iterator[Clerk]:
    it = Clerk(4096)
    with it.server:
        yield it


def long_chat(desk: Desk, turns: int, letters: int = 3000) -> dict[str, Any]:
    done: dict[str, Any] = {"answer": 0}
    for number in range(turns):
        extra = [attachment("text", f"part {number}", f"{number}\n" * (letters // 2))]
        done = dict(desk.turn(f"Question {number}?", after=done["answer"], attachments=extra))
        assert done["reason"] == "stop", desk.told("error")
    return done


def test_a_chat_goes_on_beyond_its_context(tmp_path: Path, clerk: Clerk) -> None:
    with Desk(tmp_path, config_of(clerk.server)) as desk:
        desk.open()
        done = long_chat(desk, 8)
        assert clerk.summaries >= 1
        told = desk.told("chat.summed")[0]
        assert told["tokens_after"] < told["tokens_before"] / 2
        assert told["messages"] >= 2
        assert WORDS in told["text"]
        assert "- part 0" in told["text"]
        for body in clerk.server.bodies:
            assert clerk.server.tokens(clerk.server.template(body["messages"])) < 4096
        shown = desk.open(desk.chat)["messages"]
        assert sum(each["role"] != "summary" for each in shown) == 16  # none is lost
        assert done["prompt_tokens"] < 0.85 * 4096


def test_a_file_is_attached_again_if_a_summary_replaces_it(tmp_path: Path, clerk: Clerk) -> None:
    with Desk(tmp_path, config_of(clerk.server)) as desk:
        (desk.root / "b.py").write_text("one = 1\n" * 850)
        desk.open()
        first = desk.turn("See @file:b.py")
        done = desk.turn("Again @file:b.py", after=first["answer"])
        assert desk.told("chat.summed")
        assert not done["items"][0]["is_left_out"]
        assert "one = 1" in clerk.server.bodies[-1]["messages"][-1]["content"]


def test_a_summary_can_be_taken_back(tmp_path: Path, clerk: Clerk) -> None:
    with Desk(tmp_path, config_of(clerk.server)) as desk:
        desk.open()
        done = desk.turn("One?", attachments=[attachment("text", "a", "text of a\n" * 100)])
        desk.turn("Two?", after=done["answer"])
        number = desk.do("chat.compact")
        assert desk.wait("chat.done", number)["reason"] == "stop"
        shown = desk.open(desk.chat)["messages"]
        assert [each["role"] for each in shown] == [
            "user",
            "assistant",
            "summary",
            *["user", "assistant"],
        ]
        made = desk.wait("chat.summed", number)
        at = [each["role"] for each in shown].index("summary")
        assert made["last"] == shown[at - 1]["number"] == done["answer"]
        desk.turn("Three?", after=4)
        assert "text of a" not in str(clerk.server.bodies[-1])
        back = desk.wait("chat.opened", desk.do("chat.expand", number=made["number"]))
        assert "summary" not in [each["role"] for each in back["messages"]]
        desk.turn("Four?", after=back["messages"][-1]["number"])
        assert "text of a" in str(clerk.server.bodies[-1])


def test_a_summary_with_nothing_to_summarize_is_rejected(tmp_path: Path, clerk: Clerk) -> None:
    with Desk(tmp_path, config_of(clerk.server)) as desk:
        desk.open()
        number = desk.do("chat.compact")
        assert desk.wait("error", number)["code"] == "chat_missing"
        assert desk.wait("chat.done", number)["reason"] == "failed"
        assert desk.turn("And on")["reason"] == "stop"


def test_a_question_that_can_never_fit_is_rejected_and_kept(tmp_path: Path, clerk: Clerk) -> None:
    with Desk(tmp_path, config_of(clerk.server)) as desk:
        desk.open()
        big = [attachment("text", "big.log", "word " * 6000)]
        done = desk.turn("Why?", attachments=big)
        assert done["reason"] == "failed"
        error = desk.wait("error", done["id"])
        assert error["code"] == "context_full"
        assert "big.log" in error["message"]
        assert not clerk.server.bodies  # nothing was sent that would have been cut
        assert desk.shown()[0] == ("user", "Why?")


def test_a_question_that_can_never_fit_leaves_the_chat_as_it_was(
    tmp_path: Path, clerk: Clerk
) -> None:
    with Desk(tmp_path, config_of(clerk.server)) as desk:
        small, big = desk.root / "small.py", desk.root / "big.py"
        small.write_text("small = 1\n")
        big.write_text("value = 1234567890\n" * 3000)
        desk.open()
        last = desk.turn("One?", attachments=[attachment("text", "a", "text of a\n" * 100)])
        last = desk.turn("Two?", after=last["answer"])
        failed = desk.turn("See @file:big.py and @file:small.py", after=last["answer"])
        assert (failed["reason"], clerk.summaries) == ("failed", 0)
        last = desk.turn("See @file:small.py", after=failed["answer"])
        assert last["reason"] == "stop", desk.told("error")
        assert "value = 1" not in str(clerk.server.bodies[-1])
        sent = [each["content"] for each in clerk.server.bodies[-1]["messages"]]
        assert "See @file:big.py and @file:small.py" in sent
        assert "small = 1" in sent[-1]  # it is not there already
        big.write_text("value = 1\n")
        again = desk.turn("", after=failed["question"])
        assert again["reason"] == "failed"  # it is sent again as it was


def test_a_question_that_failed_otherwise_stays_with_its_context(tmp_path: Path) -> None:
    script = [Answer(status=500), say("fine")]
    with ChatServer(script, kind="openai") as server, Desk(tmp_path, config_of(server)) as desk:
        (desk.root / "small.py").write_text("small = 1\n")
        desk.open()
        failed = desk.turn("See @file:small.py")
        assert failed["reason"] == "failed"
        assert desk.turn("Again", after=failed["answer"])["reason"] == "stop"
        assert "small = 1" in str(server.bodies[-1])


def test_a_chat_from_a_larger_model_is_summarized_in_steps(tmp_path: Path, clerk: Clerk) -> None:
    with (
        ChatServer(context_tokens=32_768) as large,
        Desk(tmp_path, config_of(large, clerk.server)) as desk,
    ):
        desk.open()
        done = long_chat(desk, 5, 5000)
        assert done["prompt_tokens"] > 4096
        small = desk.turn("And you?", after=done["answer"], model="fake2")
        assert small["reason"] == "stop", desk.told("error")
        assert clerk.summaries >= 2


def test_an_overflow_that_only_the_server_sees_is_reported(tmp_path: Path) -> None:
    script = [overflow(5000, 4096), say("fine")]
    with ChatServer(script, kind="openai") as server, Desk(tmp_path, config_of(server)) as desk:
        desk.open()
        done = desk.turn("Hello")
        error = desk.wait("error", done["id"])
        assert (done["reason"], error["code"]) == ("failed", "context_full")
        assert "4096" in error["message"]
        assert desk.open(desk.chat)["context_tokens"] == 4096  # and the next turn makes room


def test_a_long_chat_is_counted_at_most_once_a_turn(tmp_path: Path, clerk: Clerk) -> None:
    limit, done = int(0.85 * 4096), {"answer": 0}
    with Desk(tmp_path, config_of(clerk.server)) as desk:
        desk.open()
        for number in range(12):
            before, summaries = clerk.server.paths().count("/tokenize"), clerk.summaries
            extra = [attachment("text", f"part {number}", f"{number}\n" * 500)]
            done = dict(desk.turn("And?", after=done["answer"], attachments=extra))
            if clerk.summaries > summaries:
                break
            counts = clerk.server.paths().count("/tokenize") - before
            rows = clerk.server.bodies[-1]["messages"]
            bound = tokens.upper_bound([Message("user", each["content"]) for each in rows])
            assert counts == (bound > limit), "only the server knows whether it fits"
        else:
            pytest.fail("the chat never became long")
        assert clerk.server.paths().count("/tokenize") > 1
