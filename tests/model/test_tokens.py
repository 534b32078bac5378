"""The exact tokens of prompts for the Qwen tokenizer: a change here is a change of the product."""

from __future__ import annotations

import pytest

from lcursor.errors import ModelUnsuitable
from lcursor.fim import families
from lcursor.fim.engine import Engine
from lcursor.fim.prompt import Source, build

REPO, FILE, PRE, SUF, MID = 151663, 151664, 151659, 151661, 151660
NEWLINE = 198

CASES = {
    "both sides": (
        Source("def add(a, b):\n    return ", "\n\nprint(add(1, 2))\n", 0, "calc.py", "demo"),
        [REPO, 25762, NEWLINE, FILE, 26586, 7197, NEWLINE]
        + [PRE, 750, 912, 2877, 11, 293, 982, 262, 470, 220]
        + [SUF, 271, 1350, 25906, 7, 16, 11, 220, 17, 1171, MID],
    ),
    "empty file": (
        Source("", "", 0, "", ""),
        [REPO, 4987, NEWLINE, FILE, 3850, 15263, NEWLINE, PRE, SUF, MID],
    ),
    "markers in the text are text": (
        Source("x = '<|fim_middle|>", "'\n", 0, "a.py", "r"),
        [REPO, 81, NEWLINE, FILE, 64, 7197, NEWLINE]
        + [PRE, 87, 284, 3857, 91, 69, 318, 62580, 91, 29]
        + [SUF, 1248, MID],
    ),
    "not ASCII": (
        Source("名前 = '", "'  # 😀\n", 0, "n.py", "r"),
        [REPO, 81, NEWLINE, FILE, 77, 7197, NEWLINE]
        + [PRE, 13072, 24562, 284, 364]
        + [SUF, 6, 220, 671, 90316, 198, MID],
    ),
}


@pytest.mark.parametrize(("source", "wanted"), CASES.values(), ids=CASES.keys())
def test_prompt(engine: Engine, source: Source, wanted: list[int]) -> None:
    prompt = build(source, engine.family, engine.model.tokenize, prefix_tokens=64, suffix_tokens=64)
    assert list(prompt.tokens) == wanted
    text = b"".join(engine.model.piece(token) for token in prompt.tokens).decode()
    names = f"{source.repo or 'project'}\n{source.path or 'untitled'}\n"
    assert text == names + source.prefix + source.suffix


def test_bytes_that_are_no_utf8_are_read_as_unknown_characters(engine: Engine) -> None:
    text = b"caf\xe9 = 1\x00".decode("utf-8", "surrogateescape")
    pieces = b"".join(map(engine.model.piece, engine.model.tokenize(text)))
    assert pieces.decode() == "caf\ufffd = 1\x00"


def test_the_family_is_found_without_a_setting(engine: Engine) -> None:
    assert families.resolve("", engine.model.tokenize).family.name == "qwen2.5-coder"


@pytest.mark.parametrize("name", ["starcoder2", "codestral", "seed-coder", "deepseek-coder-v2"])
def test_another_family_is_rejected(engine: Engine, name: str) -> None:
    with pytest.raises(ModelUnsuitable, match="it has no token"):
        families.resolve(name, engine.model.tokenize)
