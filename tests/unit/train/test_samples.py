"""Where the target of a training sample ends, and where samples are cut."""

from __future__ import annotations

import random

import pytest

from evals.keys.insertions import Insertion
from train.samples import cuts, has_secret, target

TEXT = """if a:
    b = 1
    c = 2

d = 3
"""


@pytest.mark.parametrize(
    ("text", "at", "wanted"),
    [
        (TEXT, 0, "if a:\n    b = 1\n    c = 2"),
        (TEXT, 3, "a:\n    b = 1\n    c = 2"),
        (TEXT, TEXT.index("= 2"), "= 2"),
        (TEXT, TEXT.index("d"), "d = 3"),
        ("\n    return a\n    \n    return b", 0, "\n    return a"),
        ("\n\n    return a", 0, "\n\n    return a"),
        ("a  \n", 0, "a"),
    ],
)
def test_a_target_is_the_rest_of_a_paragraph(text: str, at: int, wanted: str) -> None:
    assert target(text, at) == wanted


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
