"""Diffs and commits of a real repository."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from lcursor.context import changes
from lcursor.context.items import Item
from lcursor.project import reading
from lcursor.project.reading import Reader
from tests.unit.project.test_reading import KEY
from tests.unit.project.trees import git, repository, write


def by_name(items: list[Item]) -> dict[str, Item]:
    return {item.name: item for item in items}


def test_all_that_is_not_committed_staged_or_not_and_new(root: Path) -> None:
    write(root, "src/a.py", text="x = 2\n")
    write(root, "README.md", text="staged\n")
    git(root, "add", "README.md")
    write(root, "new file.py", text="n = 1\nm = 2\n")
    found = by_name(changes.diff("", Reader(root)))
    assert sorted(found) == ["diff README.md", "diff new file.py", "diff src/a.py"]
    assert "-x = 1\n+x = 2\n" in found["diff src/a.py"].text
    assert found["diff src/a.py"].path == str(root / "src/a.py")
    new = found["diff new file.py"]
    assert "@@ -0,0 +1,2 @@\n+n = 1\n+m = 2\n" in new.text
    assert new.note == "git does not track it yet"
    assert new.key == "diff:new file.py"


def test_the_commits_that_an_argument_names(root: Path) -> None:
    git(root, "checkout", "-qb", "side")
    write(root, "src/a.py", text="x = 2\n")
    git(root, "commit", "-qam", "two")
    write(root, "README.md", text="open\n")
    write(root, "src/net/url.py", text="staged\n")
    git(root, "add", "src/net/url.py")

    def names(argument: str) -> list[str]:
        return sorted(item.name for item in changes.diff(argument, Reader(root)))

    assert names("--staged") == ["diff src/net/url.py"]
    assert names("main") == ["diff README.md", "diff src/a.py", "diff src/net/url.py"]
    assert names("main..HEAD") == ["diff src/a.py"]
    assert names("main...") == ["diff src/a.py"]
    assert names("main -- src/net") == ["diff src/net/url.py"]
    assert names("src") == ["diff src/net/url.py"]
    assert names("HEAD~1 HEAD") == ["diff src/a.py"]


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ("--output=/tmp/x", "--output=/tmp/x is not supported"),
        ("--no-index / /", "--no-index is not supported"),
        ("--ext-diff", "--ext-diff is not supported"),
        ("nowhere", "nowhere is neither a revision nor a path"),
        ("'open", "a quote is not closed"),
        ("HEAD", "nothing is changed"),
    ],
)
def test_impossible_arguments_are_explained(root: Path, argument: str, why: str) -> None:
    (item,) = changes.diff(argument, Reader(root))
    assert item.is_left_out
    assert item.note.startswith(why)
    (nothing,) = changes.commit("--output=x", Reader(root))
    assert nothing.note == "there is no such commit"


def test_programs_that_a_repository_names_are_not_run(root: Path) -> None:
    ran = root / "ran"
    script = root / "tool.sh"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    for name in ("diff.external", "diff.x.textconv", "diff.x.command", "core.fsmonitor"):
        git(root, "config", name, str(script))
    (root / ".gitattributes").write_text("*.py diff=x\n")
    write(root, "src/a.py", text="x = 2\n")
    assert "+x = 2" in by_name(changes.diff("", Reader(root)))["diff src/a.py"].text
    changes.commit("", Reader(root))
    assert not ran.exists()


def test_secrets_are_left_out_by_name_before_and_after_and_by_content(root: Path) -> None:
    body = base64.b64encode(os.urandom(600)).decode()
    rows = [body[at : at + 64] for at in range(0, 640, 64)]
    write(root, ".env", "cert.pem", "deploy", text="A=1\n")
    (root / "deploy").write_text("\n".join(["head", *rows]) + "\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "bad")
    git(root, "mv", "cert.pem", "public.txt")
    write(root, ".env", text="A=2\n")
    (root / "deploy").write_text("\n".join(["head", *reversed(rows)]) + "\n")
    write(root, "key.txt", text=KEY)
    write(root, ".env.new", text="B=1\n")
    found = changes.diff("", Reader(root))
    for item in found:
        assert item.is_left_out, item.name
        assert item.text == ""
    notes = {item.name.removeprefix("diff "): item.note for item in found}
    assert notes["public.txt"] == reading.SECRET_NAME
    assert notes[".env"] == notes[".env.new"] == reading.SECRET_NAME
    assert notes["key.txt"] == reading.SECRET_TEXT
    assert notes["deploy"] == "it looks like a part of a key"
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all of it")
    of_commit = changes.commit("", Reader(root))
    assert [item.is_left_out for item in of_commit[1:]] == [True] * len(of_commit[1:])


def test_unsaved_text_is_in_the_diff(root: Path) -> None:
    write(root, "README.md", text="on disk\n")
    unsaved = {
        str(root / "src/a.py"): "x = 3\n",
        str(root / "README.md"): "x = 1\n",  # as committed: nothing is changed
        str(root / "fresh.py"): "f = 1\n",
        "/elsewhere/x.py": "x\n",
    }
    found = by_name(changes.diff("", Reader(root, unsaved=unsaved)))
    assert sorted(found) == ["diff fresh.py", "diff src/a.py"]
    assert "-x = 1\n+x = 3\n" in found["diff src/a.py"].text
    assert "--- /dev/null\n+++ b/fresh.py\n@@ -0,0 +1 @@\n+f = 1\n" in found["diff fresh.py"].text
    assert found["diff src/a.py"].note == "with unsaved changes"
    write(root, ".gitignore", text="fresh.py\n")
    found = by_name(changes.diff("src fresh.py", Reader(root, unsaved=unsaved)))
    assert [item.note for item in found.values()] == ["fresh.py is neither a revision nor a path"]
    assert "diff fresh.py" not in by_name(changes.diff("", Reader(root, unsaved=unsaved)))
    since = by_name(changes.diff("HEAD src", Reader(root, unsaved=unsaved)))
    assert "+x = 3\n" in since["diff src/a.py"].text
    between = changes.diff("HEAD..HEAD", Reader(root, unsaved=unsaved))
    assert [item.note for item in between] == ["nothing is changed"]
    staged = changes.diff("--staged", Reader(root, unsaved=unsaved))
    assert [item.note for item in staged] == ["nothing is changed"]


def test_a_commit_has_its_message_and_its_files(root: Path) -> None:
    write(root, "src/a.py", text="x = 2\n")
    git(root, "commit", "-qam", "Mend x\n\ndiff --git a/no b/no\nbecause")
    found = changes.commit("", Reader(root))
    assert len(found) == 2
    assert "Mend x" in found[0].name
    assert "because" in found[0].text
    assert "a@example.org" not in found[0].text
    assert found[1].name == f"commit {found[1].note.removeprefix('of ')} src/a.py"
    assert "+x = 2" in found[1].text
    assert changes.commit("HEAD~1", Reader(root))[1].text.startswith("diff --git")
    assert "write @diff:a..b" in changes.commit("a..b", Reader(root))[0].note
    assert changes.commit("zzz", Reader(root))[0].note == "there is no such commit"


def test_a_merge_shows_what_it_brought(root: Path) -> None:
    git(root, "checkout", "-qb", "side")
    write(root, "side.py")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "side")
    git(root, "checkout", "-q", "main")
    write(root, "main.py")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "main")
    git(root, "merge", "-q", "--no-edit", "side")
    (brought,) = changes.commit("HEAD", Reader(root))[1:]
    assert brought.name == f"commit {brought.note.removeprefix('of ')} side.py"


def test_files_with_odd_names_are_in_the_diff(root: Path) -> None:
    names = ["a b.txt", 'qu"ote.txt', "tab\there.txt", "ümlaut.txt", " b/x.txt"]
    for name in names:
        write(root, name, text="1\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "odd")
    for name in names:
        write(root, name, text="2\n")
    found = {item.path for item in changes.diff("", Reader(root))}
    assert found == {str(root / name) for name in names}


def test_binary_renamed_removed_and_long(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "x.dat").write_bytes(b"\0\1")
    write(root, "package-lock.json", "gone.py", text="y = 1\n" * 9)
    write(root, "old.py", text="z = 3\n" * 9)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    (root / "x.dat").write_bytes(b"\0\2")
    write(root, "package-lock.json", text="z\n")
    (root / "gone.py").unlink()
    git(root, "mv", "old.py", "renamed.py")
    write(root, "src/a.py", text="y\n" * 5000)
    monkeypatch.setattr(changes, "MAX_FILE_BYTES", 4096)
    found = by_name(changes.diff("", Reader(root)))
    assert "Binary files" in found["diff x.dat"].text
    assert found["diff package-lock.json"].note == "a lock file"
    assert "-y = 1" in found["diff gone.py"].text
    assert "rename from old.py" in found["diff renamed.py"].text
    assert found["diff src/a.py"].note == "its changes have 14 kB"
    monkeypatch.setattr(changes, "MAX_BYTES", 300)
    rest = changes.diff("", Reader(root))[-1]
    assert rest.is_left_out
    assert "over 300 bytes" in rest.note


def test_no_repository_and_one_without_a_commit(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    assert changes.diff("", Reader(plain))[0].note == "the project is in no git repository"
    assert changes.commit("", Reader(plain))[0].note == "the project is in no git repository"
    fresh = repository(tmp_path / "fresh")
    assert changes.diff("", Reader(fresh))[0].note == "nothing is changed"
    write(fresh, "a.py", "b.py")
    git(fresh, "add", "a.py")
    assert sorted(by_name(changes.diff("", Reader(fresh)))) == ["diff a.py", "diff b.py"]
    assert changes.commit("", Reader(fresh))[0].note == "there is no such commit"


def test_a_project_that_is_a_part_of_a_repository(root: Path) -> None:
    write(root, "src/a.py", "README.md", text="x = 2\n")
    found = by_name(changes.diff("", Reader(root / "src")))
    assert found["diff src/a.py"].path == str(root / "src/a.py")
    assert [item.path for item in changes.diff("a.py", Reader(root / "src"))] == [
        str(root / "src/a.py")
    ]


def test_names_of_commits_and_branches_for_completion(root: Path) -> None:
    git(root, "branch", "side")
    assert [subject for _, subject in changes.recent(root, Reader(root))] == ["one"]
    assert sorted(changes.branches(root, Reader(root))) == ["main", "side"]
