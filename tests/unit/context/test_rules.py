"""Which rules hold for which files."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.context import rules
from lcursor.project.reading import Reader
from tests.unit.project.trees import write


def names(root: Path, *paths: str) -> list[str]:
    found = rules.applicable(Reader(root), [str(root / path) for path in paths])
    return [item.name for item in found if not item.is_left_out]


def test_agents_files_hold_from_the_top_down_to_the_file(root: Path) -> None:
    write(root, "AGENTS.md", "src/AGENTS.md", "src/net/AGENTS.md", "other/AGENTS.md", text="Rule\n")
    assert names(root) == ["AGENTS.md"]
    assert names(root, "src/a.py") == ["AGENTS.md", "src/AGENTS.md"]
    assert names(root, "src/net/url.py") == ["AGENTS.md", "src/AGENTS.md", "src/net/AGENTS.md"]
    assert names(root, "src/a.py", "other/x") == ["AGENTS.md", "other/AGENTS.md", "src/AGENTS.md"]
    assert names(root, "../elsewhere.py") == ["AGENTS.md"]


HEADS = [
    ("---\nalwaysApply: true\n---\n", "src/a.py", True),
    ("---\nalwaysApply: true\n---\n", "", True),
    ("---\nalwaysApply: false\n---\n", "src/a.py", False),
    ("---\ndescription: for tests\n---\n", "src/a.py", False),
    ("", "src/a.py", False),
    ("---\nglobs: *.py\n---\n", "src/a.py", True),
    ("---\nglobs: *.py\n---\n", "", False),
    ("---\nglobs: *.py\nalwaysApply: false\n---\n", "src/net/url.py", True),
    ("---\nglobs: *.ts, *.py\n---\n", "src/a.py", True),
    ("---\nglobs: **/*.{ts,py}\n---\n", "src/a.py", True),
    ("---\nglobs: src/**/*.py\n---\n", "src/a.py", True),
    ("---\nglobs: src/*.py\n---\n", "src/net/url.py", False),
    ("---\nglobs: net/*.py\n---\n", "src/net/url.py", False),
    ("---\nglobs: src/\n---\n", "src/net/url.py", True),
    ("---\nglobs: src/net\n---\n", "src/net/url.py", True),
    ("---\nglobs: src\n---\n", "mysrc/a.py", False),
    ("---\nglobs: url.py\n---\n", "src/net/url.py", True),
    ("---\nglobs: rl.py\n---\n", "src/net/url.py", False),
    ('---\nglobs:\n  - "*.ts"\n---\n', "src/a.py", False),
    ("---\nglobs:\n---\n", "src/a.py", False),
    ("---\nglobs: app/[slug]/**/*.tsx\n---\n", "app/[slug]/page.tsx", True),
    ("---\nglobs: [...all].ts\n---\n", "app/[...all].ts", True),
]


@pytest.mark.parametrize(("head", "path", "holds"), HEADS)
def test_rules_of_cursor_hold_by_their_head(root: Path, head: str, path: str, holds: bool) -> None:
    write(root, ".cursor/rules/deep/style.mdc", text=f"{head}Write short names.\n")
    found = rules.applicable(Reader(root), [str(root / path)] if path else [])
    assert [item.text for item in found] == (["Write short names.\n"] if holds else [])


def test_our_own_hold_always_unless_their_head_says_when(root: Path) -> None:
    write(root, ".lcursor/rules/all.md", text="All.\n")
    write(root, ".lcursor/rules/ts.md", text="---\nglobs: *.ts\n---\nTS.\n")
    write(root, ".lcursor/rules/never.md", text="---\nalwaysApply: false\n---\nNo.\n")
    write(root, ".lcursor/rules/empty.md", text="---\nglobs: *.py\n---\n\n")
    assert names(root, "src/a.py") == [".lcursor/rules/all.md"]
    assert names(root, "src/b.ts") == [".lcursor/rules/all.md", ".lcursor/rules/ts.md"]


def test_rules_in_a_folder_count_from_there(root: Path) -> None:
    write(root, "web/.cursor/rules/x.mdc", text="---\nglobs: src/*.ts\n---\nX.\n")
    assert names(root, "web/src/a.ts") == ["web/.cursor/rules/x.mdc"]
    assert names(root, "src/a.ts") == []


def test_the_users_own_come_first_and_hold_everywhere(root: Path, home: Path) -> None:
    write(home, ".config/lcursor/rules/me.md", text="Answer in German.\n")
    write(root, "AGENTS.md", ".cursorrules", text="Rule\n")
    assert names(root) == ["~/me.md", ".cursorrules", "AGENTS.md"]


def test_a_rule_can_be_named(root: Path) -> None:
    write(root, ".cursor/rules/release.mdc", text="---\ndescription: how to\n---\nTag it.\n")
    found = rules.named("release", [], Reader(root))
    assert found is not None
    assert found.text == "Tag it.\n"
    assert not rules.named("release.mdc", [], Reader(root)).is_left_out
    assert rules.named("nothing", [], Reader(root)).is_left_out


def test_a_long_rule_is_cut_with_a_note_and_too_many_are_left_out(root: Path) -> None:
    write(root, "AGENTS.md", text="A long rule about names.\n" * 4000)
    for number in range(5):
        write(root, f".lcursor/rules/{number}.md", text="x" * 15_999 + "\n")
    found = rules.applicable(Reader(root))
    assert len(found[0].text) <= rules.MAX_FILE_CHARS
    assert found[0].text.endswith("names.\n")
    assert "the first 24,000 of its 100,000 characters" in found[0].note
    assert [item.is_left_out for item in found] == [False, False, False, True, True, True]
    assert "characters for rules reached" in found[-1].note


def test_a_rule_with_a_secret_in_it_is_not_read(root: Path) -> None:
    write(root, "AGENTS.md", text="-----BEGIN RSA PRIVATE KEY-----\n")
    (item,) = rules.applicable(Reader(root))
    assert item.is_left_out
    assert item.note == "it contains a private key"
    (root / "AGENTS.md").unlink()
    (root / "AGENTS.md").symlink_to(root / ".env")
    write(root, ".env", text="A=1\n")
    (item,) = rules.applicable(Reader(root))
    assert item.text == ""


def test_a_project_cannot_lay_links_to_the_users_files_but_the_user_can(
    root: Path, home: Path
) -> None:
    write(home, "diary.md", "dotfiles/me.md", text="mine\n")
    (root / "AGENTS.md").symlink_to(home / "diary.md")
    (item,) = rules.applicable(Reader(root))
    assert (item.text, item.note) == ("", rules.LEADS_OUT)
    (root / "AGENTS.md").unlink()
    write(root, "docs/real.md", text="Inside.\n")
    (root / "AGENTS.md").symlink_to("docs/real.md")
    (home / ".config/lcursor/rules").mkdir(parents=True)
    (home / ".config/lcursor/rules/me.md").symlink_to(home / "dotfiles/me.md")
    assert [item.text for item in rules.applicable(Reader(root))] == ["mine\n", "Inside.\n"]
