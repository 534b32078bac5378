"""The conversation of an agent with the real 0.5B model on the local server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.agent.dialects.dialect import Dialect
from lcursor.agent.dialects.fenced import Fenced
from lcursor.agent.dialects.native import Native
from lcursor.agent.guided.choice import Choice
from lcursor.agent.model import TokenModel, open_model
from lcursor.catalog import store
from lcursor.config import ChatConfig
from lcursor.fim.engine import Engine
from lcursor.llm import llama_server
from lcursor.llm.pool import ModelPool

MODEL = "qwen2.5-coder-0.5b"
GRAMMAR = 'root ::= "<tool_call>\\n" [a-z]{1,9} "\\n</tool_call>"'
SAVE_S = 120.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    store.resolve(MODEL, "chat")
    monkeypatch.setattr(llama_server, "programs", list)  # of the machine's own
    runtime = tmp_path / "run"
    runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    return tmp_path / "server"


@pytest.fixture
def pool(folder: Path) -> Iterator[ModelPool]:
    made = ModelPool(ChatConfig(model=MODEL, context_tokens=2048), folder)
    yield made
    made.local_server().stop()
    made.close()


def converse(pool: ModelPool) -> TokenModel:
    found = open_model(pool, MODEL, "run", threading.Event())
    assert isinstance(found, TokenModel)
    return found


def test_only_new_tokens_are_evaluated(pool: ModelPool, folder: Path) -> None:
    model = converse(pool)
    model.begin("You help.", "Write five emojis and good morning in Chinese, nothing else.")
    shown: list[str] = []

    def listen(text: str) -> bool:
        shown.append(text)
        return True

    first = model.ask(listen, max_tokens=40)
    assert "".join(shown) == first.text
    assert not first.text.isascii()  # tokens of parts of characters
    known = len(model.ids)
    observation = "<|im_end|>\n<|im_start|>assistant\nsure 🌟"
    model.append(observation)
    second = model.ask(lambda _: True, max_tokens=8)
    assert known - 2 <= second.cached_tokens <= known
    assert second.prompt_tokens - known == model.count(observation) + len(
        [*model._frame.user, *model._frame.answer]
    )

    dropped = len(model.ids)
    model.drop_answer()
    forced = model.ask(lambda _: True, max_tokens=30, grammar=GRAMMAR, is_forced=True)
    assert forced.text.startswith("<tool_call>\n")
    assert forced.cached_tokens >= second.prompt_tokens - 1
    assert len(model.ids) != dropped
    model.drop_answer()
    free = model.ask(lambda _: True, max_tokens=8, grammar=GRAMMAR)
    assert free.text == second.text  # the grammar applies only to a call

    state = model.state()
    pool.slot_states.close(SAVE_S)
    pool.local_server().stop()
    other = ModelPool(pool.config, folder)
    try:
        again = converse(other)
        again.restore(state)
        again.append("more")
        third = again.ask(lambda _: True, max_tokens=2)
        assert third.cached_tokens >= len(state["ids"]) - 2
    finally:
        other.close()


@pytest.mark.parametrize(
    ("dialect", "limit"),
    [(Native("tags"), 900), (Native("json"), 900), (Fenced(), 600), (Choice(), 350)],
    ids=["tags", "json", "fenced", "choice"],
)
def test_system_texts_are_short(dialect: Dialect, limit: int, engine: Engine) -> None:
    tools = dialect.tools
    assert len(engine.model.tokenize(dialect.system(tools, ""))) <= limit
