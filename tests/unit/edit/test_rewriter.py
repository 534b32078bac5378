"""A rewrite against a scripted server: what comes of each kind of reply, and how it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import astuple, replace
from typing import Any

import pytest

from lcursor.changes.records import Lines, Region
from lcursor.config import EditConfig
from lcursor.edit.rewriting.rewriter import ModelOutput, Rewriter, is_tiny
from lcursor.edit.rewriting.task import FailedAttempt, RewriteListener, RewriteProgress, Task
from lcursor.errors import Cancelled, ContextFull, ReplyUnusable, ServerFailed
from lcursor.llm.client import ChatClient
from lcursor.llm.pool import Connection
from lcursor.llm.records import ServedModel, Usage
from lcursor.project.redaction import PLACEHOLDER
from lcursor.stop import Stop
from tests.fakes.chat_server import Answer, ChatServer, Hang, delta, refuse, say
from tests.fakes.loopback import sse
from tests.waiting import wait_for

LINES: Lines = (
    "import os",
    "",
    "def area(w, h):",
    "    size = w * h",
    "    return size",
    "",
    "print(area(2, 3))",
)
TASK = Task(
    "/p/x.py", "x.py", "python", LINES, Region(2, 5, "function area"), "Rename h to height."
)
NEW: Lines = ("def area(w, height):", "    size = w * height", "    return size")
REPLY = "```python\n" + "\n".join(NEW) + "\n```"
Reach = Callable[[ChatServer], Connection]


class Heard(RewriteListener):
    """Writes down how a rewrite goes on."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.has_lines = Stop()

    def started(self, region: Region, attempt: int) -> None:
        """A region is written."""
        self.said.append(("started", region, attempt))

    def progress(self, now: RewriteProgress) -> None:
        """So far it is."""
        self.said.append(astuple(now))

    def lines(self, attempt: int, lines: Lines) -> None:
        """More lines."""
        self.said.append(("lines", attempt, lines))
        self.has_lines.set()

    @property
    def shown(self) -> Lines:
        """All lines that were shown."""
        return tuple(line for said in self.said if said[0] == "lines" for line in said[2])


@pytest.fixture
def reach() -> Iterator[Reach]:
    """Reach models on servers; let go of them afterwards."""
    with ExitStack() as stack:

        def begin(server: ChatServer) -> Connection:
            client = ChatClient(ServedModel("big", server.url))
            stack.callback(client.close)
            return Connection("big", client, client.probe())

        yield begin


