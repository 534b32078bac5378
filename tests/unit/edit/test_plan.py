"""Plans: what a model may name, what becomes of its answer, and what is left out."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lcursor.changes.sources import Sources
from lcursor.config import EditConfig
from lcursor.context.codebase import GrepSearch
from lcursor.edit import plan
from lcursor.edit.plan import Plan, parse_answer
from lcursor.errors import Cancelled, ReplyUnusable
from lcursor.llm.client import ChatClient
from lcursor.llm.pool import Connection
from lcursor.llm.records import Target
from lcursor.stop import Stop
from tests.fakes.chat_server import Answer, ChatServer, Hang, Script, say

FILES = {
    "app/parser.py": "import re\n\n\ndef parse(text):\n    return text\n\n\n"
    "class Parser:\n    def feed(self, data):\n        return parse(data)\n",
    "app/main.py": "from app.parser import parse\n\n\ndef main():\n    print(parse('x'))\n",
    "README.md": "# App\n",
    "app/unrelated.py": "def other():\n    pass\n",
}


class Desk:
    """A project and a model that follows a script."""

    def __init__(self, root: Path, server: ChatServer) -> None:
        self.root, self.server = root, server
        client = ChatClient(Target("fake", server.url))
        self.reached = Connection("fake", client, client.probe())
        self.cancel = Stop()

    def ask(self, instruction: str = "Rename parse to parse_text", **more: Any) -> Plan:
        config = more.pop("config", EditConfig())
        here = str(self.root / "app/main.py")
        lines = (self.root / "app/main.py").read_text().splitlines()
        files = Sources(self.root, [{"path": here, "tick": 1, "text": "\n".join(lines)}], here)
        return plan.plan(
            self.reached,
            config,
            instruction,
            more.pop("context", ""),
            GrepSearch(self.root),
            self.cancel,
            files,
        )

    def prompt(self) -> str:
        return str(self.server.bodies[0]["messages"][-1]["content"])

    def ids(self) -> dict[str, str]:
        """The ids that the model was shown, by what stands behind them."""
        pairs = (line.split(maxsplit=1) for line in self.prompt().splitlines() if " " in line)
        return {what: key for key, what in pairs if key.lstrip("f")[:1].isdigit()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, body in FILES.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body)
    return tmp_path / "project"


@pytest.fixture
def desk(root: Path) -> Iterator[Any]:
    with ExitStack() as stack:

        def make(script: Script) -> Desk:
            made = Desk(root, stack.enter_context(ChatServer(script)))
            stack.callback(made.reached.client.close)
            return made

        yield make


def answer(*steps: dict[str, Any], summary: str = "It is renamed.") -> str:
    return json.dumps({"summary": summary, "steps": steps})


def by_name(reply: Any) -> Any:
    """Return a script that is told the ids by what they stand for."""

    def script(body: dict[str, Any]) -> Answer:
        pairs = (
            line.split(maxsplit=1)
            for line in body["messages"][-1]["content"].splitlines()
            if " " in line
        )
        return say(reply({what: key for key, what in pairs}))

    return script


def test_what_there_is_is_shown_with_ids(desk: Any) -> None:
    it = desk([say(answer())])
    it.ask()
    ids = it.ids()
    assert ids["def parse(text):"].startswith(ids["app/parser.py (10 lines)"])
    assert "def feed(self, data): (in Parser)" in ids
    assert "def main():" in ids
    assert "unrelated" not in it.prompt()  # nothing in it has to do with that
    assert it.prompt().rstrip().endswith("alone.")
    schema = it.server.bodies[0]["response_format"]["json_schema"]["schema"]
    edit, create, *_ = schema["properties"]["steps"]["items"]["anyOf"]
    assert set(edit["properties"]["id"]["enum"]) == set(ids.values())
    assert "id" not in create["properties"]


def test_a_plan_of_all_kinds_in_their_order(desk: Any) -> None:
    def reply(ids: dict[str, str]) -> str:
        parser, main = ids["app/parser.py (10 lines)"], ids["def main():"]
        return answer(
            {"action": "delete_file", "id": ids["README.md (1 lines)"]},
            {"action": "edit", "id": main, "do": "Call parse_text"},
            {"action": "edit", "id": ids["def parse(text):"], "do": "Rename it"},
            {"action": "create_file", "path": "app/text.py", "do": "Helpers"},
            {"action": "edit", "id": main, "do": "And print less"},
            {"action": "move_file", "id": parser, "path": "app/reading.py"},
        )

    found = desk(by_name(reply)).ask("Rename parse to parse_text, move parser.py, delete README.md")
    assert found.summary == "It is renamed."
    assert [(step.key, step.kind, step.path, step.to) for step in found.steps] == [
        ("s1", "create", "app/text.py", ""),
        ("s2", "edit", "app/main.py", ""),
        ("s3", "edit", "app/parser.py", ""),
        ("s4", "rename", "app/parser.py", "app/reading.py"),
        ("s5", "delete", "README.md", ""),
    ]
    main, parse = found.steps[1], found.steps[2]
    assert (main.first_row, main.last_row, main.what) == (3, 5, "function main")
    assert main.do == "Call parse_text\nAnd print less"
    assert (parse.first_row, parse.last_row, parse.what) == (3, 5, "function parse")


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ({"action": "edit", "id": "f99", "do": "x"}, "there is no f99"),
        ({"action": "edit", "do": "x"}, "without an id"),
        ({"action": "create", "path": "../evil.py", "do": "x"}, "not a path in the project"),
        ({"action": "create", "path": "/etc/evil", "do": "x"}, "not a path in the project"),
        ({"action": "create", "path": ".git/hooks/x", "do": "x"}, "version control"),
        ({"action": "create", "path": "sub/.Git/hooks/x", "do": "x"}, "version control"),
        ({"action": "create", "path": "app/main.py", "do": "x"}, "already exists"),
        ({"action": "rename", "id": "app/main.py", "path": "README.md"}, "already exists"),
        ({"action": "burn", "id": "app/main.py"}, "no action"),
    ],
)
def test_what_cannot_be_done_is_left_out_and_reported(desk: Any, step: Any, why: str) -> None:
    good = {"action": "edit", "id": "app/main.py", "do": "y"}
    found = desk([say(answer(step, good))]).ask("Rename or delete it")
    assert [step.path for step in found.steps] == ["app/main.py"]
    assert why in found.summary


def test_names_stand_for_ids_where_only_one_thing_has_them(desk: Any) -> None:
    steps = [{"action": "edit", "id": name, "do": "x"} for name in ("parser.py:parse", "main")]
    steps.append({"action": "edit", "id": "app/unrelated.py", "do": "x"})
    found = desk([say(answer(*steps))]).ask()
    assert [(step.path, step.what) for step in found.steps] == [
        ("app/parser.py", "function parse"),
        ("app/main.py", "function main"),
        ("app/unrelated.py", ""),
    ]


def test_a_file_that_is_deleted_is_not_edited(desk: Any) -> None:
    steps = [{"action": "edit", "id": "app/main.py", "do": "x"}]
    steps.append({"action": "delete", "id": "app/main.py"})
    found = desk([say(answer(*steps))]).ask("Delete app/main.py")
    assert [step.kind for step in found.steps] == ["delete"]


@pytest.mark.parametrize(
    "instruction",
    [
        "Add a limit to the function parse",
        "Delete what nobody uses, and move the rest",
        "Räume auf, entferne alles in der Ecke",
    ],
)
def test_a_file_that_is_not_named_is_not_deleted_or_moved(desk: Any, instruction: str) -> None:
    steps = [{"action": "delete_file", "id": "app/parser.py"}]
    steps += [{"action": "move_file", "id": "README.md", "path": "doc.md"}, GOOD]
    it = desk([say(answer(*steps))])
    found = it.ask(instruction)
    assert [step.kind for step in found.steps] == ["edit"]
    assert "README.md: name the file to have it deleted or moved" in found.summary
    assert "app/parser.py: name the file" in found.summary
    assert "delete_file" not in json.dumps(it.server.bodies[0]["response_format"])


@pytest.mark.parametrize(
    "instruction",
    [
        "Delete the parser, and move README.md to doc.md",
        "Entferne parser.py, verschiebe die README in doc.md",
        "删除parser.py并将readme.md移动到doc.md",
        "app/parser.py と README.md",
    ],
)
def test_a_file_that_is_named_is_deleted_or_moved(desk: Any, instruction: str) -> None:
    steps = [{"action": "delete_file", "id": "app/parser.py"}]
    steps += [{"action": "move_file", "id": "README.md", "path": "doc.md"}, GOOD]
    it = desk([say(answer(*steps))])
    assert [step.kind for step in it.ask(instruction).steps] == ["edit", "rename", "delete"]
    schema = it.server.bodies[0]["response_format"]["json_schema"]["schema"]
    delete = schema["properties"]["steps"]["items"]["anyOf"][-1]["properties"]
    assert delete["action"] == {"const": "delete_file"}
    ids = it.ids()
    named = {ids[key] for key in ids if key.startswith(("app/parser.py", "README.md"))}
    assert {*delete["id"]["enum"]} == named


@pytest.mark.parametrize(
    ("path", "instruction", "is_there"),
    [
        ("app/main.py", "delete app/parser.py", False),
        ("app/old/main.py", "entferne den Ordner app/old", True),
        ("app/main.py", "remove app.", True),
        ("app/a.py", "remove a comment", False),
        ("app/a.py", "remove a.py", True),
    ],
)
def test_a_name_is_that_of_a_file_or_of_a_folder(
    path: str, instruction: str, is_there: bool
) -> None:
    assert plan.is_named(path, instruction) is is_there


def test_two_steps_do_not_make_one_file(desk: Any) -> None:
    steps = [{"action": "create_file", "path": "new.py", "do": "x"}]
    steps += [{"action": "move_file", "id": "README.md", "path": "new.py"}]
    found = desk([say(answer(*steps))]).ask("Move README.md")
    assert [step.kind for step in found.steps] == ["create"]
    assert "another step makes new.py" in found.summary


def test_a_long_file_is_narrowed_or_left_out(
    desk: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(60))
    (root / "app/long.py").write_text(body)
    monkeypatch.setattr(plan, "MAX_REGION_TOKENS", 50)
    steps = [{"action": "edit", "id": "app/long.py", "do": "let f7 return nothing"}]
    found = desk([say(answer(*steps))]).ask("Change app/long.py")
    assert found.steps[0].what == "function f7"
    steps[0]["do"] = "make it nicer"
    found = desk([say(answer(*steps))]).ask("Change app/long.py")
    assert found.steps == ()
    assert "too long" in found.summary


def test_secrets_are_not_read(desk: Any, root: Path) -> None:
    (root / ".env").write_text("KEY=1\n")
    it = desk([say(answer({"action": "edit", "id": ".env", "do": "x"}))])
    found = it.ask("Change .env")
    assert found.steps == ()
    assert "KEY" not in it.prompt()


GOOD = {"action": "edit", "id": "app/main.py", "do": "x"}


@pytest.mark.parametrize(
    "reply",
    [
        f"```json\n{answer(GOOD)}\n```",
        f"<think>[1] maybe {{</think>Here is [the] plan:\n\n{answer(GOOD)}\nDone.",
    ],
)
def test_answers_are_read_leniently(desk: Any, reply: str) -> None:
    assert [step.path for step in desk([say(reply)]).ask().steps] == ["app/main.py"]


@pytest.mark.parametrize("reply", ["", "I would rename it.", "{}", '{"steps": 3}', "[[1]]"])
def test_no_plan_is_no_plan(reply: str) -> None:
    assert parse_answer(reply) is None


def test_it_is_asked_twice_and_then_rejected(desk: Any) -> None:
    it = desk([say("I cannot"), say(answer(GOOD))])
    assert len(it.ask().steps) == 1
    assert it.server.bodies[1]["temperature"] > it.server.bodies[0]["temperature"]
    with pytest.raises(ReplyUnusable, match="no plan"):
        desk([say("I cannot")]).ask()


def test_it_is_informed_of_what_cannot_be_done(desk: Any) -> None:
    wrong = {"action": "move_file", "id": "app/main.py", "path": "app/main.py"}
    it = desk([say(answer(wrong)), say(answer(GOOD))])
    assert [step.kind for step in it.ask().steps] == ["edit"]
    assert "already exists" in it.server.bodies[1]["messages"][-1]["content"]
    found = desk([say(answer(wrong))]).ask()
    assert found.steps == ()
    assert "Left out: app/main.py already exists" in found.summary


def test_a_planner_of_its_own_adds_a_sketch(desk: Any) -> None:
    it = desk([say(answer(GOOD)), say("Call parse_text.")])
    found = it.ask(config=replace(EditConfig(), plan_model="large"))
    assert found.steps[0].sketch == "Call parse_text."
    assert "def main():" in it.server.bodies[1]["messages"][-1]["content"]


def test_it_stops_at_once(desk: Any) -> None:
    it = desk([Answer([Hang()])])
    threading.Timer(0.2, it.cancel.set).start()
    with pytest.raises(Cancelled):
        it.ask()


def test_a_small_context_gets_a_short_list(desk: Any, root: Path) -> None:
    for number in range(30):
        body = "".join(f"def parse_{number}_{n}(text):\n    pass\n\n\n" for n in range(30))
        (root / f"parse_{number}.py").write_text(body)
    it = desk([say(answer())])
    it.reached.client.served = replace(it.reached.served, context_tokens=1500)
    it.ask("Rename parse")
    assert len(it.prompt()) < 1500 / 3 * 4 + 500
    assert "app/main.py" in it.prompt()
