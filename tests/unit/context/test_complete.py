"""What is offered while one types."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lcursor.context import complete as completion
from lcursor.context import mentions
from lcursor.context.complete import MAX
from lcursor.context.items import SearchResult, SymbolLocation
from lcursor.process.run import Cancel
from lcursor.protocol.chat import ChatWord
from tests.unit.project.trees import git, write


class Names:
    """Knows two definitions."""

    def find(self, text: str, tokens: int, cancel: Cancel | None = None) -> SearchResult:
        return SearchResult()

    def symbols(
        self, name: str, limit: int = 20, *, prefix: bool = False, cancel: Cancel | None = None
    ) -> Sequence[SymbolLocation]:
        found = [
            SymbolLocation("a.py", "parse_url", "function", 3, 9),
            SymbolLocation("b.py", "parse_url", "function", 0, 2),
            SymbolLocation("c.cc", "operator []", "method", 0, 2),
        ]
        return [one for one in found if one.name.startswith(name)]


def complete(root: Path, word: str) -> list[ChatWord]:
    return completion.complete(root, word, Names())


def words(found: Sequence[ChatWord]) -> list[str]:
    return [one["word"] for one in found]


def test_kinds_of_mentions_are_completed(root: Path) -> None:
    assert words(complete(root, "@"))[:3] == ["@buffer", "@file:", "@dir:"]
    assert len(complete(root, "@")) == len(mentions.KINDS)
    assert words(complete(root, "@di")) == ["@dir:", "@diagnostics", "@diff"]
    assert all(one["info"] for one in complete(root, "@"))


def test_files_with_their_size_and_no_secret(root: Path) -> None:
    write(root, "my file.py", ".env", text="x" * 6400)
    (word,) = complete(root, "@file:my")
    assert word == {"word": '@file:"my file.py"', "kind": "file", "info": "~2.0k tokens"}
    assert words(complete(root, "@file:.env")) == []
    assert words(complete(root, "@file:url")) == ["@file:src/net/url.py"]
    assert words(complete(root, "@url")) == ["@file:src/net/url.py"]
    assert words(complete(root, '@file:"my f')) == ['@file:"my file.py"']
    assert words(complete(root, "@file:./src/a")) == ["@file:src/a.py"]


def test_paths_outside_of_the_project_are_completed(root: Path, home: Path) -> None:
    write(home, "notes/a.md", "notes/b.md", ".env")
    assert words(complete(root, "@file:~/no")) == ["@file:~/notes/"]
    assert words(complete(root, "@file:~/notes/")) == ["@file:~/notes/a.md", "@file:~/notes/b.md"]
    assert words(complete(root, "@dir:~/")) == ["@dir:~/notes/"]
    assert words(complete(root, "@file:~/.e")) == []
    assert words(complete(root, "@file:/nowhere/")) == []


def test_folders_names_commits_and_rules(root: Path) -> None:
    write(root, ".cursor/rules/release.mdc", text="---\ndescription: how to\n---\nTag.\n")
    git(root, "branch", "side")
    assert complete(root, "@dir:ne") == [{"word": "@dir:src/net", "kind": "dir", "info": "1 files"}]
    assert complete(root, "@symbol:parse") == [
        {"word": "@symbol:parse_url", "kind": "symbol", "info": "function, a.py:4, …"}
    ]
    assert words(complete(root, "@symbol:operator")) == ['@symbol:"operator []"']
    (commit,) = complete(root, "@commit:on")
    assert commit["info"] == "one"
    assert mentions.parse(commit["word"])[0].kind == "commit"
    assert words(complete(root, "@diff:")) == ["@diff:--staged", "@diff:main", "@diff:side"]
    assert complete(root, "@rules:rel")[0]["info"] == "how to"


def test_commands_are_completed(root: Path) -> None:
    write(root, ".lcursor/prompts/exact.md", text="Be exact.\n")
    assert words(complete(root, "/ex")) == ["/exact", "/explain"]
    assert complete(root, "/exa")[0]["info"] == "Be exact. (project)"
    assert "/commit" in words(complete(root, "/"))
    assert complete(root, "/zzz") == []


@pytest.mark.parametrize("word", ["", "x", "@zzz:", "@nothing:x", "@selection:", "@file:\0", "@@"])
def test_nothing_is_offered_for_an_invalid_word(root: Path, word: str) -> None:
    assert complete(root, word) == []


def test_completions_are_limited_and_need_no_git(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    write(plain, *(f"f{number}.py" for number in range(120)))
    assert len(complete(plain, "@file:f")) == MAX
    assert complete(plain, "@commit:") == []
    assert words(complete(plain, "@diff:")) == ["@diff:--staged"]


def test_offered_mentions_are_read_as_mentions(root: Path) -> None:
    write(root, 'odd "name".py', "a (1).txt", "b:3", "ends.", "é.py", "x'y.py")
    offered = complete(root, "@file:")
    assert len(offered) >= 6
    for one in offered:
        (mention,) = mentions.parse(f"in {one['word']} it")
        assert (root / mention.argument).is_file(), one
