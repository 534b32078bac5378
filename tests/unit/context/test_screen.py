"""What one sees goes with a question that names nothing, and with no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.context.gather import gather
from tests.unit.context.test_gather import attached, keys, offered, out
from tests.unit.project.trees import git, write


@pytest.mark.parametrize(
    ("text", "is_in"),
    [
        ("why is this slow?", True),
        ("why is @screen slow?", True),
        ("why is @file:src/a.py slow?", False),
        ("/explain", False),
    ],
)
def test_the_visible_text_is_added_to_a_question_without_mentions(
    root: Path, text: str, is_in: bool
) -> None:
    name = "README.md:1-1 (cursor in line 1)"
    sent = [offered("screen", name, "read", root / "README.md")]
    found = gather(text, root=root, attachments=sent, with_screen=True)
    assert ("screen" in keys(found)) == is_in
    found = gather(text, root=root, attachments=sent)
    assert ("screen" in keys(found)) == ("@screen" in text)
    with_more = [*sent, attached("text", "note", "x")]
    found = gather(text, root=root, attachments=with_more, with_screen=True)
    assert ("screen" in keys(found)) == ("@screen" in text)


def test_an_ignored_file_is_added_only_if_it_is_named(root: Path) -> None:
    git(root, "init", "-q")
    write(root, "local.py")
    write(root, ".gitignore", text="local.py\n")
    sent = [offered("screen", "local.py:1-1 (cursor in line 1)", "x = 1", root / "local.py")]
    assert gather("so?", root=root, attachments=sent, with_screen=True) == []
    named = gather("so, @screen?", root=root, attachments=sent, with_screen=True)
    assert keys(named) == ["screen"]
    (root / ".gitignore").unlink()
    assert keys(gather("so?", root=root, attachments=sent, with_screen=True)) == ["screen"]


def test_the_visible_text_can_be_dropped_by_any_of_its_names(root: Path) -> None:
    sent = [offered("screen", "README.md:1-1 (cursor in line 1)", "read", root / "README.md")]
    (item,) = gather("so?", root=root, attachments=sent, with_screen=True, dropped=["screen"])
    assert item.is_left_out


def test_without_code_on_the_screen_there_is_a_note(root: Path) -> None:
    assert out(gather("@screen", root=root)) == {"screen": "no code is visible"}
