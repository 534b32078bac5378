"""The eval of edits: its tasks, the examples of docstrings, what is kept, what it comes to."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from evals import bugs, edit, edit_answers, examples
from evals.bugs import Bug, Example
from lcursor.errors import LcursorError
from lcursor.llm.client import ChatClient
from lcursor.llm.pool import Connection
from lcursor.llm.records import ServedModel
from tests.fakes.chat_server import Answer, ChatServer, delta, say
from tests.fakes.loopback import sse

HEAD = '''\
def double(n: int):
    """Return twice a number.
    >>> double(2)
    4
    double(3) == 6
    """
'''
BUG = Bug(
    "T/0",
    "double",
    "import os\n\n\n",
    HEAD,
    "    return n + 2\n",
    "def check(double):\n    assert double(5) == 10\n\ncheck(double)",
)
RIGHT = f"{HEAD}    return n * 2\n"
WRONG = f"{HEAD}    return n * 3\n"


def fenced(code: str) -> Answer:
    """Return an answer that is a fenced block, with its costs so far at each piece."""
    text = f"```python\n{code.rstrip()}\n```\n"
    pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
    rows = [
        {**delta(content=piece), "timings": {"prompt_n": 50, "predicted_n": number}}
        for number, piece in enumerate(pieces, start=1)
    ]
    end = {**delta("stop"), "timings": {"prompt_n": 50, "predicted_n": len(pieces)}}
    return Answer([*(sse(row) for row in (*rows, end)), b"data: [DONE]\n\n"])


@pytest.mark.parametrize(
    ("docstring", "found"),
    [
        (">>> f(1)\n2", [("f(1)", "2")]),
        (">>> f('a', [1, 2])\n'b'", [("f('a', [1, 2])", "'b'")]),
        (">>> f(1)\n...", []),
        (">>> x = f(1)\n>>> x\n2", []),
        ("f(1) == 2", [("f(1)", "2")]),
        ("f(1) => 2", [("f(1)", "2")]),
        ("f(1) ==> [1, 2]  # why", [("f(1)", "[1, 2]")]),
        ("f(1) ➞ true", [("f(1)", "True")]),
        ("For example, f((1, 2)) returns (3, 4), and so on", [("f((1, 2))", "(3, 4)")]),
        ("f(')') should return 5.", [("f(')')", "5.0")]),
        ("f(1) -> 2\nf(1) -> 2", [("f(1)", "2")]),
        ("* f(1, b=2) = 3", [("f(1, b=2)", "3")]),
        ("f(n) = 1 + n", []),
        ("f(2) = 1 + 1 = 2", []),
        ("f('a b', 9) -> 9 - 2 = 7", []),
        ("f(1) is what it is", []),
        ("g(1) == 2", []),
        ("nothing", []),
    ],
)
def test_examples_are_read_from_docstrings(docstring: str, found: list[tuple[str, str]]) -> None:
    head = f'def f(a, b=0):\n    r"""\n{docstring}\n    """\n'
    assert [(each.call, each.value) for each in bugs.examples(head, "f")] == found


def test_the_file_of_the_benchmark_is_read(tmp_path: Path) -> None:
    row = {
        "task_id": "Python/1",
        "prompt": "\n\ndef g():\n    return 1\n\n\ndef f(a):\n    '''f(1) == 2'''\n",
        "buggy_solution": "    return a\n",
        "entry_point": "f",
        "test": "\n\ndef check(f):\n    assert f(1) == 2\n\ncheck(f)",
    }
    (tmp_path / bugs.FILE).write_text(json.dumps(row) + "\n")
    (bug,) = bugs.load(tmp_path)
    assert bug.before == "def g():\n    return 1\n\n\n"
    assert bug.head.startswith("def f(a):")
    assert bug.examples() == (Example("f(1)", "2"),)
    compile(bug.program(bug.source), "x", "exec")
    (tmp_path / bugs.FILE).write_text("{}")
    with pytest.raises(LcursorError, match="not a file of HumanEvalFix"):
        bugs.load(tmp_path)
    with pytest.raises(LcursorError, match="there is no file"):
        bugs.load(tmp_path / "else")


def test_a_smaller_choice_is_part_of_a_larger_one() -> None:
    many = [replace(BUG, name=f"T/{number}") for number in range(30)]
    names = [each.name for each in bugs.chosen(many, 10, 1)]
    assert names == [each.name for each in bugs.chosen(many, 20, 1)][:10]
    assert names != [each.name for each in bugs.chosen(many, 10, 2)]
    assert len(bugs.chosen(many, 0, 1)) == 30
    sized = [replace(BUG, name=str(size), body="x" * size) for size in (30, 10, 20)]
    assert [each.name for each in bugs.chosen(sized, 2, 0)] == ["10", "20"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    return n * 2", []),
        ("    return n * 3", ["double(2) is 6, it should be 4", "double(3) is 9, it should be 6"]),
        ("    return [][n]", ["raises IndexError"]),
        ("    return n +", ["cannot be run"]),
        ("    return str(n * 2)", ["double(2) is '4', it should be 4"]),
    ],
)
def test_a_function_is_tried_on_its_examples(body: str, words: list[str]) -> None:
    found = examples.wrong(f"def double(n):\n{body}\n", [(e.call, e.value) for e in BUG.examples()])
    assert bool(found) is bool(words)
    for word, said in zip(words, found, strict=False):
        assert word in said


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "solution.py").write_text(BUG.before + WRONG)
    examples.prepare(tmp_path, [("double(2)", "4")])
    command = examples.command("double").replace("{path}", "solution.py")
    ran = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (1, "double(2) is 6, it should be 4\n"), ran.stderr
    assert sys.executable in command


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("Sure:\n```python\ndef f():\n    pass\n```\nDone.", "def f():\n    pass\n"),
        ("```\nx\n```\n```py\ndef f(): pass\n```", "def f(): pass\n"),
        ("def f():\n    pass", "def f():\n    pass"),
        ("```python\ndef f():\n    pass", "\ndef f():\n    pass"),
    ],
)
def test_the_code_of_a_plain_answer_is_taken(reply: str, code: str) -> None:
    assert edit.code_of(reply, "f") == code


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def judge(stack: ExitStack, place: Path, *script: Answer) -> tuple[edit.Judge, ChatServer]:
    server = stack.enter_context(ChatServer(script))
    client = ChatClient(ServedModel("fake", server.url))
    stack.callback(client.close)
    connection = Connection("fake", client, client.probe())
    return edit.Judge(connection, edit_answers.AnswerCache(place / "answers.jsonl")), server


def test_plain_is_asked_once_and_kept(stack: ExitStack, tmp_path: Path) -> None:
    asking, server = judge(stack, tmp_path, fenced(RIGHT))
    found = asking.plain(BUG)
    assert found.has_passed
    assert found.answer_tokens > 0
    assert "double(5)" not in str(server.bodies)
    again, other = judge(stack, tmp_path, fenced(WRONG))
    assert again.plain(BUG) == found
    assert not other.bodies


def test_ours_tries_again_with_what_the_docstring_shows(stack: ExitStack, tmp_path: Path) -> None:
    asking, server = judge(stack, tmp_path, fenced(WRONG), fenced(WRONG), fenced(RIGHT))
    plain, ours = edit.answers(asking, [BUG])
    assert not plain.has_passed
    assert ours.has_passed
    assert not ours.first_passed
    assert (ours.attempts, ours.is_formed, ours.is_located, ours.is_checked) == (
        2,
        True,
        True,
        True,
    )
    assert ours.answer_tokens <= 2 * plain.answer_tokens
    first = server.bodies[1]["messages"][-1]["content"]
    assert "double(3) is 5, it should be 6" in first  # what the bug does
    told = server.bodies[2]["messages"][-1]["content"]
    assert "double(2) is 6, it should be 4" in told
    assert "double(5)" not in told  # the hidden test


def test_ours_has_no_more_tries_than_the_plain_answer_pays_for(
    stack: ExitStack, tmp_path: Path
) -> None:
    asking, server = judge(stack, tmp_path, fenced(WRONG))
    plain, ours = edit.answers(asking, [BUG])
    assert ours.attempts == 2
    assert not ours.has_passed
    assert len(server.bodies) == 3
    assert ours.answer_tokens <= 2 * plain.answer_tokens


def test_a_reply_of_no_use_counts_as_none(stack: ExitStack, tmp_path: Path) -> None:
    asking, _ = judge(stack, tmp_path, fenced(WRONG), say("I cannot."))
    plain, ours = edit.answers(asking, [BUG])
    assert plain.is_formed
    assert [ours.has_passed, ours.is_formed, ours.is_located] == [False] * 3
    assert ours.problem


def answer(kind: str, task: str, has_passed: bool, tokens: int = 100) -> edit_answers.Answer:
    return edit_answers.Answer(
        kind, task, "k", has_passed, False, True, True, True, True, 1, 50, tokens, 10, 2.0, ""
    )


FACTS = {"model": "m", "seed": 1, "machine": {"cpu": "abacus"}, "command": "eval"}


def test_the_report_compares_both() -> None:
    found = [
        answer("plain", "a", True),
        answer("ours", "a", True, 120),
        answer("plain", "b", False),
        answer("ours", "b", True, 200),
        answer("plain", "c", True),
        answer("ours", "c", False, 100),
        answer("plain", "d", False),
        answer("ours", "d", True, 180),
    ]
    made = edit_answers.as_dict(found, FACTS, 10)
    assert made["plain_pass"] == 0.5
    assert made["ours_pass"] == 0.75
    assert made["ratio"] == 1.5
    assert made["token_ratio"] == 1.5
    assert (made["gained"], made["lost"], made["tasks"], made["asked"]) == (2, 1, 4, 10)
    json.dumps(made)
    text = "\n".join(edit_answers.as_markdown(made))
    assert "| plain | 4 | 50.0 %" in text
    assert "1.50 times" in text
    assert edit_answers.as_dict([], {}, 0)["ratio"] == 0
