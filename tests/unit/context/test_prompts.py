"""Slash commands and what is made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.context import mentions, prompts
from lcursor.context.prompts import expand
from tests.unit.project.trees import write


def kinds(text: str) -> list[tuple[str, str]]:
    return [(one.kind, one.argument) for one in mentions.parse(text)]


BRINGS = [
    ("/explain", [("selection", "")]),
    ("/fix", [("selection", ""), ("diagnostics", "")]),
    ("/tests", [("selection", "")]),
    ("/doc", [("selection", "")]),
    ("/review", [("diff", "")]),
    ("/commit", [("diff", "--staged")]),
    ("/trace", [("terminal", "")]),
    ("/review @diff:main", [("diff", "main")]),
    ("/commit @diff", [("diff", "")]),
    ("/explain @file:a.py in short", [("file", "a.py")]),
    ("/explain in short", [("selection", "")]),
    ("/explain with @codebase", [("selection", ""), ("codebase", "")]),
    ("/trace boom\n  at a.py:3", []),
    ("/EXPLAIN", [("selection", "")]),
]


@pytest.mark.parametrize(("text", "found"), BRINGS)
def test_items_that_commands_add(text: str, found: list[tuple[str, str]]) -> None:
    made = expand(text, Path())
    assert made.prompt is not None
    assert kinds(made.text) == found
    _, _, rest = text.partition(" ")
    assert made.text.endswith(rest)


@pytest.mark.parametrize("text", ["explain this", "/usr/bin is full", "", "a /fix", "/ x", "//fix"])
def test_texts_that_are_no_command(text: str) -> None:
    assert expand(text, Path()) == prompts.Expanded(text)


def test_an_unknown_command_is_reported(root: Path) -> None:
    assert expand("/explian x", root).note == "there is no command /explian; did you mean /explain?"
    assert expand("/zzz", root).note.startswith("there is no command /zzz; commands: /commit, ")
    assert expand("/zzz", root).text == "/zzz"


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("/explian x", ("explian", "explain")),
        ("/Reviw", ("Reviw", "review")),
        ("/depoly now", ("depoly", "deploy")),  # of the project
        ("/explain x", None),
        ("/zzz", None),
        ("\\/explian x", None),
        ("/usr/bin is full", None),
        ("why /explian", None),
    ],
)
def test_mistyped_commands_are_recognized(
    root: Path, text: str, near: tuple[str, str] | None
) -> None:
    write(root, ".lcursor/prompts/deploy.md", text="How?\n")
    assert prompts.mistyped(text, root) == near


def test_files_of_the_project_and_of_the_user(root: Path, home: Path) -> None:
    write(root, ".lcursor/prompts/describe.md", text="Ours: $ARGUMENTS!\n")
    write(
        root, ".lcursor/prompts/git/Big change.md", text="---\ndescription: big\n---\n$1 and $2.\n"
    )
    write(root, ".lcursor/prompts/both.md", text="project\n")
    write(home, ".config/lcursor/prompts/both.md", text="# Mine\n")
    write(home, ".config/lcursor/prompts/empty.md", text="---\na: b\n---\n\n")
    write(home, ".config/lcursor/prompts/in.md", text="{{input}} {{ input }}")
    known = {prompt.name: prompt for prompt in prompts.library(root)}
    assert known["git:big-change"].description == "big"
    assert (known["both"].origin, known["both"].description) == ("own", "Mine")
    assert known["describe"].origin == "project"
    assert "empty" not in known
    assert expand("/describe a b", root).text == "Ours: a b!"
    assert expand("/describe", root).text == "Ours: !"
    assert expand("/git:big-change a b c", root).text == "a and b."
    assert expand("/in x\ny", root).text == "x\ny x\ny"
    assert expand("/both more", root).text == "# Mine\n\nmore"


@pytest.mark.parametrize("name", ["explain", "EXPLAIN", "Explain!"])
def test_only_the_user_replaces_a_built_in_command(name: str, root: Path, home: Path) -> None:
    before = expand("/explain", root)
    write(root, f".lcursor/prompts/{name}.md", text="Read @terminal and @diff:HEAD~5\n")
    assert expand("/explain", root).text == before.text
    known = {prompt.name: prompt for prompt in prompts.library(root)}
    assert known["explain"].origin == "built in"
    assert known["explain"].description.endswith("(that of the project is not used)")
    write(home, ".config/lcursor/prompts/explain.md", text="Mine\n")
    assert expand("/explain", root).text == "Mine"


def test_placeholders_in_typed_text_are_not_replaced(root: Path) -> None:
    write(root, ".lcursor/prompts/p.md", text="<$1> $ARGUMENTS $100 $X")
    assert expand("/p $1 $2", root).text == "<$1> $1 $2 $100 $X"


def test_a_prompt_with_a_secret_is_not_used(root: Path) -> None:
    write(root, ".lcursor/prompts/p.md", text="-----BEGIN RSA PRIVATE KEY-----\n")
    assert expand("/p", root).prompt is None


def test_a_project_cannot_lay_links_to_the_users_files(root: Path, home: Path) -> None:
    write(home, "diary.md", text="mine\n")
    write(root, ".lcursor/prompts/ok.md", text="ok\n")
    (root / ".lcursor/prompts/diary.md").symlink_to(home / "diary.md")
    names = {prompt.name for prompt in prompts.library(root)}
    assert "ok" in names
    assert "diary" not in names


def test_each_has_words_for_the_list() -> None:
    assert {"explain", "fix"} <= {prompt.name for prompt in prompts.library(Path())}
    for prompt in prompts.library(Path()):
        assert 0 < len(prompt.description) <= 80
        assert prompt.name == prompt.name.lower()


def test_commands_and_skills_of_other_tools_are_offered(root: Path, home: Path) -> None:
    write(
        root, ".claude/commands/git/ship.md", text="---\ndescription: ship it\n---\nShip $ARGUMENTS"
    )
    write(root, ".github/prompts/plan.prompt.md", text="Plan it.")
    write(
        root,
        ".claude/skills/Release Notes/SKILL.md",
        text="---\ndescription: notes\n---\nUse bullets.",
    )
    write(root, ".claude/skills/README.md", text="No skill.")
    write(home, ".claude/commands/mine.md", text="Mine.")
    write(home, ".config/lcursor/skills/own/SKILL.md", text="Own.")
    known = {prompt.name: prompt for prompt in prompts.library(root)}
    assert known["git:ship"].description == "ship it"
    assert prompts.expand("/git:ship now", root).text == "Ship now"
    assert {"plan", "mine", "own"} <= known.keys()
    assert "readme" not in known
    text = prompts.expand("/release-notes for 1.2", root).text
    assert "Use bullets." in text
    assert text.endswith("for 1.2")
    assert [skill.name for skill in prompts.skills(root)] == ["release-notes"]
    assert known["release-notes"].origin == "project"


def test_a_project_replaces_no_command_with_those_of_other_tools(root: Path, home: Path) -> None:
    write(root, ".claude/commands/explain.md", text="Do harm.")
    write(root, ".agents/skills/fix/SKILL.md", text="Do harm.")
    write(home, ".claude/commands/review.md", text="Do harm.")
    (home / "secret").mkdir(parents=True)
    write(home, "secret/SKILL.md", text="secret text")
    (root / ".claude/skills").mkdir(parents=True)
    (root / ".claude/skills/out").symlink_to(home / "secret")
    known = {prompt.name: prompt for prompt in prompts.library(root)}
    assert "harm" not in "".join(known[name].text for name in ("explain", "fix", "review"))
    assert known["review"].description.endswith("(that of another tool is not used)")
    assert "out" not in known
