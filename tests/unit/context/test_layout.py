"""How items are written."""

from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from lcursor.context import layout
from lcursor.context.items import DROPPED, Item

A = Item("file:a.py:2-3", "file", "a.py:2-3", "/p/a.py", 1, "x = 1\ny = 2\n")
DIFF = Item("diff:a.py", "diff", "diff a.py", "/p/a.py", 0, "@@ -1 +1 @@\n-x\n+y\n")
RULES = Item("rules:AGENTS.md", "rules", "AGENTS.md", "/p/AGENTS.md", 0, "Be kind.\n")
PICKED = Item("selection:a.py:2", "selection", "a.py:2-2", "/p/a.py", 1, "x = 1")
GONE = Item(
    "file:.env", "file", ".env", note="its name says that it holds secrets", is_left_out=True
)


def test_a_file_stands_in_a_fence_with_its_language() -> None:
    assert layout.block(A) == "a.py:2-3:\n```python\nx = 1\ny = 2\n```"


def test_the_selection_comes_last_and_the_question_after_it() -> None:
    text = layout.message("Why?\n", [PICKED, A, DIFF, RULES])
    places = [text.index(part) for part in ("Rules of", "a.py:2-3:", "Diff a.py:", "Selection,")]
    assert places == sorted(places)
    assert text.endswith("```\n\nWhy?")


def test_the_order_of_items_does_not_depend_on_their_arrival() -> None:
    written = {
        layout.write(some) for some in itertools.permutations([PICKED, A, DIFF, RULES, GONE])
    }
    assert len(written) == 1


def test_missing_items_are_named_and_dropped_ones_are_not() -> None:
    dropped = Item("file:b", "file", "b", note=DROPPED, is_left_out=True)
    found = Item("codebase:c", "codebase", "c", note="token limit reached", is_left_out=True)
    text = layout.write([GONE, dropped, found])
    assert text == "Not attached: .env (its name says that it holds secrets)."


def test_without_items_the_prompt_is_empty() -> None:
    assert layout.write([]) == ""
    assert layout.message(" a ", []) == "a"


@given(st.text("`\n a~", max_size=60))
def test_no_text_ends_its_fence(text: str) -> None:
    rows = layout.block(Item("text:t", "text", "t", text=text)).split("\n")
    fence = rows[1]
    assert set(fence) == {"`"}
    closing = [row for row in rows[2:] if re.fullmatch(rf" {{0,3}}{fence}`*\s*", row)]
    assert closing == [fence]
    assert rows[-1] == fence