def pieces(text: str, size: int = 3) -> list[str]:
    """Return a text as a model would send it."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def run(
    connection: Connection, task: Task = TASK, heard: Heard | None = None, **more: Any
) -> ModelOutput:
    """Write a region once."""
    return Rewriter(connection, EditConfig()).run(task, heard or Heard(), Stop(), **more)


def test_a_region_is_written_again(reach: Reach) -> None:
    timings = {"cache_n": 3, "prompt_n": 7, "predicted_n": 20, "draft_n": 16}
    heard = Heard()
    with ChatServer([say("Here it is:\n", *pieces(REPLY), timings=timings)]) as server:
        written = run(reach(server), heard=heard, temperature=0.4)
        body = server.bodies[0]
    assert written.lines == NEW == heard.shown
    assert written.note == "Here it is:"
    assert written.reply.endswith(REPLY)
    assert heard.said[0] == ("started", TASK.region, 1)
    assert ("writing", "", 3, 3, 0.0, 1) in heard.said
    assert body["temperature"] == 0.4
    assert body["timings_per_token"] is True
    assert 0 < body["max_tokens"] <= EditConfig().max_tokens
    assert "\n".join(["```python", *LINES[2:5], "```"]) in body["messages"][-1]["content"]


@pytest.mark.parametrize("format", ["whole", "search_replace"])
def test_a_secret_that_a_remote_model_does_not_get_stays_in_its_line(
    reach: Reach, monkeypatch: pytest.MonkeyPatch, format: Any
) -> None:
    monkeypatch.setattr("lcursor.http.endpoint.is_local", lambda _: False)
    token = "glpat-" + "abcdefghijklmnopqrst"
    lines = ("def area(w, h):", f'    key = "{token}"', "    return w * h")
    task = Task("/p/x.py", "x.py", "python", lines, Region(0, 3, "function area"), "Rename h.")
    part = lines[1].replace(token, PLACEHOLDER)
    new = ("def area(w, height):", lines[1], "    return w * height")
    sent = "\n".join((new[0], part, new[2]))
    if format == "search_replace":
        shown = "\n".join((lines[0], part, lines[2]))
        sent = f"<<<<<<< SEARCH\n{shown}\n=======\n{sent}\n>>>>>>> REPLACE"
    with ChatServer([say(f"```python\n{sent}\n```")]) as server:
        made = run(reach(server), replace(task, format=format))
        assert made.lines == new
        assert part.strip() in str(server.bodies)
        assert token not in str(server.bodies)


def test_it_ends_with_its_block_and_the_rest_is_not_waited_for(reach: Reach) -> None:
    timings = {"cache_n": 3, "prompt_n": 7, "predicted_n": 20, "draft_n": 16}
    timings |= {"draft_n_accepted": 12}
    rows = [{**delta(content=text), "timings": timings} for text in [*pieces(REPLY), "\n", "And"]]
    with ChatServer([Answer([*map(sse, rows), Hang()])]) as server:
        written = run(reach(server))
    assert written.lines == NEW
    assert written.usage == Usage(10, 3, 20, 0, 0, True, 16, 12, 8)


def test_what_it_thinks_is_not_code(reach: Reach) -> None:
    thought = "<think>\n```python\nwrong = 1\n```\n</think>\n"
    with ChatServer([say(*pieces(thought + REPLY))]) as server:
        assert run(reach(server)).lines == NEW
    heard = Heard()
    with ChatServer([say(*pieces(REPLY), reasoning=["hm", "so"])]) as server:
        assert run(reach(server), heard=heard).lines == NEW
    assert next(said[1] for said in heard.said if said[0] == "writing") == "thinking"


WEATHER = [
    ("empty", "", "stop"),
    ("empty", "", "length"),
    ("prose", "I cannot do that.", "stop"),
    ("cut", REPLY[:40], "length"),
    ("language", REPLY.replace("python", "java"), "stop"),
    ("lazy", "```python\ndef other(w):\n    # ... rest of the code ...\n```", "stop"),
    ("form", "```diff\n-def area(w, h):\n+def area(w, height):\n```", "stop"),
]


@pytest.mark.parametrize(("reason", "reply", "finish"), WEATHER)
def test_a_reply_that_is_no_rewrite(reach: Reach, reason: str, reply: str, finish: str) -> None:
    timings = {"cache_n": 0, "prompt_n": 7, "predicted_n": 20}
    server = ChatServer([say(*pieces(reply), finish=finish, timings=timings)])
    with server, pytest.raises(ReplyUnusable) as found:
        run(reach(server))
    assert found.value.reason == reason
    assert found.value.reply == reply
    assert isinstance(found.value.usage, Usage)
    assert found.value.usage.answer_tokens == 20


def test_the_same_text_comes_back_as_it_is(reach: Reach) -> None:
    reply = "```python\n" + "\n".join(TASK.old) + "\n```"
    with ChatServer([say(*pieces(reply))]) as server:
        assert run(reach(server)).lines == TASK.old


@pytest.mark.parametrize("parts", [[Hang()], [sse(delta(content="```python\ndef area")), Hang()]])
def test_it_stops_at_once(reach: Reach, parts: list[Any]) -> None:
    cancel, ended = Stop(), list[object]()
    with ChatServer([Answer(parts)]) as server:
        connection = reach(server)

        def work() -> None:
            try:
                Rewriter(connection, EditConfig()).run(TASK, Heard(), cancel)
            except Cancelled as error:
                ended.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        wait_for(lambda: server.running)
        cancel.set()  # the server would never end
        thread.join(30)
    assert ended


def test_an_edit_that_was_stopped_before_asks_nobody(reach: Reach) -> None:
    cancel = Stop()
    cancel.set()
    with ChatServer() as server, pytest.raises(Cancelled):
        Rewriter(reach(server), EditConfig()).run(TASK, Heard(), cancel)
    assert not server.bodies


def test_a_server_that_fails_says_why(reach: Reach) -> None:
    with ChatServer([refuse(500, "oops")]) as server, pytest.raises(ServerFailed, match="oops"):
        run(reach(server))


def test_surroundings_go_before_the_region_does(reach: Reach) -> None:
    lines = (*(f"x{number} = {number}  # a row above" for number in range(60)), *LINES)
    task = replace(TASK, lines=lines, region=Region(62, 65, "function area"))
    with ChatServer([say(*pieces(REPLY))], context_tokens=600) as server:
        assert run(reach(server), task).lines == NEW
        text = server.bodies[0]["messages"][-1]["content"]
    assert 0 < text.count("a row above") < 60
    assert "def area(w, h):" in text


def test_a_region_that_is_more_than_the_model_reads(reach: Reach) -> None:
    lines = tuple(f"x{number} = {number}" for number in range(900))
    task = replace(TASK, lines=lines, region=Region(0, 900, "lines 1 to 900"))
    with ChatServer(context_tokens=1024) as server, pytest.raises(ContextFull) as found:
        run(reach(server), task)
    assert found.value.context_tokens == 1024
    assert not server.bodies


def test_a_second_try_knows_of_the_first(reach: Reach) -> None:
    with ChatServer([say(*pieces(REPLY))]) as server:
        heard = Heard()
        failed = FailedAttempt(("It does not parse: line 2",), ("def (",))
        run(reach(server), heard=heard, attempt=2, feedback=[failed], remark="shorter")
        text = server.bodies[0]["messages"][-1]["content"]
    assert "It does not parse: line 2" in text
    assert "shorter" in text
    assert heard.said[0][2] == 2


BLOCKS = (
    "```\n<<<<<<< SEARCH\ndef area(w, h):\n    size = w * h\n=======\n"
    "def area(w, height):\n    size = w * height\n>>>>>>> REPLACE\n```"
)
DIFF = (
    "```diff\n@@ ... @@\n-def area(w, h):\n-    size = w * h\n+def area(w, height):\n"
    "+    size = w * height\n     return size\n```"
)


@pytest.mark.parametrize(("format", "reply"), [("search_replace", BLOCKS), ("udiff", DIFF)])
def test_other_formats(reach: Reach, format: Any, reply: str) -> None:
    with ChatServer([say(*pieces(reply))]) as server:
        assert run(reach(server), replace(TASK, format=format)).lines == NEW


@pytest.mark.parametrize(
    "reply",
    [
        BLOCKS.replace("size = w * h\n=", "something else\n="),
        BLOCKS.replace("```\n<", "other.py\n```\n<"),
        "No.",
    ],
)
def test_other_formats_that_do_not_fit(reach: Reach, reply: str) -> None:
    server = ChatServer([say(*pieces(reply))])
    with server, pytest.raises(ReplyUnusable):
        run(reach(server), replace(TASK, format="search_replace"))


@pytest.mark.parametrize(
    ("model", "is_so"),
    [
        ("/models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", True),
        ("smollm-135M", True),
        ("Qwen2.5-Coder-1.5B-Instruct", False),
        ("qwen3-coder-30b-a3b", False),
        ("glm-4.6", False),
        ("", False),
    ],
)
def test_a_tiny_model_is_known_by_its_name(model: str, is_so: bool) -> None:
    assert is_tiny(model) is is_so
