"""A reply is applied to what its writer had read, and not to what only looks like it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcursor.context.items import Seen
from lcursor.edit import diff
from lcursor.edit.placing.reply import blocks
from lcursor.edit.placing.resolve import Ask, Refused, Resolved, resolve
from tests.unit.edit.test_resolve import Given, pair

PATH = "/p/a.py"
ALPHA = """\
def alpha(path):
    file = open(path)
    data = parse(file.read())
    file.close()
    return data
"""
BETA = ALPHA.replace("alpha", "beta")
QUOTED = "    data = parse(file.read())"
BETTER = "    data = parse(file.read(), strict=True)"
TYPED = "    data = parse_it(file.read(), 7)"
SWAP = pair(QUOTED, BETTER, "a.py")


def piece(text: str, row: int = 0, message: int = 1) -> Seen:
    """Return rows of the file as they were read."""
    return Seen(PATH, row, tuple(text.splitlines()), message)


def said(text: str, message: int = 2) -> Seen:
    return Seen("", 0, tuple(text.splitlines()), message)


def asked(reply: str, now: str, *read: Seen) -> Resolved | Ask | Refused:
    return resolve(
        blocks(reply, ""), Given({"a.py": now}), None, lambda path: read if path == PATH else ()
    )


def rows(found: Resolved | Ask | Refused) -> list[int]:
    """Return where something is changed without asking."""
    assert isinstance(found, Resolved), found
    return [change.first_row for file in found.files for change in file.changes]


def swapped(text: str, old: str = QUOTED, new: str = TYPED) -> str:
    return text.replace(old, new)


BOTH = f"{ALPHA}\n\n{BETA}"
CHANGED = f"{swapped(ALPHA)}\n\n{BETA}"
"""What was quoted of the one stands only in the other by now."""


@pytest.mark.parametrize(
    "read",
    [
        [piece(ALPHA)],
        [piece(ALPHA.rstrip("\n") + "\n")],
        [piece("".join(ALPHA.splitlines(keepends=True)[1:4]), row=1)],
        [piece(QUOTED, row=2)],
        [piece(BOTH)],
        [piece(ALPHA, message=3), piece(BETA, row=7, message=1)],
        [piece(ALPHA), piece(BETA, row=7)],
    ],
)
def test_a_twin_of_what_was_changed_since_is_asked_about(read: Sequence[Seen]) -> None:
    assert rows(asked(SWAP, CHANGED)) == [9]  # where nobody knows what was read
    found = asked(SWAP, CHANGED, *read)
    assert isinstance(found, Ask)
    assert [each.first_row for each in found.choices] == [9]
    assert "read" in found.text
    again = resolve(
        blocks(SWAP, ""), Given({"a.py": CHANGED}), found.chosen(0), lambda _: tuple(read)
    )
    assert rows(again) == [9]


@pytest.mark.parametrize(
    ("now", "read", "row"),
    [
        (ALPHA, [piece(ALPHA)], 2),
        (f"import os\n\n{ALPHA}", [piece(ALPHA)], 4),  # moved
        (f"{swapped(BETA)}\n\n{ALPHA}", [piece(ALPHA)], 9),
        # The function went on beside it, by hand or by the block before.
        (
            f"{ALPHA.replace('return data', 'return data or None')}\n\n{BETA[:20]}",
            [piece(ALPHA)],
            2,
        ),
        (f"{ALPHA.replace('open(path)', 'open(path, MODE)')}", [piece(ALPHA)], 2),
        # A twin had another text then, and the one that was read is as it was.
        (f"{swapped(BETA)}\n\n{ALPHA}", [piece(f"{swapped(BETA)}\n\n{ALPHA}")], 9),
        # What was read later counts.
        (f"import os\n{ALPHA}", [piece(f"import os\n{ALPHA}", message=3), piece(BETA)], 3),
        (QUOTED, [piece(QUOTED)], 0),
    ],
)
def test_what_was_read_is_changed_without_asking(now: str, read: list[Seen], row: int) -> None:
    assert rows(asked(SWAP, now, *read)) == [row]


def test_of_twins_the_one_that_was_read_is_meant() -> None:
    assert isinstance(asked(SWAP, BOTH), Ask)
    assert rows(asked(SWAP, BOTH, piece(BETA, row=7))) == [9]
    assert rows(asked(SWAP, f"import os\n{BOTH}", piece(ALPHA))) == [3]
    assert isinstance(asked(SWAP, BOTH, piece(BOTH)), Ask)  # both were
    assert isinstance(asked(SWAP, BOTH, piece(QUOTED, row=5)), Ask)  # nothing tells which


def test_what_the_model_wrote_itself_before_it_has_read() -> None:
    code = f"```python\n{swapped(ALPHA)}```"
    again = pair(TYPED, BETTER, "a.py")
    assert rows(asked(again, CHANGED, piece(ALPHA), said(code))) == [2]
    assert isinstance(asked(again, CHANGED, piece(ALPHA), said("Nothing of it.")), Ask)


def test_a_definition_that_was_changed_since_is_not_overwritten_unasked() -> None:
    reply = f"a.py\n```python\n{swapped(ALPHA, QUOTED, BETTER)}```\n"
    assert rows(asked(reply, BOTH, piece(ALPHA))) == [2]
    assert rows(asked(reply, f"import os\n{BOTH}", piece(BOTH))) == [3]
    found = asked(reply, CHANGED, piece(ALPHA))
    assert isinstance(found, Ask)
    assert rows(resolve(blocks(reply, ""), Given({"a.py": CHANGED}), found.chosen(0))) == [2]
    code = f"```python\n{swapped(ALPHA)}```"  # unless that is what was proposed before
    assert rows(asked(reply, CHANGED, piece(ALPHA), said(code))) == [2]


def test_a_whole_file_that_was_changed_since_is_not_overwritten_unasked() -> None:
    whole = f"a.py\n```python\n{swapped(BOTH, QUOTED, BETTER)}```\n"
    assert rows(asked(whole, BOTH, piece(BOTH))) == [2, 9]
    now = BOTH.replace("return data\n\n", "return data or 1\n\n")
    assert isinstance(asked(whole, now, piece(BOTH)), Ask)


def test_lines_that_stand_often_do_not_tell_a_place() -> None:
    many = "\n".join(f"def f{number}():\n    go()\n    return 1\n" for number in range(300))
    now = many.replace("def f150():\n    go()", "def f150():\n    come(150)")
    reply = pair("def f7():\n    go()", "def f7():\n    go(7)", "a.py")
    assert rows(asked(reply, now, piece(many))) == [29]
    some = "\n".join(many.splitlines()[600:603])
    only = now.replace("    go()", "    stay()").replace(
        "def f3():\n    stay()", "def f3():\n    go()"
    )
    found = asked(pair("    go()", "    leave()", "a.py"), only, piece(some, row=600))
    assert isinstance(found, Ask)


SOME = st.lists(st.sampled_from(["a = 1", "b = 2", "", "    go(x)", "c = 3", "}"]), max_size=6)
SPOT = ["b = 2", "    go(x)"]


def test_what_was_read_makes_nothing_else_of_a_reply() -> None:
    """It only decides whether one asks, and which of several is meant: never what is written."""
    reply = pair("b = 2\n    go(x)", "b = 3\n    go(y)", "a.py")
    count = Counter[tuple[str, str]]()

    @settings(max_examples=400, deadline=None)
    @given(SOME, SOME, st.booleans(), st.integers(0, 12), st.integers(1, 12))
    def check(above: list[str], below: list[str], is_twice: bool, row: int, size: int) -> None:
        now = [*above, *SPOT, *below, *(SPOT if is_twice else ())]
        text = "\n".join(now) + "\n"
        plain = asked(reply, text)
        found = asked(reply, text, Seen(PATH, row, tuple(now[row : row + size]), 1))
        count[type(plain).__name__, type(found).__name__] += 1
        if isinstance(plain, Resolved):
            assert isinstance(found, Ask) or found == plain
        elif isinstance(plain, Ask) and isinstance(found, Resolved):
            (file,) = found.files
            made = diff.apply(tuple(text.splitlines()), file.changes)
            several = [each for each in plain.choices if each.new is not None]
            assert made in {
                (*now[: one.first_row], *(one.new or ()), *now[one.last_row :]) for one in several
            }

    check()
    assert count["Resolved", "Resolved"] >= 50
    assert count["Ask", "Resolved"] >= 10
    assert count["Ask", "Ask"] >= 10
