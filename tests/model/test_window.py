"""Short and full windows with the real model: what is read when, and what is kept."""

from __future__ import annotations

import contextlib

import pytest

from lcursor.errors import Cancelled
from lcursor.fim.context_ring import ContextRing
from lcursor.fim.engine import Engine
from lcursor.fim.prompt import Source
from lcursor.fim.result import Result

AFTER = "\n\n\nprint(add(2, 3))\n"


def test_a_request_that_is_stopped_leaves_what_it_has_read(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that comes while a window is read never has it read again."""
    source = Source("".join(f"late_{n} = {n}\n" for n in range(60)) + "late_", AFTER, 0, "b.py")
    decode, batches = engine._context.decode, list[int]()

    def key(tokens: list[int], *where: int) -> None:
        engine.abort.set()  # while the batch is decoded
        decode(tokens, *where)
        batches.append(len(tokens))

    monkeypatch.setattr(engine._context, "decode", key)
    monkeypatch.setattr(engine.reader, "window", "full")
    wanted = engine.reader.lay_out(source, single_line=False).prompt
    turns = 0
    while engine._slots.cost(wanted) and turns < 20:
        engine.abort.clear()
        turns += 1
        with contextlib.suppress(Cancelled):
            engine.complete(source, lambda text: None)
    engine.abort.clear()
    assert 1 < turns < 20
    assert sum(batches) <= len(wanted.tokens) + 4  # and a guess


LONG = "import os\n\n\nclass Shop:\n" + "".join(
    f"    def price_{n}(self):\n        return {n} * self.rate\n\n" for n in range(26)
)


def test_a_word_is_not_repeated_when_the_vocabulary_comes_after_the_request(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The better answer is healed, though the first one could not be."""
    improved: list[Result] = []
    monkeypatch.setattr(engine, "on_improved", improved.append)
    monkeypatch.setattr(engine, "ring", ContextRing())
    vocabulary = engine.reader.vocabulary
    monkeypatch.setattr(engine.reader, "vocabulary", None)
    before = LONG.replace("price", "weight") + "    def weight_26(self):\n        "
    first = engine.complete(Source(before + "return", "\n", 0, "late.py"), lambda text: None)
    assert first.window == "short"
    engine.reader.vocabulary = vocabulary
    while engine.idle():
        pass
    assert improved[-1].text.startswith(" 26 * self.rate")


def test_typing_while_the_full_window_is_read_uses_the_short_one(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = LONG.replace("price", "cost") + "    def cost_26(self):\n        "
    engine.complete(Source(before, "\n", 0, "cost.py"), lambda text: None)
    decode, left = engine._context.decode, [2]

    def stop(tokens: list[int], *where: int) -> None:
        decode(tokens, *where)
        left[0] -= 1
        if not left[0]:
            engine.abort.set()

    for number in range(1, 5):  # each pause reads a few slices and is ended by a key
        left[0] = 2
        monkeypatch.setattr(engine._context, "decode", stop)
        with pytest.raises(Cancelled):
            engine.idle()
        monkeypatch.setattr(engine._context, "decode", decode)
        engine.abort.clear()
        typed = "return self"[:number]
        result = engine.complete(
            Source(before + typed, "\n", 0, "cost.py"), lambda text: None, bypass_cache=True
        )
        assert result.read_tokens <= 4
    while engine.idle():
        pass
    source = Source(before + "retu", "\n", 0, "cost.py")
    assert engine.complete(source, lambda text: None, bypass_cache=True).window == "full"


def test_a_jump_within_a_file_uses_the_text_after_the_new_position(engine: Engine) -> None:
    definitions = [f"def area_{n}(w, h):\n    return w * h * {n}\n" for n in range(300)]

    def source(n: int) -> Source:
        return Source(
            "".join(definitions[:n]) + f"def area_{n}(w, h):\n    return ",
            "\n" + "".join(definitions[n + 1 :]),
            path="areas.py",
        )

    def below() -> bytes:
        text = b"".join(piece for _, piece, _ in engine.last_prompt())
        return text.rpartition(b"<suf>")[2]

    for number in (200, 100, 102):  # to text that the window before the cursor has or has not
        result = engine.complete(source(number), lambda text: None)
        assert result.window == "short"
        assert b"area_%d(" % (number + 1) in below()
    before = source(102)
    typed = Source(before.prefix + "w * ", before.suffix, path="areas.py")
    assert engine.complete(typed, lambda text: None, bypass_cache=True).read_tokens <= 6
