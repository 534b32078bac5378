"""Next edits by a real model: the 0.5B in the place of a trained one, with a server of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lcursor.catalog import store
from lcursor.config import ChatConfig
from lcursor.config_table import from_table
from lcursor.host import next_edit_model
from lcursor.host.next_edits import NextEdits
from lcursor.http.client import Client
from lcursor.llm.server import LocalServer
from lcursor.llm.server_state import default_folder
from lcursor.next_edit import families
from lcursor.protocol.next_edit import NextEditPredict
from tests.waiting import WAIT_S, wait_for

LINES = ["width = 3", "height = 4", "area = width * height", "print(area)"]
FILE_SEP = 151664
"""`<|file_sep|>` in the vocabulary of Qwen2.5-Coder."""


def test_a_window_is_asked_and_the_answer_is_read(
    tmp_path: Path, model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LCURSOR_MODELS", str(store.models_dir()))
    monkeypatch.setenv("LCURSOR_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(next_edit_model, "MAX_S", WAIT_S)
    seen: list[tuple[Any, str | None]] = []
    ask = next_edit_model._written

    def written(connection: Any, prompt: Any, max_tokens: int) -> str | None:
        seen.append((prompt, ask(connection, prompt, max_tokens)))
        return seen[-1][1]

    monkeypatch.setattr(next_edit_model, "_written", written)
    model = tmp_path / "sweep-untrained.gguf"
    model.symlink_to(model_path)
    messages: list[tuple[str, Mapping[str, Any]]] = []
    service = NextEdits(lambda method, params: messages.append((method, params)))
    service.configure(from_table({"next_edit": {"model": str(model)}}))
    path = str(tmp_path / "a.txt")
    edit = {"path": path, "row": 0, "old": ["w = 3"], "new": LINES[:1], "is_accepted": False}
    request = {
        "id": 1,
        "files": [{"path": path, "text": "\n".join(LINES)}],
        "edits": [edit],
        "row": 0,
        "column": 5,
        "is_wide": False,
    }
    folder = default_folder()
    server = LocalServer(ChatConfig(), folder.with_name(f"{folder.name}-next-edit"), lambda _: None)
    try:
        service.predict(NextEditPredict(**request))  # type: ignore[typeddict-item]
        wait_for(lambda: seen or _errors(messages), WAIT_S)
        assert not _errors(messages)
        ((prompt, text),) = seen
        client = Client(server.status().url, "", "next_edit")
        body = {"content": prompt.text, "add_special": False, "parse_special": True}
        tokens = json.loads(b"\n".join(client.request("/tokenize", body)))["tokens"]
        client.close()
        assert tokens.count(FILE_SEP) == prompt.text.count("<|file_sep|>") == 3
        assert text is not None
        new = families.FAMILIES["sweep"].parse(text, tuple(LINES))
        assert new is not None
        assert new[0] == LINES[0]  # it begins with the window
    finally:
        service.close()
        server.stop()
        server.close()


def _errors(messages: list[tuple[str, Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    return [params for method, params in messages if method == "error"]
