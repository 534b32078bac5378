"""Summaries of a conversation: what is always in them, and their limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcursor.agent import summary
from lcursor.agent.records import Answer, Observation, Shown, ToolCall
from lcursor.agent.run_log import AgentStep, PendingAnswer, RunState
from lcursor.errors import ContextFull, ServerFailed
from lcursor.llm.records import Usage
from lcursor.workspace.tree import LINK, TreeChange

WRITTEN = "Known:\n- a\nTried and failed:\n- b\nNext:\n- c\n"


class FakeModel:
    """A model whose tokens are words and single signs."""

    usage = Usage()

    def __init__(self, written: str | Exception = WRITTEN, used: int = 500) -> None:
        self.context_tokens, self.extra, self.written = 1000, used, written
        self.messages = ["system", "task", "observation"]
        self.asked: list[tuple[int, str, bool]] = []

    def begin(self, system: str, task: str) -> None:
        self.messages = [system, task]

    def append(self, text: str, results: Sequence[str] = ()) -> None:
        self.messages.append(text)

    def add_answer(self, text: str) -> None:
        self.messages.append(text)

    def ask(
        self,
        on_text: Callable[[str], bool],
        *,
        max_tokens: int,
        temperature: float = 0.0,
        grammar: str = "",
        is_forced: bool = False,
        on_wait: Callable[[bool], None] = lambda _: None,
    ) -> Answer:
        self.asked.append((max_tokens, self.messages[-1], is_forced))
        if isinstance(self.written, Exception):
            raise self.written
        self.messages.append(self.written)
        return Answer(self.written)

    def drop_answer(self) -> None:
        self.messages.pop()

    def count(self, text: str) -> int:
        return len(re.findall(r"\w+|\S|\n", text))

    @property
    def used_tokens(self) -> int:
        return self.extra

    def state(self) -> Mapping[str, Any]:
        return {"messages": list(self.messages)}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.messages = list(state["messages"])

    def close(self) -> None:
        """Nothing runs."""


class FakeFiles:
    def __init__(self, *changed: TreeChange, **contents: str) -> None:
        self.listed = changed
        self.texts = {key: text.encode() for key, text in contents.items()}

    def changed(self, since: str = "") -> Sequence[TreeChange]:
        return self.listed

    def contents(self, keys: Sequence[str], max_bytes: int) -> Mapping[str, bytes]:
        return {key: self.texts[key] for key in keys}


def step(number: int, tool: str, found: Observation | None, **arguments: Any) -> AgentStep:
    return AgentStep(number, ToolCall(tool, arguments), observation=found)


def viewed(number: int, path: str, first: int, last: int, text: str = "lines") -> AgentStep:
    shown = (Shown(path, first, last),)
    found = Observation(text, target=f"{path}:{first + 1}-{last}", shown=shown)
    return step(number, "str_replace_editor", found, command="view", path=path)


def ran(number: int, command: str, text: str, status: int) -> AgentStep:
    found = Observation(
        text, is_error=bool(status), target=command, result=f"exit {status}", status=status
    )
    return step(number, "bash", found, command=command)


def state_of(*steps: AgentStep, task: str = "Fix it.", **fields: Any) -> RunState:
    return RunState(task=task, steps=list(steps), **fields)


OLD = "import os\n\nclass A:\n    def f(self):\n        return 1\n\ndef g():\n    return 2\n"
NEW = OLD.replace("import os\n", "import os\nimport re\n").replace("return 1", "return 3")


def test_the_text_of_a_summary() -> None:
    model = FakeModel()
    files = FakeFiles(
        TreeChange("src/a.py", "edit", added=2, removed=1, keys=("o", "n")),
        TreeChange("b.py", "create", added=9, keys=("0" * 40, "n")),
        TreeChange("c.png", "delete", is_binary=True, keys=("p", "0" * 40)),
        TreeChange("l", "edit", modes=(LINK, LINK), keys=("x", "y")),
        o=OLD,
        n=NEW,
    )
    failure = "ran 3\nFAILED tests/test_a.py::test_x - assert 1\nsome line\n"
    steps = [
        viewed(1, "src/a.py", 0, 40),
        ran(2, "pytest", failure, 1),
        viewed(3, "z.py", 4, 9),
        viewed(4, "src/a.py", 30, 80, "the last view"),
        ran(5, "make", "all is well, no error", 0),
        ran(6, "pytest", failure, 1),
    ]
    state = state_of(*steps, context="def f(): ...", said=["keep the API", "unread"], read=1)
    summary.summarize(model, "system", files, state)
    assert model.messages == [
        "system",
        "Fix it.\n\ndef f(): ...\n\n"
        f"{summary.TITLE}\n"
        "The user said:\n- keep the API\n"
        "Changed files:\n"
        "- src/a.py (+2 -1): 2, 6 def f(self):\n"
        "- b.py created (+9 -0)\n"
        "- c.png deleted (+0 -0)\n"
        "- l (+0 -0)\n"
        "Commands:\n"
        "- make: exit 0\n"
        "- pytest: exit 1\n  FAILED tests/test_a.py::test_x - assert 1\n"
        "Read:\n- z.py:5-9\n- src/a.py:1-80\n\n"
        f"{WRITTEN.strip()}\n\n"
        "Result of bash make:\nall is well, no error\n\n"
        f"Result of bash pytest:\n{failure}",
    ]
    assert model.asked == [(350, summary.REQUEST, True)]


def test_results_that_are_appended_afterwards_are_not_in_it() -> None:
    model = FakeModel()
    state = state_of(viewed(1, "a", 0, 1, "first"), viewed(2, "b", 0, 1, "second"))
    state.answer = PendingAnswer((2,), "", "", "stop")
    summary.summarize(model, "system", FakeFiles(), state)
    assert "first" in model.messages[1]
    assert "second" not in model.messages[1]
    assert "- b:1-1" in model.messages[1]


@pytest.mark.parametrize("model", [FakeModel(used=900), FakeModel(ContextFull("full"))])
def test_without_space_the_summary_has_no_part_of_the_model(model: FakeModel) -> None:
    summary.summarize(model, "system", FakeFiles(), state_of())
    assert model.messages == ["system", f"Fix it.\n\n{summary.TITLE}"]


def test_after_a_failure_the_conversation_is_as_before() -> None:
    model = FakeModel(ServerFailed("no"))
    before = list(model.messages)
    with pytest.raises(ServerFailed):
        summary.summarize(model, "system", FakeFiles(), state_of())
    assert model.messages == before


def test_a_long_answer_is_cut_and_a_long_result_is_left_out() -> None:
    model = FakeModel("- a row of words\n" * 200)
    state = state_of(viewed(1, "a", 0, 9, "word " * 900), viewed(2, "b", 0, 9, "short"))
    summary.summarize(model, "system", FakeFiles(), state)
    assert 250 < model.messages[1].count("word") * 5 <= summary.MAX_ANSWER_TOKENS
    assert "Result of str_replace_editor b:1-9:\nshort" in model.messages[1]
    assert "Result of str_replace_editor a:" not in model.messages[1]


def test_a_long_task_has_its_first_and_last_lines() -> None:
    rows = [f"line {number} of the task" for number in range(200)]
    text = summary.task_text(state_of(task="\n".join(rows)), FakeModel().count)
    assert text.startswith("line 0 of the task\nline 1")
    assert text.endswith("line 199 of the task")
    assert "\n…\n" in text
    assert FakeModel().count(text) <= summary.TASK_TOKENS


def test_with_many_changed_files_all_names_remain() -> None:
    paths = [f"{folder}f{n}.py" for folder in ("", "src/a/") for n in range(15)]
    changed = [TreeChange(path, "edit", keys=("o", "n")) for path in paths]
    text = summary.facts(state_of(), FakeFiles(*changed, o=OLD, n=NEW), FakeModel().count)
    names = ", ".join(f"f{n}.py" for n in range(15))
    assert f"Changed files:\n- .: {names}\n- src/a: {names}" in text


def test_a_failure_is_named_although_many_commands_passed_later() -> None:
    later = [ran(number, f"make part-{number}", "", 0) for number in range(2, 40)]
    steps = [ran(1, "pytest", "FAILED test_a", 1), *later]
    text = summary.facts(state_of(*steps), FakeFiles(), FakeModel().count)
    assert "- pytest: exit 1\n  FAILED test_a" in text
    assert "- make part-39: exit 0\n" in text
    passing = summary.facts(
        state_of(*steps, ran(40, "pytest", "ok", 0)), FakeFiles(), FakeModel().count
    )
    assert "FAILED" not in passing


def test_changes_are_named_by_the_definition_around_them() -> None:
    assert summary.heads(OLD, NEW) == ["2", "6 def f(self):"]
    assert summary.heads("a\nb\nc", "a\nc") == ["2"]
    assert summary.heads("fn x() {\n  1\n}", "fn x() {\n  2\n  3\n}") == ["2-3 fn x() {"]


WORDS = st.text(st.sampled_from("ab /.:é\n"), max_size=400)
NUMBERS = st.integers(0, 99)
STEPS = st.lists(
    st.one_of(
        st.builds(lambda n, text: viewed(1, f"src/{n}.py", n, n + 9, text * 9), NUMBERS, WORDS),
        st.builds(lambda n, text: ran(1, f"make {n}", f"{text} error", 1), NUMBERS, WORDS),
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, WORDS, st.lists(WORDS, max_size=9), st.integers(0, 60), WORDS)
def test_the_limits_of_a_summary(
    steps: list[AgentStep], task: str, said: list[str], changed: int, written: str
) -> None:
    model = FakeModel(written * 20)
    files = FakeFiles(
        *(TreeChange(f"f{n}.py", "create", keys=("0", "n")) for n in range(changed)), n=NEW
    )
    for number, each in enumerate(steps):
        each.number = number + 1
    state = state_of(*steps, task=task * 5, said=said, read=len(said))
    summary.summarize(model, "system", files, state)
    whole = model.messages[1]
    own = whole.partition("\n\nResult of ")[0]
    assert model.count(own) <= summary.MAX_TOKENS
    assert model.count(whole) <= summary.MAX_REREAD_TOKENS + 10
