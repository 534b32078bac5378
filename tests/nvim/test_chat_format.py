"""The pure functions of the chat: text of a stream, Markdown fences, counts, the winbar."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lcursor.drive.editor import Editor
from tests.nvim.talk import ITEM, message

Call = Callable[..., Any]
PROGRESS = {
    "id": 1,
    "phase": "reading",
    "detail": "",
    "done": 0,
    "total": 0,
    "cached": 0,
    "seconds_left": -1,
}
TURN = {"started_ms": 0, "bytes": 0, "is_stopping": False, "is_followed": False}


@pytest.fixture(scope="module")
def lua(neovim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """Call a function, as `text.numbers.short`, in one Neovim for all of this file."""
    with Editor(neovim, tmp_path_factory.mktemp("home"), init="vim.o.swapfile = false\n") as nvim:

        def call(name: str, *args: object) -> Any:
            module, _, function = name.rpartition(".")
            code = f"return {{ require('lcursor.{module}').{function}(...) }}"
            return nvim.lua(code, *args)

        yield call


@pytest.mark.parametrize(
    ("text", "ready", "held"),
    [
        ("abc", "abc", ""),
        ("abc\n", "abc", "\n"),
        ("abc\n\n", "abc", "\n\n"),
        ("a\r\nb\r", "a\nb", "\r"),
        ("\n", "", "\n"),
        ("a\nb", "a\nb", ""),
        ("日本", "日本", ""),
        ("", "", ""),
    ],
)
def test_what_may_be_written(lua: Call, text: str, ready: str, held: str) -> None:
    assert lua("chat.format.hold", text) == [ready, held]


@example(text="\r\r\n`", cuts=[])
@given(
    text=st.text(alphabet="ab \n\r`é日\U0001f600", max_size=40),
    cuts=st.lists(st.integers(0, 100), max_size=8),
)
@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_text_in_pieces_is_written_whole(lua: Call, text: str, cuts: list[int]) -> None:
    """However it is cut, all of it is written, and no write ends with a line end."""
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    written, held = "", ""
    for first, last in itertools.pairwise(edges):
        ready, held = lua("chat.format.hold", held + text[first:last])
        assert not ready.endswith(("\n", "\r"))
        written += ready
    assert written + held.replace("\r\n", "\n") == text.replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("lines", "fences"),
    [
        (["one", "", "  two"], []),
        (["```lua", "x", "", "y"], [(1, 4, "lua")]),
        (["```lua", "x", "```", "y"], [(1, 3, "lua")]),
        (["````", "```", "a", "", "b"], [(1, 5, "")]),
        (["~~~", "```", "~~~", "x"], [(1, 3, "")]),
        (["a", "", "```", "b", "", "c"], [(3, 6, "")]),
        (["- a", "", "    ```", "    c"], []),
        ([], []),
    ],
)
def test_fences(lua: Call, lines: list[str], fences: list[tuple[int, int, str]]) -> None:
    (found,) = lua("text.markdown.fences", lines)
    assert [(each["first"], each["last"], each["info"]) for each in found] == fences


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (999, "999"), (1000, "1k"), (1240, "1.2k"), (9949, "9.9k"), (9950, "10k")]
    + [(27000, "27k"), (999499, "999k"), (999500, "1M"), (1_500_000, "1.5M")],
)
def test_counts_are_short(lua: Call, count: int, text: str) -> None:
    assert lua("text.numbers.short", count) == [text]


def test_sizes_of_a_context(lua: Call) -> None:
    assert [lua("text.numbers.tokens", each)[0] for each in (32768, 40000, 512)] == [
        "32k",
        "40k",
        "512",
    ]


def test_what_went_in(lua: Call) -> None:
    system = {**ITEM, "kind": "system"}
    (lines,) = lua("chat.format.context", [system, {**ITEM, "is_exact": False, "first_row": 3}])
    assert lines == ["> context: 1 item, 120 tokens", "> - file a.py:4: about 120 tokens"]
    assert lua("chat.format.context", [system]) == [[]] or lua("chat.format.context", [system]) == [
        {}
    ]


@pytest.mark.parametrize(
    ("turn", "text"),
    [
        ({}, "waiting 3 s"),
        ({"progress": {**PROGRESS, "phase": "server"}}, "server: starting"),
        (
            {"progress": {**PROGRESS, "phase": "server", "detail": "loading qwen"}},
            "server: loading qwen",
        ),
        ({"progress": {**PROGRESS, "phase": "context"}}, "reading files"),
        ({"progress": {**PROGRESS, "phase": "queue"}}, "waiting for other requests"),
        (
            {"progress": {**PROGRESS, "done": 512, "total": 2048, "seconds_left": 3.2}},
            "reading 25% of 2k, 4 s left",
        ),
        (
            {"progress": {**PROGRESS, "done": 1, "total": 40000, "seconds_left": 200}},
            "reading 0% of 40k, 3 min left",
        ),
        (
            {"progress": {**PROGRESS, "phase": "summary", "done": 5, "total": 10}},
            "summarizing 50% of 10",
        ),
        ({"first_ms": 1000, "bytes": 720}, "writing, about 100 tokens/s"),
        ({"first_ms": 2900, "bytes": 4}, "writing"),
        ({"first_ms": 2900, "bytes": 4, "is_stopping": True}, "stopping"),
    ],
)
def test_what_a_turn_waits_for(lua: Call, turn: dict[str, Any], text: str) -> None:
    assert lua("chat.winbar.phase", {**TURN, **turn}, 3000) == [text]


def test_badges(lua: Call) -> None:
    assert lua("chat.format.heading_note", message(1, "x")) == [""]
    whole = message(1, "x", branch=2, branches=3, is_partial=True)
    assert lua("chat.format.heading_note", whole) == ["2 of 3, incomplete"]


@pytest.mark.parametrize(
    ("width", "title", "shown"),
    [
        (100, "a title of some length", ["qwen", "1k of 32k", "reading 25% of 2k, 4 s left"]),
        (50, "a title of so…", ["qwen", "reading 25% of 2k, 4 s left"]),
        (40, "", ["qwen", "reading 25% of 2k, 4 s left"]),
        (33, "", ["qwen", "reading 25%, 4 s left"]),
        (27, "a titl…", ["qwen", "reading 25%"]),
        (18, "", ["qwen", "reading 25%"]),
        (17, "", ["reading 25%"]),
        (10, "", ["reading…"]),
        (3, "", [""]),
    ],
)
def test_a_winbar_in_little_room(lua: Call, width: int, title: str, shown: list[str]) -> None:
    parts = [
        {"text": "qwen", "rank": 5},
        {"text": "1k of 32k", "rank": 4},
        {"text": "reading 25% of 2k, 4 s left", "rank": 9, "is_busy": True},
    ]
    said, left = lua("ui.winbar.fit", "a title of some length", parts, width)
    assert [part["text"] for part in left] == shown
    assert said == title


def test_one_is_one(lua: Call) -> None:
    one = {**ITEM, "tokens": 1, "is_exact": True}
    ((head, line),) = lua("chat.format.context", [one])
    assert "1 item, " in head
    assert line.endswith(": 1 token")
    assert lua("chat.format.fold", "> context", 2, 40) == ["▸ context (1 line)"]


@pytest.mark.parametrize(
    ("waited_ms", "model", "percent", "is_busy"),
    [
        (10_000, "qwen", 80, True), (9_999, "qwen", 80, False), (10_000, "qwen", 49.9, False),
        (10_000, "box", 80, False), (60_000, "qwen", None, False),
    ],
)  # fmt: skip
def test_a_long_wait_mentions_a_busy_processor(
    lua: Call, tmp_path: Path, waited_ms: int, model: str, percent: float | None, is_busy: bool
) -> None:
    path = tmp_path / "pressure"
    if percent is not None:
        path.write_text(f"some avg10={percent:.2f} avg60=99.00 avg300=99.00 total=1\n")
    lua("config.setup", {"models": {"box": {"url": "http://model.test:1"}}})
    words = lua("chat.winbar.why_slow", model, waited_ms, str(path))
    assert words == [", other programs use the processor" if is_busy else ""]
