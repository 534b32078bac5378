"""Searches by a toolbox: lines, paths and code."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from lcursor.agent.tools.lookup import open_codebase
from lcursor.context.codebase import GrepSearch, IndexSearch
from lcursor.context.items import SearchHit, SearchResult, SymbolLocation
from lcursor.index.client import Client
from lcursor.process.run import Cancel
from tests.unit.agent.toolboxes import ToolUser
from tests.unit.workspace.projects import Project, project

__all__ = ["project"]
FILES: dict[str, str | bytes] = {
    "src/a.py": "def alpha():\n    return 1\n",
    "src/b.py": "def beta():\n    return alpha()\n",
    "docs/a.md": "alpha\n" * 30,
    "lib.js": "const alpha = 1\n",
    "ignored.log": "alpha\n",
    "data.bin": b"alpha\0",
    ".env": "alpha=1\n",
}


@pytest.fixture
def agent(project: Project) -> ToolUser:
    project.repository(FILES)
    return ToolUser(project)


def test_grep_groups_and_counts(agent: ToolUser) -> None:
    found = agent.call("grep", pattern=r"alph\w")
    lines = found.text.splitlines()
    assert lines[:2] == ["docs/a.md:1: alpha", "docs/a.md:2: alpha"]
    assert "src/b.py:2: return alpha()" in lines
    assert lines[-1] == "and 15 more in 1 file: docs/a.md 15"
    assert found.result == "34 hits"
    assert ".env" not in found.text


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({"glob": "*.py"}, {"src/a.py", "src/b.py"}),
        ({"path": "src"}, {"src/a.py", "src/b.py"}),
        ({"path": "src/a.py"}, {"src/a.py"}),
        ({"path": "src", "glob": "b.*"}, {"src/b.py"}),
        ({"glob": "docs/**"}, {"docs/a.md"}),
        ({"glob": "*.js"}, {"lib.js"}),
    ],
)
def test_grep_in_a_part(agent: ToolUser, given: dict[str, str], paths: set[str]) -> None:
    found = agent.call("grep", pattern="alpha", **given)
    hits = [line for line in found.text.splitlines() if not line.startswith("and ")]
    assert {line.split(":")[0] for line in hits} == paths


def test_brackets_of_a_path_are_literal_if_it_exists(project: Project) -> None:
    names = ["app/[slug]/page.tsx", "app/s/page.tsx", "app/[...all]/page.tsx"]
    project.repository(dict.fromkeys(names, "needle\n"))
    agent = ToolUser(project)
    for pattern, name in zip(["app/[slug]/*.tsx", "app/[st]/", "[...all]/*"], names, strict=True):
        assert agent.call("grep", pattern="needle", glob=pattern).text == f"{name}:1: needle"
        assert agent.call("glob", pattern=pattern).text == name


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pattern": "nothing at all"}, "no line matches"),
        ({"pattern": "alpha("}, "literal text"),
        ({"pattern": "alpha", "path": "../x"}, "outside"),
        ({"pattern": "alpha", "path": "gone"}, "no file or folder"),
    ],
)
def test_a_grep_that_finds_nothing_says_why(
    agent: ToolUser, given: dict[str, str], words: str
) -> None:
    assert words in agent.call("grep", **given).text


def test_many_hits_are_counted(project: Project) -> None:
    project.repository({f"f{n:03}.py": f"value = {n}\n" * 3 for n in range(200)})
    agent = ToolUser(project)
    found = agent.call("grep", pattern="value")
    *hits, last = found.text.splitlines()
    assert len(hits) <= 60
    rest = int(last.split()[1])
    assert len(hits) + rest == 600
    assert "other files" in last


@pytest.mark.sandbox
def test_new_files_are_found_and_ignored_ones_are_not(agent: ToolUser) -> None:
    (agent.tree.path / ".gitignore").write_text("*.log\n")
    agent.bash("echo alpha > new.txt; echo alpha > made.log; mkdir .venv; echo alpha > .venv/x")
    found = agent.call("grep", pattern="^alpha$")
    assert "new.txt:1: alpha" in found.text
    assert "made.log" not in found.text
    assert "made.log" not in agent.call("glob", pattern="*").text
    assert ".venv" not in found.text


def test_huge_files_are_not_loaded(agent: ToolUser) -> None:
    with open(agent.tree.path / "docs/huge", "wb") as file:
        file.truncate(300 << 20)
    found = agent.call("grep", pattern="alpha")
    assert found.text == "a file is too large for the search; name a path without it"
    assert "src/b.py:2" in agent.call("grep", pattern="alpha", path="src").text


def test_new_secrets_are_not_found(agent: ToolUser) -> None:
    agent.bash("echo alpha > new.env; printf -- '-----BEGIN PRIVATE KEY-----\\nalpha\\n' > k.txt")
    found = agent.call("grep", pattern="alpha")
    assert found.result == "34 hits"
    assert "new.env" not in found.text
    assert "k.txt" not in found.text


def test_lines_of_hits_may_be_edited(agent: ToolUser) -> None:
    agent.call("grep", pattern="const")
    assert not agent.replace("lib.js", "const alpha", "let alpha").is_error


def test_glob_lists_the_newest_first(agent: ToolUser) -> None:
    os.utime(agent.tree.path / "src/a.py", (1, 1))
    agent.bash("touch src/b.py")
    assert agent.call("glob", pattern="*.py").text == "src/b.py\nsrc/a.py"
    assert agent.call("glob", pattern="src/*").text == "src/b.py\nsrc/a.py"
    assert agent.call("glob", pattern=f"{agent.tree.root}/**/*.md").text == "docs/a.md"
    assert agent.call("glob", pattern="*.rs").text == "no file matches"


def test_many_paths_are_counted(project: Project) -> None:
    project.repository({f"f{n:03}.py": "" for n in range(300)})
    *paths, last = ToolUser(project).call("glob", pattern="**/*").text.splitlines()
    assert len(paths) <= 100
    assert last == f"and {300 - len(paths)} more; use a narrower pattern"


def test_a_pipe_as_an_ignore_file_stops_no_search(
    agent: ToolUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lcursor.agent.tools.lookup.MAX_S", 0.5)
    os.mkfifo(agent.tree.path / "src/.gitignore")
    assert "stopped after" in agent.call("grep", pattern="alpha").text


def test_search_shows_hits_and_the_best_as_text(agent: ToolUser) -> None:
    found = agent.call("search", query="where is beta defined")
    assert found.text.splitlines()[0] == "src/b.py:1-2 — def beta():"
    assert "     1\tdef beta():" in found.text
    assert "why the first: contains beta" in found.text
    inside = agent.call("search", query="alpha", path="docs")
    assert "src/" not in inside.text


@pytest.mark.sandbox
def test_search_finds_what_was_changed(agent: ToolUser) -> None:
    agent.bash("echo 'def gamma(): return 1' > src/g.py; rm src/b.py")
    assert "src/g.py:1" in agent.call("search", query="gamma").text
    assert "src/b.py" not in agent.call("search", query="beta").text


class Stale:
    """An index of the user's files."""

    def find(self, text: str, tokens: int, cancel: Cancel | None = None) -> SearchResult:
        """Return hits as they were."""
        body = "def beta():\n    return alpha()\n"
        hits = [
            SearchHit("src/b.py", 0, 2, body, "it matches"),
            SearchHit("src/gone.py", 0, 2, body, "it matches"),
            SearchHit("lib.js", 0, 1, "var omega = 1\n", "it matches"),
        ]
        return SearchResult(tuple(hits), note="an old index")

    def symbols(
        self, name: str, limit: int = 20, *, prefix: bool = False, cancel: Cancel | None = None
    ) -> Sequence[SymbolLocation]:
        """Return nothing."""
        return ()


