"""Single lines written again by a model, after no rewrite of the region passed the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lcursor.agent.guided.infill import SAMPLES, notes
from lcursor.agent.guided.rewrite import SAME, RegionRewriter
from lcursor.changes.records import Check
from lcursor.config import ChatConfig, EditConfig, ModelConfig
from lcursor.llm.pool import ModelPool
from lcursor.llm.records import Usage
from lcursor.stop import Stop
from tests.fakes.chat_server import Answer, ChatServer, say
from tests.fakes.loopback import Handler, sse

LINES = ["import os", "", "def one():", "    # the first", "    two = 2", "    return two", "one()"]
OLD = "```python\n" + "\n".join(LINES[2:6]) + "\n```"
MODEL = "qwen2.5-coder-1.5b"
MARKERS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
Lines = Sequence[str]


class InfillServer(ChatServer):
    """A server whose model copies what it sees, and writes other texts where it sees a gap.

    Args:
        texts: of the gaps, in order; the last one for all further.
    """

    def __init__(
        self, texts: Sequence[str], markers: Sequence[str] = MARKERS, model: str = MODEL
    ) -> None:
        super().__init__([say(OLD)], model=model)
        self._texts, self._markers = texts, markers
        self.gaps: list[tuple[str, str]] = []
        """Text before and after each gap."""
        self.requests: list[dict[str, Any]] = []

    def answer(self, ask: Handler, body: dict[str, Any]) -> None:
        """Answer a completion; all else as usual."""
        if ask.path == "/completion":
            self.requests.append(body)
            letters = "".join(map(chr, body["prompt"]))
            before, _, rest = letters.removeprefix("\0").partition("\1")
            self.gaps.append((before, rest.removesuffix("\2")))
            text = self._texts[min(len(self.gaps), len(self._texts)) - 1]
            rows = [{"content": text, "tokens": [7], "stop": False},
                    {"content": "", "tokens": [], "stop": True, "stop_type": "word"}]  # fmt: skip
            self._follow(ask, Answer([sse(row) for row in rows]))
        else:
            super().answer(ask, body)

    def _llama(self, bare: str, path: str, body: dict[str, Any]) -> tuple[int, object]:
        if bare != "/tokenize":
            return super()._llama(bare, path, body)
        content = str(body["content"])
        if body["parse_special"] and content in self._markers:
            return 200, {"tokens": [MARKERS.index(content)]}
        return 200, {"tokens": [ord(letter) for letter in content]}


class Place:
    """A rewriter of the function in `LINES`, its server and the tokens that it reported."""

    def __init__(self, folder: Path, server: InfillServer, stack: ExitStack) -> None:
        self.server = stack.enter_context(server)
        model = ModelConfig(name="server", url=server.url)
        self._pool = ModelPool(ChatConfig(model="server", models=(model,), server="off"))
        stack.callback(self._pool.close)
        self._folder = folder
        self.usages: list[Usage] = []

    def rewrite(
        self, test: Callable[[Lines], Check], task: str = "Fix one().", temperature: float = 0.0
    ) -> Lines | str:
        """Rewrite the function."""
        rewriter = RegionRewriter(
            self._pool,
            "server",
            EditConfig(),
            self._folder,
            task,
            Stop(),
            self.usages.append,
            temperature=temperature,
        )
        return rewriter("a.py", LINES, 2, 6, "return one", "", test)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    with ExitStack() as stack:
        yield lambda *texts, **more: Place(tmp_path, InfillServer(texts, **more), stack)


def passes_with(*lines: str) -> Callable[[Lines], Check]:
    """Return a test that passes if the text has one of some lines."""

    def test(found: Lines) -> Check:
        is_ok = any(line in found for line in lines)
        output = "=====\nFAIL: one\nTraceback (most recent call last):\nAssertionError: 2 != 1\n"
        return Check("test", is_ok, "" if is_ok else output)

    return test


def test_lines_are_written_again_until_the_tests_pass(place: Callable[..., Place]) -> None:
    it = place("two = 3", "two = 3", "two = 2", "(", "return 1", "return 0")
    assert it.rewrite(passes_with("    return 1")) == (*LINES[2:5], "    return 1")
    before = "# FAIL: one\n# AssertionError: 2 != 1\nimport os\n\ndef one():\n    # the first\n    "
    assert it.server.gaps == [
        *[(before, "\n    return two\none()")] * SAMPLES,
        (f"{before}two = 2\n    ", "\none()"),
    ]
    asked = [(each["temperature"], each.get("seed")) for each in it.server.requests]
    assert asked == [(0.0, 0), (1.0, 1), (1.0, 2), (1.0, 3), (0.0, 0)]
    assert len(it.usages) == 1 + len(it.server.requests)


def test_another_attempt_writes_other_lines(place: Callable[..., Place]) -> None:
    it = place("return 1")
    it.rewrite(passes_with("    return 1"), temperature=0.7)
    assert [(each["temperature"], "seed" in each) for each in it.server.requests] == [(1.0, False)]


def test_a_line_that_does_not_parse_or_is_no_better_is_left_out(
    place: Callable[..., Place],
) -> None:
    it = place("return (", "two = 3")
    assert it.rewrite(passes_with("    return (")) == SAME
    assert len(it.server.requests) == 2 * SAMPLES


@pytest.mark.parametrize("task", ["Fix one().", "Write a new one()."])
def test_only_failing_tests_that_the_task_is_about_need_it(
    task: str, place: Callable[..., Place]
) -> None:
    it = place("return 1")
    passed = Check("test", True)
    test = passes_with("    return 1") if task != "Fix one()." else lambda _: passed
    assert it.rewrite(test, task) == SAME
    assert not it.server.requests


@pytest.mark.parametrize("other", [{"markers": MARKERS[:1]}, {"model": "other"}])
def test_a_model_that_fills_no_gaps_writes_no_single_lines(
    other: dict[str, Any], place: Callable[..., Place]
) -> None:
    it = place("return 1", **other)
    assert it.rewrite(passes_with("    return 1")) == SAME
    assert not it.server.requests


@pytest.mark.parametrize(("language", "sign"), [("python", "#"), ("lua", "--"), ("rust", "//")])
def test_notes_are_comments(language: str, sign: str) -> None:
    failed = Check("test", False, "x\nRan 2 tests\n-----\n\nFAILED (1)\nat a.py")
    assert notes([failed, Check("test", True, "ok")], language) == [f"{sign} x", f"{sign} at a.py"]
