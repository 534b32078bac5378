"""The shadow of the KV cache against a slow reference."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lcursor.fim.cells import Cells

tokens = st.lists(st.integers(0, 3), min_size=1, max_size=12)


@given(st.lists(tokens, min_size=1, max_size=8))
def test_reading_prompts_one_after_another_keeps_exactly_the_common_start(
    prompts: list[list[int]],
) -> None:
    cells, reference = Cells(), list[int]()
    for prompt in prompts:
        kept = cells.common(prompt)
        assert kept < len(prompt)
        assert reference[:kept] == prompt[:kept]
        rest = reference[kept : kept + 1]
        assert kept == len(prompt) - 1 or rest != prompt[kept : kept + 1]
        cells.cut(kept)
        cells.add(prompt[kept:])
        reference = list(prompt)
        assert len(cells) == len(reference)


def test_an_abort_cuts_the_shadow() -> None:
    cells = Cells()
    cells.add([1, 2, 3, 4])
    cells.cut(2)
    assert len(cells) == 2
    assert cells.common([1, 2, 3]) == 2
