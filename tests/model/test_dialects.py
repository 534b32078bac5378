"""The prompts of dialects are short, and their grammars accept what the dialects write."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llama_cpp
import pytest

from lcursor.agent.dialects.dialect import Dialect
from lcursor.agent.dialects.fenced import Fenced
from lcursor.agent.dialects.native import Native
from lcursor.agent.guided.choice import Choice
from lcursor.agent.records import Known, Shown, ToolCall
from lcursor.agent.tools import mcp

KNOWN = Known(
    paths=("src/a.py", "src/ab.py", 'odd "name"\\.txt', "größe.txt"),
    symbols={"src/a.py": ("load", "Loader")},
    regions={"r1": Shown("src/a.py", 0, 4), "r12": Shown("src/ab.py", 3, 9)},
    commands={"test": "pytest -q", "lint": "ruff check"},
)
EDIT = {"command": "str_replace", "path": "a.py"}
CALLS = (
    ToolCall("bash", {"command": 'echo "a\\n" && ls <in >out\n\n'}),
    ToolCall("bash", {"command": "ls", "timeout_s": 60}),
    ToolCall("str_replace_editor", {"command": "view", "path": "src", "view_range": [1, -1]}),
    ToolCall("str_replace_editor", {**EDIT, "old_str": "\n\n</p>\n\t<b>\n", "new_str": ""}),
    ToolCall("str_replace_editor", {"path": "a.py", "command": "insert", "insert_line": 0}),
    ToolCall("grep", {"pattern": r"\bé\d+\"", "glob": "*.py", "path": "src"}),
    ToolCall("finish", {"summary": "Done.\n</parameter"}),
)
Accepts = Callable[[str, str], bool]


@pytest.fixture(scope="module")
def vocabulary(model_path: Path) -> Iterator[llama_cpp.Llama]:
    """The model without its weights."""
    model = llama_cpp.Llama(str(model_path), vocab_only=True, verbose=False)
    yield model
    model.close()


@pytest.fixture(scope="module")
def accepts(vocabulary: llama_cpp.Llama) -> Accepts:
    """Return whether a grammar accepts a text with the end of the message."""
    vocab = llama_cpp.llama_model_get_vocab(vocabulary.model)

    def check(grammar: str, text: str) -> bool:
        sampler = llama_cpp.llama_sampler_init_grammar(vocab, grammar.encode(), b"root")
        assert sampler, "the grammar is not valid"
        try:
            for token in [*vocabulary.tokenize(text.encode(), False, True), vocabulary.token_eos()]:
                one = llama_cpp.llama_token_data(token, 0.0, 0.0)
                array = llama_cpp.llama_token_data_array(ctypes.pointer(one), 1, -1, False)
                llama_cpp.llama_sampler_apply(sampler, ctypes.byref(array))
                if math.isinf(one.logit):
                    return False
                if token != vocabulary.token_eos():
                    llama_cpp.llama_sampler_accept(sampler, token)
            return True
        finally:
            llama_cpp.llama_sampler_free(sampler)

    return check


@pytest.mark.parametrize(
    ("dialect", "limit"),
    [(Native(), 900), (Native("json"), 900), (Fenced(), 600), (Choice(), 350)],
    ids=["tags", "json", "fenced", "choice"],
)
def test_prompts_are_short(vocabulary: llama_cpp.Llama, dialect: Dialect, limit: int) -> None:
    tools = dialect.tools
    text = dialect.system(tools, "")
    assert len(vocabulary.tokenize(text.encode(), False, True)) <= limit


@pytest.mark.parametrize("form", ["tags", "json"])
def test_a_grammar_accepts_calls(accepts: Accepts, form: str) -> None:
    dialect = Native("tags" if form == "tags" else "json")
    grammar = dialect.grammar(dialect.tools, KNOWN)
    for call in CALLS:
        ordered = ToolCall(call.tool, call.arguments)
        if form == "json" and next(iter(call.arguments)) == "path":  # it has one order
            ordered = ToolCall(call.tool, {"command": "insert", **call.arguments})
        assert accepts(grammar, dialect.render(ordered)), call
    assert accepts(grammar, "\n".join(dialect.render(each) for each in CALLS[:2]))


@pytest.mark.parametrize("form", ["tags", "json"])
def test_a_grammar_accepts_calls_of_servers(accepts: Accepts, form: str) -> None:
    dialect = Native("tags" if form == "tags" else "json")
    grammar = dialect.grammar((*dialect.tools, *mcp.TOOLS), KNOWN)
    values: dict[str, Any] = {
        "a": [1, -2.5, {"b": None}],
        "c": 'x "y"\n',
        "d": {},
        "e": [],
        "f": True,
    }
    for arguments in (values, {}):
        call = ToolCall("mcp_call", {"name": "it__echo", "arguments": arguments})
        assert accepts(grammar, dialect.render(call))
        wrong = ToolCall("mcp_call", {"name": "it__echo", "arguments": [arguments]})
        assert not accepts(grammar, dialect.render(wrong))


@pytest.mark.parametrize("form", ["tags", "json"])
def test_a_grammar_rejects_what_is_no_call(accepts: Accepts, form: str) -> None:
    dialect = Native("tags" if form == "tags" else "json")
    grammar = dialect.grammar(dialect.tools, KNOWN)
    right = dialect.render(CALLS[0])
    for wrong in (
        dialect.render(ToolCall("run", {"command": "ls"})),
        dialect.render(ToolCall("bash", {"timeout_s": 3})),
        dialect.render(ToolCall("bash", {"command": "ls", "cwd": "x"})),
        dialect.render(ToolCall("bash", {"command": "ls", "timeout_s": "soon"})),
        f"I run it.\n{right}",
        f"{right}\nThat is all.",
        right[:-4],
    ):
        assert not accepts(grammar, wrong), wrong


def test_the_grammar_of_choices(accepts: Accepts) -> None:
    grammar = Choice().grammar(Choice.tools, KNOWN)
    for action in (
        *("read src/a.py", "read src/ab.py", "read src/a.py#load", 'read odd "name"\\.txt'),
        *("read größe.txt", "edit r1 : return a list", "edit r12 : x", "run lint"),
        *("find where dates are read", r"grep \bload\(", "done : it returns a list"),
    ):
        assert accepts(grammar, f"# why\n{action}\n"), action
    for wrong in (
        *("read src/b.py", "read src/a.py#save", "edit r2 : x", "run deploy", "read", "find "),
        *("rm -r src", "done", "edit r1", "read src/a.py x"),
    ):
        assert not accepts(grammar, f"# why\n{wrong}\n"), wrong
    assert not accepts(grammar, "read src/a.py\n")
    assert not accepts(Choice().grammar(Choice.tools, Known()), "# why\nread src/a.py\n")
    assert accepts(Choice().grammar(Choice.tools, Known()), "# why\nfind dates\n")


def test_the_grammar_of_choices_has_only_what_is_offered(accepts: Accepts) -> None:
    def allowed(**fields: bool) -> list[str]:
        grammar = Choice().grammar(Choice.tools, dataclasses.replace(KNOWN, **fields))  # type: ignore[arg-type]
        actions = ("read src/a.py", "find dates", "grep a", "edit r1 : x", "run lint", "done : x")
        return [each for each in actions if accepts(grammar, f"# why\n{each}\n")]

    assert allowed(may_look=False) == ["edit r1 : x", "run lint", "done : x"]
    assert allowed(may_search=False) == ["read src/a.py", "edit r1 : x", "run lint", "done : x"]
    assert allowed(may_end=False)[-1] == "run lint"
    assert len(allowed()) == 6
