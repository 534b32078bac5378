"""All dialects: parsing never fails, a rendered call is read as itself, prompts are short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lcursor.agent.dialects import call_parser
from lcursor.agent.dialects.arguments import Malformed, call_of
from lcursor.agent.dialects.dialect import Dialect
from lcursor.agent.dialects.fenced import Fenced
from lcursor.agent.dialects.native import Native
from lcursor.agent.dialects.select import dialect_for
from lcursor.agent.guided.choice import Choice
from lcursor.agent.records import Answer, Known, Observation, Shown, ToolCall
from lcursor.agent.tools.table import TOOLS
from lcursor.catalog import manifest

KNOWN = Known(
    paths=("src/a.py", "src/ab.py", 'odd "name"\\.txt', "Makefile"),
    symbols={"src/a.py": ("load", "Loader.load")},
    regions={"r1": Shown("src/a.py", 0, 4), "r12": Shown("src/ab.py", 3, 9)},
    commands={"test": "pytest -q", "lint": "ruff check"},
)
DIALECTS: list[Dialect] = [Native(), Native("json"), Fenced(), Choice()]
BITS = st.sampled_from(
    [
        *("<tool_call>", "</tool_call>", "<function=bash>", "</function>", "<parameter=command>"),
        *(
            "\n",
            "\n</parameter>\n",
            "<tools>",
            "{",
            "}",
            '"',
            "[",
            "]",
            ",",
            ":",
            "```",
            "```bash\n",
        ),
        *(
            "```edit a.py\n",
            "<<<<<<< SEARCH\n",
            "=======\n",
            ">>>>>>> REPLACE\n",
            "```view a.py:1-2",
        ),
        *('{"name": "bash", "arguments": {"command": "ls"}}', "bash(", ")", "for example", "`"),
        *("# why\n", "edit r1 : ", "read src/a.py", "run test", "done : ", "<think>", "</think>"),
        *("ls", "é", "\\", "\\n", "1e999", "NaN", "[[[[", "'"),
    ]
)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\r"))


def tag_free(text: str) -> bool:
    return not re.search(r"</?(parameter|function|tool_call)", text)


@pytest.mark.parametrize("dialect", DIALECTS, ids=["tags", "json", "fenced", "choice"])
@given(text=st.one_of(st.text(), st.lists(BITS, max_size=12).map("".join)))
@example(text="<tool_call>" + "[" * 5000)
@example(text="bash(" + "(" * 300 + ")" * 300 + ")")
def test_parsing_never_fails(dialect: Dialect, text: str) -> None:
    reply = dialect.parse(Answer(text), TOOLS, KNOWN)
    assert not (reply.calls and reply.problem)
    for call in reply.calls:
        assert call.tool == "rewrite" or call == call_of(call.tool, call.arguments, TOOLS)


@pytest.mark.parametrize("form", ["tags", "json"])
@given(old=VALUES, new=VALUES, rows=st.lists(st.integers(-9, 10**8), max_size=3))
@example(old="\n\n", new="\n", rows=[])
@example(old="```\ncode\n```", new="for example", rows=[])
def test_a_native_call_is_read_as_itself(form: str, old: str, new: str, rows: list[int]) -> None:
    dialect = Native("tags" if form == "tags" else "json")
    if form == "tags" and not (tag_free(old) and tag_free(new)):
        return
    edit = {"command": "str_replace", "path": "a.py", "old_str": old, "new_str": new}
    calls = (
        ToolCall("str_replace_editor", {**edit, "view_range": rows, "insert_line": 3}),
        ToolCall("grep", {"pattern": old, "glob": "*.py"}),
    )
    text = "\n".join(["I will do it.", *map(dialect.render, calls)])
    reply = dialect.parse(Answer(text), TOOLS, KNOWN)
    assert (reply.calls, reply.thought) == (calls, "I will do it.")


def fenced(call: ToolCall) -> str:
    """Return a call as a block."""
    values = call.arguments
    if call.tool != "str_replace_editor":
        return f"```{call.tool}\n{next(iter(values.values()))}\n```"
    path, rows = values["path"], values.get("view_range")
    if values["command"] == "view":
        return f"```view {path}{f':{rows[0]}-{rows[1]}' if rows else ''}\n```"
    old, new = values.get("old_str", ""), values.get("new_str", values.get("file_text", ""))
    sides = "=======\n".join(f"{text}\n" if text else "" for text in (old, new))
    return f"```edit {path}\n<<<<<<< SEARCH\n{sides}>>>>>>> REPLACE\n```"


LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1))


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("bash", {"command": "cat <<'END'\n```\nEND\n".replace("```", "''")}),
        ToolCall(
            "str_replace_editor", {"command": "view", "path": "src/a.py", "view_range": [3, 9]}
        ),
        ToolCall("str_replace_editor", {"command": "view", "path": "docs/a b.md"}),
        ToolCall("str_replace_editor", {"command": "create", "path": "b.py", "file_text": "x\n"}),
        ToolCall("search", {"query": "where dates are parsed"}),
        ToolCall("finish", {"summary": "Done.\nAll tests pass."}),
    ],
    ids=lambda call: f"{call.tool} {call.arguments.get('command', '')}"[:24],
)
def test_a_fenced_call_is_read_as_itself(call: ToolCall) -> None:
    reply = Fenced().parse(Answer(fenced(call)), TOOLS, KNOWN)
    values = {key: v.rstrip("\n") if isinstance(v, str) else v for key, v in call.arguments.items()}
    read = {
        key: v.rstrip("\n") if isinstance(v, str) else v
        for key, v in reply.calls[0].arguments.items()
    }
    assert (reply.calls[0].tool, read) == (call.tool, values)


VIEW = {"command": "view"}


@pytest.mark.parametrize(
    ("action", "call"),
    [
        ("read src/a.py", ToolCall("str_replace_editor", {**VIEW, "path": "src/a.py"})),
        ("read src/a.py#load", ToolCall("str_replace_editor", {**VIEW, "path": "src/a.py#load"})),
        (
            'read odd "name"\\.txt',
            ToolCall("str_replace_editor", {**VIEW, "path": 'odd "name"\\.txt'}),
        ),
        ("find where dates are parsed", ToolCall("search", {"query": "where dates are parsed"})),
        ("grep def \\w+_date", ToolCall("grep", {"pattern": "def \\w+_date"})),
        ("run test", ToolCall("bash", {"command": "pytest -q"})),
        ("done : returns a list", ToolCall("finish", {"summary": "returns a list"})),
        (
            "edit r12 : use <= : not <",
            ToolCall(
                "rewrite", {"path": "src/ab.py", "region": "r12", "instruction": "use <= : not <"}
            ),
        ),
    ],
)
def test_an_action_is_read_and_rendered(action: str, call: ToolCall) -> None:
    reply = Choice().parse(Answer(f"# why\n{action}\n"), TOOLS, KNOWN)
    assert (reply.thought, reply.calls, reply.problem) == ("why", (call,), "")
    assert Choice().render(call, KNOWN) == action


@pytest.mark.parametrize(
    "text",
    [
        "read src/b.py",
        "read src/ab.py#load",
        "edit r2 : change it",
        "edit r1 change it",
        "run deploy",
        "rm -r src",
        "# only a thought",
        "read src/a.py\nread src/ab.py",
        "",
    ],
)
def test_an_action_on_what_is_unknown_is_malformed(text: str) -> None:
    reply = Choice().parse(Answer(text), TOOLS, KNOWN)
    assert reply.problem
    assert not reply.calls


def test_the_grammar_offers_only_what_exists() -> None:
    everything = Choice().grammar(TOOLS, KNOWN)
    nothing = Choice().grammar(TOOLS, Known())
    assert all(f'"{verb} "' in everything for verb in ("read", "edit", "run", "find"))
    assert not any(f'"{verb} "' in nothing for verb in ("read", "edit", "run"))
    assert "spot ::= (" in everything
    assert '"odd \\"name\\"\\\\.txt"' in everything


@pytest.mark.parametrize("dialect", DIALECTS, ids=["tags", "json", "fenced", "choice"])
def test_facts_and_tools_are_in_the_prompt(dialect: Dialect) -> None:
    text = dialect.system(TOOLS, "Tests: pytest -q\n")
    assert text.endswith("\n\nTests: pytest -q")
    few = dialect.system([tool for tool in TOOLS if tool.name != "bash"], "")
    assert dialect.name != "native" or len(few) < len(text) - len("Tests: pytest -q") - 10


@pytest.mark.parametrize("dialect", DIALECTS, ids=["tags", "json", "fenced", "choice"])
def test_observations_are_in_the_order_of_calls(dialect: Dialect) -> None:
    calls = [ToolCall("glob", {"pattern": "*"}), ToolCall("grep", {"pattern": "x"})]
    text = dialect.observations(calls, [Observation("a.py"), Observation("a.py:1: x")])
    assert text.index("a.py") < text.index("a.py:1: x")
    assert text.count("<tool_response>") == (2 if dialect.name == "native" else 0)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("run", {}, "There is no tool 'run'. Use str_replace_editor, bash, grep, glob, search or"),
        ("bash", {}, "bash needs command. Write bash(command, timeout_s?, escalate?)."),
        ("bash", {"command": "ls", "cwd": "x"}, "bash has no argument 'cwd'."),
        ("bash", {"command": "ls", "timeout_s": "soon"}, "timeout_s must be an integer."),
        ("bash", {"command": True}, "command must be a string."),
    ],
)
def test_a_problem_names_the_form(name: str, values: dict[str, object], words: str) -> None:
    with pytest.raises(Malformed) as caught:
        call_of(name, values, TOOLS)
    assert words in str(caught.value)


def test_an_answer_that_was_cut_off_says_so() -> None:
    cut = Answer("<tool_call>\n<function=bash>\n<parameter=comm", "length", answer_tokens=99)
    for dialect in (Native(), Fenced()):
        assert "cut off after 99 tokens" in dialect.parse(cut, TOOLS, KNOWN).problem
    whole = Answer("```bash\nls\n```\nThis lists all", "length", answer_tokens=99)
    assert Fenced().parse(whole, TOOLS, KNOWN).calls == (ToolCall("bash", {"command": "ls"}),)


def test_reasoning_is_not_read() -> None:
    call = Native().render(ToolCall("bash", {"command": "rm -r build"}))
    for text in (f"<think>\n{call}\n</think>\nDone.", f"Perhaps\n{call}\n</think>\nDone."):
        assert call_parser.read(Answer(text), TOOLS).calls == ()
        assert call_parser.read(Answer(text), TOOLS).thought == "Done."


@pytest.mark.parametrize(
    ("model", "name", "form"),
    [
        ("qwen2.5-coder-0.5b", "choice", ""),
        ("qwen2.5-coder-7b", "fenced", ""),
        ("qwen3-coder-30b-a3b", "native", "tags"),
        ("/models/Qwen3.6-27B-Q4_K_M.gguf", "native", "tags"),
        ("granite-3.3-2b", "fenced", ""),
        ("Qwen2.5-Coder-3B-Instruct-Q8_0.gguf", "choice", ""),
        ("qwen2.5-coder:14b", "fenced", ""),
        ("Qwen3-32B-Q4_K_M.gguf", "native", "json"),
        ("qwen3:8b", "fenced", ""),
        ("qwen3:1.7b", "choice", ""),
        ("Qwen3-Coder-Next-80B", "native", "tags"),
        ("gpt-oss:20b", "native", "tags"),
        ("Devstral-Small-2-24B-Instruct", "native", "tags"),
        ("Llama-3.2-1B-Instruct", "choice", ""),
        ("mystery", "fenced", ""),
        ("starcoder2-3b", "choice", ""),
    ],
)
def test_the_dialect_of_a_model(model: str, name: str, form: str) -> None:
    dialect = dialect_for(model)
    assert dialect.name == name
    assert not form or (isinstance(dialect, Native) and dialect.form == form)


def test_a_hosted_model_is_native() -> None:
    assert dialect_for("claude-sonnet-5", is_hosted=True).name == "native"


def test_each_chat_model_of_the_manifest_has_a_dialect() -> None:
    for model in manifest.load():
        assert (model.dialect is not None) == ("chat" in model.slots), model.name
        if model.dialect:
            assert dialect_for(model.name).name == model.dialect
            assert dialect_for(str(Path("/models") / model.file)).name == model.dialect
