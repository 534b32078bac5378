"""The plain search, in a repository and outside of one."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lcursor.context import grep, item_builders
from lcursor.context.codebase import GrepSearch
from lcursor.context.gather import gather
from lcursor.context.items import SymbolLocation
from lcursor.errors import Cancelled
from lcursor.project.reading import Reader
from tests.unit.project.trees import git, write

RETRY = '''"""Asks again."""


class Retry:
    """Waits longer each time."""

    def wait(self, attempt):
        backoff = 2 ** attempt
        return backoff

    def stop(self):
        return None
'''
OTHER = "class Turn:\n    def stop(self):\n        return 1\n"


@pytest.fixture(params=["git", "plain"])
def project(request: pytest.FixtureRequest, root: Path) -> Path:
    """A project with something to find; also one that is no repository."""
    write(root, "src/retry.py", text=RETRY)
    write(root, "src/turn.py", text=OTHER)
    write(root, ".env", text="backoff=1\n")
    write(root, "secret.txt", text="-----BEGIN PRIVATE KEY-----\nbackoff\n")
    write(root, "app.min.js", text="var backoff=1;\n")
    (root / ".gitignore").write_text("ignored.py\n")
    write(root, "ignored.py", text="backoff = 1\n")
    git(root, "add", "-A", "-f")
    git(root, "rm", "-q", "--cached", "ignored.py")
    if request.param == "plain":
        shutil.rmtree(root / ".git")
        (root / "src/b.py").write_text("")  # git is asked, and says that there is none
    return root


def test_the_rows_with_the_rarest_words_come_whole(project: Path) -> None:
    found = GrepSearch(project).find("how long is the backoff with each attempt?", 1000)
    assert found.hits[0].path == "src/retry.py"
    assert "def wait" in found.hits[0].text
    assert "return backoff" in found.hits[0].text
    assert "backoff" in found.hits[0].why
    assert {piece.path for piece in found.hits} == {"src/retry.py"}
    assert "full-text search only" in found.note
    rows = RETRY.split("\n")
    first = found.hits[0]
    assert first.text == "\n".join(rows[first.first_row : first.end_row])


def test_hits_that_do_not_fit_are_named(project: Path) -> None:
    found = GrepSearch(project).find("backoff", 5)
    assert found.hits == ()
    assert found.omitted[0].path == "src/retry.py"
    assert found.omitted[0].why == "token limit reached"
    assert found.tokens == 0


def test_files_that_the_user_excludes_are_not_searched(project: Path) -> None:
    assert GrepSearch(project, ["retry.*"]).find("backoff attempt", 1000).hits == ()


def test_a_question_without_words_has_a_note(project: Path) -> None:
    assert "no word" in GrepSearch(project).find("the of ?", 100).note
    assert GrepSearch(project).find("xyzzyplugh", 100).hits == ()


def test_definitions_of_a_name(project: Path) -> None:
    plain = GrepSearch(project)
    (found,) = plain.symbols("Retry")
    assert found == SymbolLocation("src/retry.py", "Retry", "class", 3, 12)
    assert [one.path for one in plain.symbols("stop")] == ["src/retry.py", "src/turn.py"]
    assert [one.path for one in plain.symbols("Turn.stop")] == ["src/turn.py"]
    assert [one.path for one in plain.symbols("turn.stop")] == ["src/turn.py"]
    assert len(plain.symbols("Nowhere.stop")) == 2
    assert plain.symbols("backoff") == [] or plain.symbols("backoff")[0].path == "src/retry.py"
    assert plain.symbols("") == []
    assert [one.name for one in plain.symbols("ret", prefix=True)] == ["Retry"]


def test_a_search_can_be_ended(project: Path) -> None:
    with pytest.raises(Cancelled):
        GrepSearch(project).find("backoff", 100, cancel=lambda: True)


def test_output_of_git_grep_is_read() -> None:
    data = b"a.py\x003\x00x = 1\nb c.py\x0012\x00y: 2\nnoise\nbin\x00\n"
    assert list(grep._rows(data)) == [("a.py", 2, "x = 1"), ("b c.py", 11, "y: 2")]


def test_words_of_a_question() -> None:
    assert grep.words_of("where does parse_url call HTTPServer in the codebase?")[:2] == [
        "parse_url",
        "HTTPServer",
    ]
    assert grep.words_of("the a of") == []


def test_a_word_that_looks_like_an_option_is_a_word(root: Path) -> None:
    write(root, "a.txt", text="--open-files-in-pager=x\n")
    found, more = grep.search(root, ["--open-files-in-pager=x"], Reader(root))
    assert list(found) == ["a.txt"]
    assert more == ""


def test_a_search_lets_no_program_of_the_repository_run(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def start(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        commands.append(command)
        return popen(command, **options)

    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start)
    grep.search(root, ["x"], Reader(root))
    asked = [command for command in commands if command[0] == "git"]
    assert any("grep" in command for command in asked)
    assert all("core.fsmonitor=false" in command for command in asked)


def test_files_of_our_ignore_file_are_not_searched(project: Path) -> None:
    (project / ".lcursorignore").write_text("src/retry.py\n")
    assert GrepSearch(project).find("backoff", 1000).hits == ()
    assert GrepSearch(project).symbols("Retry") == []


def test_a_search_that_finds_too_much_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, *(f"f{number}.py" for number in range(50)), text="needle = 1\n" * 50)
    monkeypatch.setattr(grep, "MAX_BYTES", 5000)
    found = GrepSearch(root).find("needle", 1000)
    assert found.hits
    assert "not all of the project was searched: over 5,000 bytes" in found.note


def test_rare_words_weigh_more_than_frequent_ones() -> None:
    rows = {f"{number}.py": [(0, "common")] for number in range(9)}
    rows["rare.py"] = [(0, "rare")]
    assert grep.best(rows, ["common", "rare"])[0][0] == "rare.py"
    tests = {"src/x.py": [(0, "word")], "tests/test_x.py": [(0, "word")]}
    assert grep.best(tests, ["word"])[0][0] == "src/x.py"


def test_windows_do_not_overlap() -> None:
    lines = [f"row {row}" for row in range(300)]
    matches = [(row, frozenset({"row"})) for row in range(0, 300, 3)]
    found = sorted(grep.windows("a.txt", lines, matches, ["row"]))
    for (_, end, _), (first, _, _) in itertools.pairwise(found):
        assert first >= end
    covered = {row for first, end, _ in found for row in range(first, end)}
    assert {row for row, _ in matches} <= covered
    assert all(end - first <= grep.MAX_ROWS for first, end, _ in found)


def test_a_question_about_the_callers_of_a_definition_gets_the_lines_that_use_it(
    root: Path,
) -> None:
    write(root, "src/a.py", text="def needle():\n    return needle\n")
    write(
        root,
        "src/b.py",
        text="import a\n\n\ndef sew(\n    it,\n):\n    a.needle()\n    needles()\n",
    )
    write(root, "tests/test_a.py", text="needle()\n")
    write(root, ".env", text="needle=1\n")

    def uses(text: str) -> str:
        found = gather(text, root=root)
        return "".join(item.text for item in found if item.key == "uses:needle")

    expected = "src/b.py:7 in sew: a.needle()\ntests/test_a.py:1: needle()"
    assert uses("who calls @symbol:needle ?") == expected
    assert uses("where is @symbol:a.needle used?") == expected
    assert uses("explain @symbol:needle") == ""
    write(root, "src/c.py", text="needle()\n" * 20)
    assert uses("who calls @symbol:needle ?").count("\n") == item_builders.MAX_USES - 1
