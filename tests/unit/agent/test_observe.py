"""Observations are within the token limit, and each omission is stated."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.agent import observe
from lcursor.agent.observe import Outputs, TokenLimit
from lcursor.workspace import outputs

COUNTS: list[Callable[[str], int]] = [
    lambda text: len(text.encode("utf-8", "replace")),
    lambda text: len(text) // 3 + 1,
    lambda text: len(re.findall(r"\w+|\s+|[^\w\s]", text)),
]


@pytest.mark.parametrize(("context", "limit"), [(2048, 400), (32_768, 2048), (1 << 20, 4000)])
def test_the_limit_of_a_context(context: int, limit: int) -> None:
    assert observe.limit_tokens(context) == limit


@given(
    st.lists(st.text(max_size=200) | st.just("x" * 3000), max_size=60),
    st.sampled_from(COUNTS),
    st.integers(400, 900),
)
def test_an_output_fits_and_states_what_is_left_out(
    texts: list[str], count: Callable[[str], int], tokens: int
) -> None:
    lines = outputs.lines_of("\n".join(texts).encode("utf-8", "replace"))
    limit = TokenLimit(tokens, count)
    text = limit.fit(lambda number: "\n".join(outputs.ends_of(lines, number)), len(lines))
    assert count(text) <= tokens
    whole = "\n".join(outputs.cut_line(line) for line in lines)
    rest = re.search(r"… ([\d,]+) lines? left out …", text)
    if text != whole and "more characters" not in text.rpartition("\n")[2]:
        assert rest
        assert len(text.split("\n")) - 1 + int(rest[1].replace(",", "")) == len(whole.split("\n"))


@given(st.text(min_size=1, max_size=5000), st.sampled_from(COUNTS))
def test_a_text_that_cannot_be_shortened_by_lines_is_cut(
    text: str, count: Callable[[str], int]
) -> None:
    text = outputs.printable(text)
    cut = TokenLimit(400, count).cut(text)
    assert count(cut) <= 400
    if cut != text:
        head, _, note = cut.rpartition("\n… ")
        assert text.startswith(head)
        assert int(note.split()[0].replace(",", "")) == len(text) - len(head)


def test_short_texts_are_not_counted() -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return 1

    assert TokenLimit(400, count).fit(lambda number: "x" * number, 399) == "x" * 399
    assert asked == []


def test_the_end_of_an_output_has_more_room_than_its_beginning() -> None:
    lines = [str(number) for number in range(100)]
    shown = outputs.ends_of(lines, 10)
    assert shown == ["0", "1", "2", "… 90 lines left out …", *map(str, range(93, 100))]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\nb", ["a", "b"]),
        (b" 10%\r 90%\r100%\rdone\r\n", ["done"]),
        (b"\x1b[31mred\x1b[0m \x1b]0;title\x07x", ["red x"]),
        (b"bell\x07\x00 and \xff", ["bell and �"]),
    ],
)
def test_outputs_become_printable(data: bytes, lines: list[str]) -> None:
    assert outputs.lines_of(data) == lines


def test_outputs_are_private_and_numbered_once(tmp_path: Path) -> None:
    outputs = Outputs(tmp_path / "outputs")
    assert [outputs.store(["a", "b"]), outputs.store(["é"])] == ["out:1", "out:2"]
    again = Outputs(tmp_path / "outputs")
    assert again.store([]) == "out:3"
    assert again.read("out:1") == ["a", "b"]
    assert again.read("out:2") == ["é"]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "outputs").iterdir()}
    assert modes == {0o600}


@pytest.mark.parametrize("name", ["out:9", "out:", "out:../1", "out:1x", "out:-1", "out:²"])
def test_only_outputs_are_read(tmp_path: Path, name: str) -> None:
    outputs = Outputs(tmp_path / "outputs")
    (tmp_path / "1").write_text("elsewhere")
    (tmp_path / "outputs/9").symlink_to(tmp_path / "1")
    assert outputs.read(name) is None
