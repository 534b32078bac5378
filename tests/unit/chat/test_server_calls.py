"""Calls of tools of servers in a chat, with a scripted server for the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lcursor.chat import prompt, server_calls
from lcursor.chat.server_calls import find_call
from lcursor.context.servers import AskUser
from lcursor.errors import Cancelled, McpFailed
from lcursor.process.run import Cancel
from tests.fakes.chat_server import ChatServer, say
from tests.fakes.heard import Told, config_of
from tests.unit.chat.desk import Desk
from tests.waiting import wait_for

CALL = '```mcp_call it__echo\n{"text": "hello"}\n```'
FIND = "```mcp_find\nrepeat a text\n```"


class Tools:
    """The tools of an allowed server `it`."""

    def __init__(self) -> None:
        self.allowed = ["it"]
        self.digest = "1"
        self.called = list[Any]()
        self.is_slow = False

    @property
    def tools(self) -> Tools:
        return self

    def names(self) -> list[str]:
        return self.allowed

    def is_prompt(self, command: str) -> bool:
        return False

    def prompts(self) -> list[Any]:
        return []

    def find(self, words: str, cancel: Cancel) -> tuple[str, Mapping[str, Any]]:
        return f"it__echo(text: string) — for {words}", {}

    def call(
        self, key: str, arguments: Mapping[str, Any], cancel: Cancel, ask: AskUser | None = None
    ) -> tuple[str, bool]:
        self.called.append((key, arguments))
        if self.is_slow:
            wait_for(cancel)
            raise Cancelled("stopped")
        if key != "it__echo":
            raise McpFailed(f"there is no tool {key}")
        return str(arguments["text"]), arguments["text"] == "fail"

    def content(self, key: str) -> str:
        return self.digest if key == "it__echo" else ""

    def start(self) -> None:
        pass

    def risk(self, key: str) -> str:
        return ""

    def notes(self) -> list[str]:
        return []


class Table(Desk):
    """A chat with tools and a model that answers with a script."""

    def __init__(self, folder: Path, *answers: str) -> None:
        self.tools, self.server = Tools(), ChatServer([say(text) for text in answers])
        super().__init__(folder, config_of(self.server), servers_of=lambda _: self.tools)
        self.open()

    def decide(self, after: int, call: str, choice: str, reason: str = "") -> Told:
        """Send a decision, and wait for the end of the turn."""
        return self.turn(reason, after, call=call, choice=choice)

    def read(self) -> str:
        """Return the last message that the model has read."""
        return str(self.server.bodies[-1]["messages"][-1]["content"])


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Any]:
    made = list[Table]()

    def make(*answers: str) -> Table:
        made.append(Table(tmp_path, *answers))
        return made[-1]

    yield make
    for each in made:
        each.slot.close()
        each.server.close()


@pytest.mark.parametrize(
    ("answer", "tool", "text"),
    [
        (CALL, "it__echo", '{"text": "hello"}'),
        (f"I call it.\n\n{CALL}\nResult: hello", "it__echo", '{"text": "hello"}'),
        (FIND, "", "repeat a text"),
        ("```mcp_call it__now\n```", "it__now", ""),
        ("````mcp_call a__b\n```\n````", "a__b", "```"),
        (f"```python\nx = 1\n```\n{FIND}", "", "repeat a text"),
    ],
)
def test_a_call_is_found(answer: str, tool: str, text: str) -> None:
    call = find_call(answer)
    assert call is not None
    assert (call.tool, call.text) == (tool, text)
    assert answer[: call.end].endswith("```")
    assert "Result" not in answer[: call.end]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        CALL.removesuffix("```"),
        "```mcp_call\n{}\n```",
        "```mcp_find\n```",
        f"````markdown\n{CALL}\n````",
        "`mcp_call it__echo`",
    ],
)
def test_other_answers_have_none(answer: str) -> None:
    assert find_call(answer) is None


def test_a_call_runs_after_approval_and_its_result_is_answered(table: Any) -> None:
    desk = table(f"Let me see.\n{CALL}\nResult: 42", "It says hello.")
    first = desk.turn("What does it say?")
    assert (first["reason"], first["call"]) == ("stop", "asks")
    assert desk.said(first["id"]) == f"Let me see.\n{CALL}"  # nothing that was invented
    assert "mcp_find" in desk.read()
    assert "What does it say?" in desk.read()
    assert desk.tools.called == []
    assert desk.open(desk.chat)["messages"][-1]["call"] == "asks"
    second = desk.decide(first["answer"], CALL, "once")
    assert desk.tools.called == [("it__echo", {"text": "hello"})]
    assert second["result"] == "Result of it__echo:\n```\nhello\n```"
    assert desk.read() == second["result"]
    assert (desk.said(second["id"]), second["call"]) == ("It says hello.", "")
    assert "tool" in desk.phases(second["id"])
    assert [role for role, _ in desk.shown()] == ["user", "assistant", "result", "assistant"]
    assert desk.shown()[2][1] == second["result"]


def test_the_instructions_are_in_the_prompt_once(table: Any) -> None:
    desk = table("Fine.", "Fine.", "Fine.")
    first = desk.turn("One?")
    assert [each["kind"] for each in first["items"]] == ["tools"]
    second = desk.turn("Two?", first["answer"])
    assert desk.read() == "Two?"
    assert second["items"][0]["is_left_out"]
    desk.turn("Three?", dropped=["tools"])  # in a new branch
    assert "mcp_find" not in desk.read()


def test_without_an_allowed_server_there_are_none(table: Any) -> None:
    desk = table(CALL)
    desk.tools.allowed = []
    done = desk.turn("What does it say?")
    assert desk.read() == "What does it say?"
    assert done["call"] == ""


def test_a_search_runs_without_a_question(table: Any) -> None:
    desk = table(FIND, "Nothing to call.")
    first = desk.turn("Say it again")
    assert first["call"] == "runs"
    second = desk.decide(first["answer"], FIND, "")
    assert second["result"].startswith("Tools for “repeat a text”:\n```\nit__echo(text: string)")


def test_a_tool_that_is_allowed_in_the_chat_runs_until_it_changes(table: Any) -> None:
    calls = [CALL.replace("hello", word) for word in ("a", "b", "c")]
    desk = table(*calls)
    first = desk.turn("Say it")
    second = desk.decide(first["answer"], calls[0], "chat")
    assert second["call"] == "runs"
    third = desk.decide(second["answer"], calls[1], "")
    assert third["call"] == "runs"
    desk.tools.digest = "2"
    assert desk.open(desk.chat)["messages"][-1]["call"] == "asks"
    number = desk.ask("", third["answer"], call=calls[2], choice="")
    assert "needs your approval" in desk.wait("error", number)["message"]
    assert len(desk.tools.called) == 2


def test_only_what_was_approved_runs(table: Any) -> None:
    desk = table(CALL, FIND, "Fine.")
    first = desk.turn("Say it")
    for call, choice in [(CALL, ""), ("no call", "once"), ("", "once")]:
        number = desk.ask("", first["answer"], call=call or "x", choice=choice)
        desk.wait("error", number)
    assert desk.tools.called == []
    changed = CALL.replace("hello", "bye")
    second = desk.decide(first["answer"], changed, "once")
    assert desk.tools.called == [("it__echo", {"text": "bye"})]
    assert second["result"].startswith('The user has changed the call:\n```json\n{"text": "bye"}')
    number = desk.ask("", second["answer"], call=CALL, choice="")  # not the search it wrote
    assert "needs your approval" in desk.wait("error", number)["message"]


def test_a_rejection_is_sent_with_its_reason(table: Any) -> None:
    desk = table(CALL, "Then not.")
    first = desk.turn("Say it")
    second = desk.decide(first["answer"], CALL, "reject", "not now")
    assert second["result"] == "The user rejected this call: not now."
    assert desk.tools.called == []


@pytest.mark.parametrize(
    ("call", "state", "result"),
    [
        ('```mcp_call it__echo\n{"text": }\n```', "runs", "its arguments are not a JSON object"),
        ("```mcp_call it__echo\n[1]\n```", "runs", "its arguments are not a JSON object"),
        (
            "```mcp_call it__say_it\n```",
            "runs",
            "There is no tool it__say_it. Tools for “say it”:\n```\nit__echo(text: string)",
        ),
        (CALL.replace("hello", "fail"), "asks", "Error of it__echo:\n```\nfail\n```"),
    ],
)
def test_errors_are_results(table: Any, call: str, state: str, result: str) -> None:
    desk = table(call, "I see.")
    first = desk.turn("Say it")
    assert first["call"] == state
    second = desk.decide(first["answer"], call, "once" if state == "asks" else "")
    assert result in second["result"]


def test_calls_that_go_on_and_on_need_approval_again(table: Any) -> None:
    searches = [FIND.replace("a text", str(n)) for n in range(server_calls.MAX_UNASKED + 1)]
    desk = table(*searches)
    done = desk.turn("Say it")
    for search in searches[:-1]:
        assert done["call"] == "runs"
        done = desk.decide(done["answer"], search, "")
    assert done["call"] == "asks"


def test_a_long_result_is_cut(table: Any) -> None:
    text = "line\\n" * 10_000
    call = CALL.replace("hello", text)
    desk = table(call, "Long.")
    first = desk.turn("Say it")
    result = desk.decide(first["answer"], call, "once")["result"]
    assert len(result) < 4096 // server_calls.CONTEXT_SHARE * server_calls.TOKEN_CHARS + 100
    assert "more characters\n```" in result


def test_a_call_can_be_stopped(table: Any) -> None:
    desk = table(CALL, "Never.")
    desk.tools.is_slow = True
    first = desk.turn("Say it")
    number = desk.ask("", first["answer"], call=CALL, choice="once")
    wait_for(lambda: desk.tools.called)
    desk.slot.handlers()["chat.stop"]({"id": number})
    assert desk.wait("chat.done", number)["reason"] == "stopped"
    assert desk.shown()[2] == ("result", server_calls.STOPPED)


def test_a_call_that_was_interrupted_is_named_in_the_prompt(table: Any) -> None:
    desk = table(CALL, "Fine.")
    first = desk.turn("Say it")
    (file,) = desk.slot._files.values()
    file.change(
        lambda chat: [
            {"op": "say", "number": 3, "parent": first["answer"], "text": "", "call": "it__echo"}
        ]
    )
    desk.turn("", 3)  # answered again, not run again
    assert desk.read() == prompt.INTERRUPTED_CALL
    assert desk.tools.called == []


def test_an_equal_call_needs_approval_again(table: Any) -> None:
    desk = table(FIND, FIND.replace(" a ", "  a  "))
    first = desk.turn("Say it")
    assert desk.decide(first["answer"], FIND, "")["call"] == "asks"
