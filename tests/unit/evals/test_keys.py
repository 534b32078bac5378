"""What `eval keys` types, how it counts, and that a recorded context changes no answer."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evals.keys import insertions, lines, report, typist
from evals.keys.completing import Completing, SimulatedEngine
from evals.keys.insertions import Insertion
from evals.keys.recorded import Clock, Record, Speed, pack, unpack
from evals.keys.typist import Choice, Typed, Typist, View
from lcursor.config import CompletionConfig
from lcursor.fim import llama
from lcursor.fim.engine import Engine
from lcursor.fim.prompt import Source
from tests.fakes.llama import engines

SPEED = Speed(0.03, 0.005)
CODE = "def area(w, h):\n    product = w * h\n    return product\n"


@pytest.mark.parametrize(
    ("before", "is_middle", "kind"),
    [
        ("def f(a):\n    ", False, "body"),
        ("def f(\n    a,\n    b,\n):\n    ", False, "body"),
        ("func (c *Command) Run(a string) error {\n\t", False, "body"),
        ("local function f(a)\n  ", False, "body"),
        ("pub fn f(a: u8) -> u8 {\n    ", False, "body"),
        ("const f = (a) => {\n\t", False, "body"),
        ("def f(): return 1\n", False, "top"),
        ("if a:\n    ", False, "block"),
        ("for i := range a {\n\t", False, "block"),
        ("def f():\n    a = 1\n    ", False, "line"),
        ("import os\n", False, "top"),
        ("a = f(", True, "middle"),
    ],
)
def test_the_kind_of_a_line(before: str, is_middle: bool, kind: str) -> None:
    assert insertions.kind(before, is_middle) == kind


def commit(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).write_text(text)
    for words in (["add", "."], ["commit", "-q", "-m", "Change"]):
        command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e@x", *words]
        subprocess.run(command, check=True, capture_output=True)


def test_texts_come_from_what_commits_add(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    commit(tmp_path, {"a.py": CODE, "b.py": "x = f(1)\n", "c.txt": "a\n"})
    added = "\n\ndef volume(a, b, c):\n    return area(a, b) * c\n"
    moved = {"a.py": CODE + added, "b.py": 'x = f(1, name="volume")\n', "c.txt": "a\nb and more\n"}
    commit(tmp_path, moved)
    found = {each.path: each for each in insertions.load(tmp_path, 10, 1)}
    assert set(found) == {"a.py", "b.py"}
    assert found["a.py"].text == "def volume(a, b, c):\n    return area(a, b) * c"
    assert found["a.py"].before == CODE + "\n\n"
    one = found["b.py"]
    assert (one.before, one.text, one.after) == ("x = f(1", ', name="volume"', ")")
    assert one.is_middle


@pytest.mark.parametrize(
    ("suggestion", "truth", "chosen"),
    [
        ("return a + b", "return a + b", (12, ("line",), 0)),
        ("return a", "return a + b", (8, ("line",), 0)),
        ("return a - b", "return a + b", (8, ("word", "word"), 0)),
        ("return abc", "return a + b", (6, ("word",), 0)),  # to delete 3 would cost more
        ("a = 1\nb = 2\nc = 3", "a = 1\nb = 2\nd = 4", (11, ("line", "line"), 0)),
        ("long_name_x", "long_name_y", (11, ("all",), 1)),
        ("x", "x", (0, (), 0)),  # a key for a key
        ("nothing", "anything", (0, (), 0)),
    ],
)
def test_the_best_use_of_a_suggestion(
    suggestion: str, truth: str, chosen: tuple[int, tuple[str, ...], int]
) -> None:
    assert typist.choose(suggestion, truth) == chosen


class Scripted:
    """A completer that shows a text at some positions, at once."""

    def __init__(self, clock: Clock, shown: dict[int, str]) -> None:
        self.clock, self.shown = clock, shown
        self.at = -1
        self.since_s = 0.0

    def begin(self, insertion: Insertion) -> None: ...

    def end(self) -> None: ...

    def changed(self, at: int) -> None:
        self.at, self.since_s = at, self.clock.now_s

    def accepted(self, at: int, choice: Choice) -> None:
        self.changed(at)

    def work(self) -> None:
        self.clock.advance(max(self.clock.next_s - self.clock.now_s, 0.0))

    def view(self) -> View | None:
        text = self.shown.get(self.at)
        return View(self.at, text, self.since_s, "end") if text else None


def typed(text: str, shown: dict[int, str]) -> Typed:
    clock = Clock()
    insertion = Insertion("c", "a.py", "python", "def f(a):\n    ", text, "\n")
    return Typist(clock, Scripted(clock, shown)).type(insertion)


def test_typed_and_saved_keys_are_counted() -> None:
    found = report.figures([typed("b = 1\n    return b", {})])
    assert (found.keys, found.saved, found.shown, found.lines) == (14, 0.0, 0, 2)
    found = report.figures([typed("b = 1\n    return b", {0: "b = 1\n    return b"})])
    assert (found.keys, found.saved) == (14, 13 / 14)
    assert (found.shown, found.full, found.wrong, found.several) == (1, 1.0, 0.0, 1.0)
    assert found.read == 11 / 14
    found = report.figures([typed("b = 1\n    return b", {0: "c = 2", 5: "\n    return a"})])
    assert (found.shown, found.part, found.wrong) == (2, 0.5, 100 / 8)
    assert found.saved == 6 / 14  # the line break and `return`, by two words


def test_a_suggestion_just_before_a_key_is_not_seen() -> None:
    class Late(Scripted):
        def view(self) -> View | None:
            view = super().view()
            return view and view._replace(since_s=self.clock.now_s - typist.LOOK_S / 2)

    clock = Clock()
    insertion = Insertion("c", "a.py", "python", "", "b = 1 + 2", "\n")
    assert report.figures([Typist(clock, Late(clock, {0: "b = 1 + 2"})).type(insertion)]).shown == 0


def test_an_event_may_stop_what_takes_time() -> None:
    clock, seen = Clock(), list[float]()

    def act() -> None:
        seen.append(clock.now_s)
        clock.next_s = clock.now_s + 1 if len(seen) < 3 else math.inf

    clock.next_s, clock.on_event = 1.0, act
    assert clock.advance(2.5)
    assert seen == [1.0, 2.0]
    assert not clock.advance(9.0, lambda: len(seen) == 3)
    assert clock.now_s == 3.0


def test_recorded_logits_have_the_same_likely_tokens() -> None:
    logits = np.random.default_rng(1).normal(0, 3, 5000).astype(np.float32)
    logits[[7, 9]] = 15.0, 14.0
    found = unpack(pack(logits), len(logits))
    shares = [
        np.exp(each - each.max()) / np.exp(each - each.max()).sum() for each in (logits, found)
    ]
    assert list(np.argsort(-found)[:5]) == list(np.argsort(-logits)[:5])
    assert abs(shares[0][7] - shares[1][7]) < 0.002


def texts() -> list[Source]:
    """A file that is typed, one with a change in the middle, and the first one again."""
    first = [Source(CODE[:end], "\n# end\n", 0, "a.py", "p") for end in range(10, 40, 3)]
    other = [Source(CODE * 20 + CODE[:end], CODE, 0, "b.py", "p") for end in (5, 18, 22, 21)]
    return [*first, *other, *first[-2:], first[0]]


@pytest.mark.parametrize("room", [10_000, 1_200])
def test_a_recorded_context_changes_no_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, room: int
) -> None:
    known = {"w, ": ["h):\n    product = w * h"], "product ": ["= w * h\n    return product"]}
    config = CompletionConfig(
        min_confidence=0.3,
        save_cache=False,
        context_tokens=room,
        prefix_tokens=400,
        budget_ms=60_000,
    )

    def answers(engine: Engine) -> list[str]:
        found = []
        for source in texts():
            found.append(engine.complete(source, lambda text: None).text)
            while engine.idle():
                pass
        return found

    with engines(monkeypatch, tmp_path, known) as start:
        plain = answers(start(config))
        assert any(plain)
        opened = list[object]()

        def count(model: object, size: llama.ContextSize) -> object:
            opened.append(size)
            return real(model, size)

        real: Callable[..., object] = llama.Context
        monkeypatch.setattr(llama, "Context", count)
        record = Record(tmp_path / "record.db")
        for times in (1, 1):  # the second run evaluates nothing
            path, clock = tmp_path / "model.gguf", Clock()
            engine = SimulatedEngine(path, "qwen2.5-coder", config, clock, SPEED, record)
            while engine._vocabulary.is_alive():
                engine._vocabulary.join()
            assert answers(engine) == plain
            assert clock.now_s > 1
            engine.close()
            assert len(opened) == times


def test_a_text_is_typed_with_the_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = "w * h\n    return product"
    insertion = Insertion("c", "a.py", "python", CODE[: CODE.index("w *")], text, "\n")
    config = CompletionConfig(min_confidence=0.3, save_cache=False, budget_ms=60_000)
    with engines(monkeypatch, tmp_path, {"product = ": [text]}):
        clock, record = Clock(), Record(tmp_path / "record.db")
        engine = SimulatedEngine(
            tmp_path / "model.gguf", "qwen2.5-coder", config, clock, SPEED, record
        )
        while engine.idle():
            pass
        ours = Typist(clock, Completing(engine, clock, "p")).type(insertion)
        figures = report.figures([ours])
        assert figures.keys == 20
        assert figures.saved > 0.7, ours
        assert ours.shown[0].truth == text
        engine.close()


TEXT = Insertion("c", "a.py", "python", "def f():\n    ", "if a:\n        return b + 1", "\n")


def test_positions_in_texts_are_where_something_is_left_to_type() -> None:
    found = [cut for seed in range(40) for _, cut in lines.cuts([("r", TEXT)] * 3, seed)]
    by = {name: {cut.at for cut in found if cut.position == name} for name in lines.POSITIONS}
    assert by["start"] == {0, TEXT.text.index("return")}
    assert by["word"] <= {2, 20, 22, 24} | {4, 5}
    assert all(len(TEXT.text[cut.at :].split("\n")[0].strip()) >= 3 for cut in found)
    assert {cut.window for cut in found} == {"short", "full"}


def test_a_body_is_completed_at_its_first_line() -> None:
    body = Insertion("c", "a.py", "python", "def f(a):", "\n    return a", "\n")
    ((number, cut),) = lines.cuts([("r", body)], 1, bodies=True)
    assert (number, cut.position, body.text[cut.at :]) == (0, "body", "return a")


@pytest.mark.parametrize(
    ("text", "saved"),
    [("return b + 1", 11), ("return b", 7), ("return c", 5), ("x", 0), ("", 0)],
)
def test_the_keys_that_a_suggestion_saves(text: str, saved: int) -> None:
    assert lines.gain(text, "return b + 1") == saved


@pytest.mark.parametrize(
    ("won", "lost", "chance"), [(0, 0, 1), (5, 5, 1), (6, 0, 0.03125), (900, 900, 1)]
)
def test_the_sign_test(won: int, lost: int, chance: float) -> None:
    assert lines.sign_test(won, lost) == chance


def test_an_answer_is_compared_to_the_one_of_another_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = CompletionConfig(save_cache=False, budget_ms=60_000)
    cut = lines.Cut("r", TEXT, "word", TEXT.text.index(" b"), "full")
    with engines(monkeypatch, tmp_path, {"return": [" b + 1"]}) as start:
        engine = start(config)
        base = lines.answer(engine, "base", 0, cut, [0.0, 0.2])
        engine.close()
    assert (base.text, base.truth, base.is_exact) == (" b + 1", " b + 1", True)
    assert (base.gains, base.shown, base.similarity) == ([5, 5], [True, True], 1.0)
    right = replace(base, model="tuned", gains=[9, 9])
    wrong = replace(base, is_exact=False, gains=[3, 3])
    document = lines.as_dict(["base", "tuned"], [wrong, right], [0.0, 0.2], {})
    tuned = document["groups"]["all"][1]
    assert (tuned["won"], tuned["lost"], tuned["gains"]) == (1, 0, [9, 9])
    assert tuned["gain_ratios"][0] == (3.0, 3.0, 3.0)
    table = lines.as_markdown(
        document | {"repositories": "r", "seed": 1, "machine": {}, "command": "x"}
    )
    assert any("| tuned | 1 |" in line and "3.00 × (3.00 to 3.00)" in line for line in table)
