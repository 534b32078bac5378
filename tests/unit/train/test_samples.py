"""Where the target of a training sample ends, and where samples are cut."""

from __future__ import annotations

import random

import pytest

from evals.keys.insertions import Insertion
from train.samples import cuts, has_secret, target

BODY = """if a:
    b = 1
    c = 2
d = 3"""
CALL = """call(
    a,
    b,
)
d = 3"""


@pytest.mark.parametrize(
    ("text", "at", "indent", "wanted"),
    [
        (BODY, 0, "", "if a:\n    b = 1\n    c = 2"),  # the block that the line opens
        (BODY, 3, "", "a:\n    b = 1\n    c = 2"),
        (BODY, BODY.index("b ="), "", "b = 1"),
        (BODY, BODY.index("= 2"), "", "= 2"),
        (CALL, 2, "", "ll(\n    a,\n    b,\n)"),
        ("\n    return a\n\n    return b", 0, "", "\n    return a\n\n    return b"),  # a body
        ("\n        x\n    y", 0, "    ", "\n        x"),
        ("a(\n        b\n    )\n    c", 0, "    ", "a(\n        b\n    )"),
        ("a\n    b", 0, "    ", "a"),
    ],
)
def test_a_target_is_the_line_and_the_block_that_it_opens(
    text: str, at: int, indent: str, wanted: str
) -> None:
    assert target(text, at, indent) == wanted


def test_cuts_are_in_the_text_and_have_something_to_complete() -> None:
    own = Insertion("c", "a.py", "python", "def f():\n    ", "if a:\n        return b + 1\n", "\n")
    found = [each for seed in range(40) for each in cuts(own, random.Random(seed))]
    assert {at for at, _ in found} >= {0, own.text.index("return")}
    assert all(own.text[at:].startswith(wanted.rstrip()) for at, wanted in found)
    assert all(len(wanted.strip()) >= 3 for _, wanted in found)


def test_a_text_near_a_secret_is_left_out() -> None:
    key = "ghp_" + "a1B2c3D4e5" * 4
    assert has_secret(Insertion("c", "a.py", "python", f'TOKEN = "{key[:40]}"\n', "x = 1", "\n"))
    assert has_secret(Insertion("c", ".env", "python", "", "x = 1", "\n"))
    assert not has_secret(Insertion("c", "a.py", "python", "def f():\n    ", "x = 1", "\n"))
