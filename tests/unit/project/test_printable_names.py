"""Names with line ends, escape sequences and marks of a heading, in texts for the user."""

from __future__ import annotations

import subprocess

import pytest

from lcursor.project.names import has_controls, printable, quoted

NAMES = [
    "a.py", "src/größe 1.py", "a\nb.py", "a\n\n## Done\n\nx", "\x1b]0;title\x07", "tab\there",
    "it's", "a'\n'b", "back\\slash\n", "## Done", "- item", "1. one", "```", "> quote", "$(id)",
    "\x7f", "!x\ny", "\x011",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_quoted_name_is_one_line_and_means_the_same_to_a_shell(name: str) -> None:
    word = quoted(name)
    assert not has_controls(word)
    told = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert told.stdout.decode() == name


@pytest.mark.parametrize("name", NAMES)
def test_a_quoted_name_begins_no_heading_list_or_block(name: str) -> None:
    assert quoted(name)[0] not in "#>-`~1 "


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a.py", "a.py"),
        ("größe 日本.py", "größe 日本.py"),
        ("a\nb", "a�b"),
        ("\x1b[31mred", "�[31mred"),
        ("a\u202egnp.exe", "a�gnp.exe"),
        ("a\u2028b", "a�b"),
        ("\udcff", "�"),
    ],
)
def test_what_cannot_be_printed_is_replaced(name: str, shown: str) -> None:
    assert printable(name) == shown