def test_hits_are_shown_as_they_are_in_the_tree(project: Project) -> None:
    project.repository(FILES)
    agent = ToolUser(project, codebase=lambda tree: Stale())
    body = "# new\n\ndef beta():\n    return 2\n\nif True:\n    pass\ndef beta():\n    pass\n"
    (agent.tree.path / "src/b.py").write_text(body)
    found = agent.call("search", query="beta")
    assert found.text.splitlines()[0] == "src/b.py:3-4 — def beta():"
    assert "     4\t    return 2" in found.text
    assert "gone.py" not in found.text
    assert "lib.js" not in found.text
    assert found.text.endswith("an old index")


class FakeClient:
    """A client of an index that finds nothing."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str | None]] = []

    def notify(self, do: str, *, path: str, text: str | None) -> None:
        """Record a text."""
        assert do == "buffer"
        self.sent.append((path, text))

    def call(self, do: str, **params: Any) -> Mapping[str, Any]:
        """Answer."""
        answers = {"retrieve": {"used": [], "left_out": [], "tokens": 0}, "status": {}}
        return answers[do]


@pytest.mark.sandbox
def test_the_index_gets_the_texts_of_changed_files_once(project: Project) -> None:
    project.repository(FILES)
    client = FakeClient()
    agent = ToolUser(
        project,
        codebase=lambda tree: IndexSearch(cast("Client", client), GrepSearch(tree.path)),
    )
    agent.call("search", query="alpha")
    assert client.sent == []
    agent.bash("echo new > lib.js; rm src/a.py")
    agent.tree.checkpoint()
    agent.call("search", query="alpha")
    agent.call("search", query="alpha")
    assert client.sent == [("lib.js", "new\n")]
    agent.bash("echo 'const alpha = 1' > lib.js")
    agent.tree.checkpoint()
    agent.call("search", query="alpha")
    assert client.sent[1:] == [("lib.js", None)]


@pytest.mark.sandbox
def test_a_project_without_an_index_is_searched_by_words(project: Project) -> None:
    project.repository(FILES)
    agent = ToolUser(project, codebase=open_codebase)
    agent.bash("echo 'def gamma(): return 1' > src/g.py")
    agent.tree.checkpoint()
    assert "src/g.py:1" in agent.call("search", query="gamma").text
