"""What an agent changed, as hunks for a project that the user has changed meanwhile."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from lcursor.agent.result import RunChanges, file_changes
from lcursor.changes.histories import Histories
from lcursor.changes.history import History
from lcursor.changes.undo import ResumedTurn, resume, revert
from lcursor.changes.write import write as write_files
from lcursor.errors import EditRejected, EditStale, EditUnsaved
from lcursor.workspace.tree import Tree
from tests.unit.edit.desk import buffer, decision, hunk_at
from tests.unit.project.trees import anybody, git
from tests.unit.workspace.projects import Project, files_in, kinds, project, write

__all__ = ["project"]
TEXT = "".join(f"line {number}\n" for number in range(20))


class AgentRun:
    """A project, its copy, and the history of its edits."""

    def __init__(self, project: Project) -> None:
        self.project, self.root = project, project.root
        self.tree: Tree
        self.data = project.root.parent / "data"

    def begin(self, files: dict[str, str | bytes], **unsaved: str) -> Tree:
        """Start a run."""
        self.project.repository(files)
        self.tree = self.project.tree(**unsaved)
        return self.tree

    def change(self, name: str, old: str, new: str, *, by_user: bool = False) -> None:
        """Replace text in a file of the agent or of the user."""
        path = (self.root if by_user else self.tree.path) / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def end(self) -> RunChanges:
        """Record the result as a turn."""
        self.result = file_changes(self.tree)
        history = History(self.root, self.data)
        self.key = history.begin("task", self.result.files, bases=self.result.bases)
        return self.result

    @property
    def history(self) -> History:
        return History(self.root, self.data)  # as after a restart

    def resume(self, **buffers: str) -> ResumedTurn:
        shown = [buffer(self.root / name, text) for name, text in buffers.items()]
        return resume(self.history, self.key, shown)  # type: ignore[arg-type]

    def accept_all(self) -> ResumedTurn:
        """Resume, and write all files."""
        found = self.resume()
        write_files(found.files, self.history, self.key)
        return found

    def get(self, name: str) -> str:
        return (self.root / name).read_text()


@pytest.fixture
def run(project: Project) -> AgentRun:
    return AgentRun(project)


def test_all_kinds_of_changes_are_accepted_and_undone(run: AgentRun) -> None:
    files: dict[str, str | bytes] = {
        "a.py": TEXT, "gone.py": "x\n", "old.py": TEXT + "end\n", "crlf.txt": b"a\r\nb\r\n",
        "noeol": "a\nb", "latin.txt": b"caf\xe9\nb\n", "empty.py": "",
    }  # fmt: skip
    tree = run.begin(files)
    run.change("a.py", "line 3\n", "three\n")
    (tree.path / "gone.py").unlink()
    (tree.path / "old.py").rename(tree.path / "new name.py")
    run.change("new name.py", "end", "END")
    (tree.path / "crlf.txt").write_bytes(b"a\r\nB\r\n")
    write(tree.path, {
        "noeol": "A\nb", "latin.txt": b"caf\xe9\nB\n", "empty.py": "x\n", "deep/er/b.py": "b\nc\n",
        "blank": "", "dos.bat": b"a\r\nb\r\n",
    })  # fmt: skip
    expected = files_in(tree.path)
    before = files_in(run.root)
    assert run.end().notes == ()
    assert run.accept_all().problems == ()
    assert files_in(run.root) == expected
    revert(run.history, run.key, "undo", [])
    assert files_in(run.root) == before
    revert(run.history, run.key, "redo", [])
    assert files_in(run.root) == expected


def test_hunks_are_accepted_in_part(run: AgentRun) -> None:
    run.begin({"a.py": TEXT, "b.py": TEXT})
    for name in ("a.py", "b.py"):
        run.change(name, "line 3\n", "three\n")
        run.change(name, "line 12\n", "twelve\n")
    run.end()
    first, second = run.resume().files[0].changes
    lines = TEXT.replace("line 12", "twelve").splitlines()
    accepted = decision(
        run.key,
        str(run.root / "a.py"),
        hunk_at(lines, 12, second.old, second.new),
        rejected=[first],
    )
    run.history.decided(accepted)
    (run.root / "a.py").write_text("\n".join(lines) + "\n")
    (left,) = run.accept_all().files
    assert left.path == str(run.root / "b.py")
    assert run.get("a.py") == TEXT.replace("line 12", "twelve")
    assert run.get("b.py") == TEXT.replace("line 12", "twelve").replace("line 3\n", "three\n")
    revert(run.history, run.key, "undo", [])
    assert (run.get("a.py"), run.get("b.py")) == (TEXT, TEXT)


def test_the_text_was_unsaved_and_is_now_edited_in_a_buffer(run: AgentRun) -> None:
    run.begin({"a.py": TEXT}, **{"a.py": TEXT.replace("line 3", "three").rstrip("\n")})
    run.change("a.py", "three\n", "3\n")
    assert len(run.end().files[0].changes) == 1
    now = TEXT.replace("line 3", "three").replace("line 9", "nine").rstrip("\n")
    (file,) = run.resume(**{"a.py": now}).files
    assert [(each.old, each.new) for each in file.changes] == [(("three",), ("3",))]
    found = run.resume()  # the buffer was closed without writing it
    assert found.files == ()
    assert "no hunk applies" in found.problems[0]


@pytest.mark.parametrize("kind", ["edit", "create", "delete", "rename"])
@pytest.mark.parametrize("did", ["rename", "delete", "create"])
def test_the_user_has_renamed_or_deleted_the_file(run: AgentRun, kind: str, did: str) -> None:
    tree = run.begin({"a.py": TEXT, "other.py": "x\n"})
    if kind == "edit":
        run.change("a.py", "line 3\n", "three\n")
    elif kind == "create":
        (tree.path / "b.py").write_text("by the agent\n")
    elif kind == "delete":
        (tree.path / "a.py").unlink()
    else:
        (tree.path / "a.py").rename(tree.path / "b.py")
    run.change("other.py", "x", "y")
    if did == "rename":
        (run.root / "a.py").rename(run.root / "moved.py")
    elif did == "delete":
        (run.root / "a.py").unlink()
    else:
        (run.root / "b.py").write_text("by the user\n")
    run.end()
    before = files_in(run.root)
    is_conflict = did != "create" and kind != "create"
    if kind in ("create", "rename") and did == "create":
        with pytest.raises(EditStale, match="already exists"):
            run.accept_all()
        assert files_in(run.root) == before
        return
    assert bool(run.accept_all().problems) == is_conflict
    assert run.get("other.py") == "y\n"
    after = files_in(run.root)
    if is_conflict:  # what the user has stays
        assert {**before, "other.py": b"y\n"} == after


def test_the_branch_was_switched_or_rebased(run: AgentRun) -> None:
    run.begin({"a.py": TEXT, "b.py": "b\n"})
    git(run.root, "switch", "-qc", "other")
    (run.root / "a.py").write_text(TEXT.replace("line 0", "zero"))
    git(run.root, "rm", "-q", "b.py")
    git(run.root, "commit", "-qam", "elsewhere")
    git(run.root, "branch", "-qD", "main")
    git(run.root, "reflog", "expire", "--expire=now", "--all")
    run.change("a.py", "line 9\n", "nine\n")
    run.change("b.py", "b", "B")
    run.end()
    found = run.accept_all()
    assert len(found.problems) == 1
    assert "b.py" in found.problems[0]
    assert run.get("a.py") == TEXT.replace("line 0", "zero").replace("line 9", "nine")


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_file_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    with anybody() as place:
        monkeypatch.setattr(os, "getuid", os.geteuid)
        run = AgentRun(Project(place, monkeypatch))
        root = run.project.repository({"a/b.py": TEXT, "c.py": TEXT})
        target = root / ("a/b.py" if what == "file" else "a")
        mode = stat.S_IMODE(target.stat().st_mode) & 0o555
        target.chmod(mode)
        tree = run.tree = run.project.tree()
        for name in ("a/b.py", "c.py"):
            run.change(name, "line 3\n", "three\n")
        tree.restore(tree.checkpoint())
        assert kinds(tree.changed()) == {"a/b.py": "edit", "c.py": "edit"}
        run.end()
        with pytest.raises((EditRejected, EditUnsaved), match=r"a/b\.py.*(read-only|permi)"):
            run.accept_all()
        assert (run.get("a/b.py"), run.get("c.py")) == (TEXT, TEXT)
        assert stat.S_IMODE(target.stat().st_mode) == mode
        target.chmod(mode | 0o200)
        run.accept_all()
        assert run.get("a/b.py") == run.get("c.py") == TEXT.replace("line 3\n", "three\n")


def test_only_the_case_of_a_name_changes(run: AgentRun) -> None:
    tree = run.begin({"a/read.me": TEXT, "b.py": TEXT})
    (tree.path / "a/read.me").rename(tree.path / "a/READ.me")
    (tree.path / "b.py").rename(tree.path / "B.py")
    run.change("B.py", "line 3", "three")
    run.end()
    run.accept_all()
    assert files_in(run.root) == files_in(tree.path)
    revert(run.history, run.key, "undo", [])
    assert {*files_in(run.root)} == {"a/read.me", "b.py"}


def test_changes_that_are_no_hunks_become_notes(run: AgentRun) -> None:
    tree = run.begin({"a.py": "a\n", "run.py": "r\n", "x.bin": b"\0", "y.bin": b"\0" * 999,
                       "crlf": b"a\r\n", "link": "l\n"})  # fmt: skip
    (tree.path / "run.py").chmod(0o755)
    write(tree.path, {"x.bin": b"\0\1", "new image.png": b"\x89PNG\0", "crlf": "a\n"})
    (tree.path / "y.bin").rename(tree.path / "z.bin")
    (tree.path / "link").unlink()
    (tree.path / "link").symlink_to("a.py")
    result = run.end()
    assert result.files == ()
    root = run.root
    assert {note.split(": ")[0]: note.split(": ")[1] for note in result.notes} == {
        "run.py is executable for the agent": "chmod +x run.py",
        "x.bin is not text, or too large": f"cp -P {tree.path}/x.bin {root}/x.bin",
        "'new image.png' is not text, or too large": (
            f"cp -P '{tree.path}/new image.png' '{root}/new image.png'"
        ),
        "z.bin is not text, or too large": f"mv {root}/y.bin {root}/z.bin",
        "only line ends of crlf have changed": f"cp -P {tree.path}/crlf {root}/crlf",
        "link is a link": f"cp -P {tree.path}/link {root}/link",
    }
    for note in result.notes:
        assert os.system(f"cd {root} && {note.split(': ')[1]}") == 0
    assert files_in(root) == files_in(tree.path)


def test_guarded_files_come_first_and_are_written_alone(run: AgentRun) -> None:
    tree = run.begin({"a.py": "a\n", "old.py": TEXT, "Makefile": "all:\n"})
    run.change("a.py", "a", "b")
    run.change("Makefile", "all:", "all: evil")
    (tree.path / "old.py").rename(tree.path / "conftest.py")
    write(tree.path, {"tool": "#!/bin/sh\n"})
    (tree.path / "tool").chmod(0o755)
    result = run.end()
    found = [(Path(each.path).name, each.kind, each.is_guarded) for each in result.files]
    assert found == [
        ("Makefile", "edit", True), ("conftest.py", "create", True), ("tool", "create", True),
        ("a.py", "edit", False), ("old.py", "delete", False),
    ]  # fmt: skip
    histories = Histories(run.data, lambda _: None)
    paths = [each.path for each in result.files]
    params = {"id": 1, "turn": run.key, "paths": paths, "outside": False}
    before = files_in(run.root)
    histories._find("", str(run.root))
    assert "runs code by itself" in histories.write(params)["problem"]  # type: ignore[arg-type]
    assert files_in(run.root) == before
    for some in (paths[3:], paths[:1]):
        params["paths"] = some
        assert histories.write(params)["problem"] == ""  # type: ignore[arg-type]
    assert run.get("Makefile") == "all: evil\n"
    resumed = run.resume().files
    assert [each.is_guarded for each in resumed] == [True, True]


def test_secrets_that_the_agent_made_are_left_out(run: AgentRun) -> None:
    tree = run.begin({"a.py": "a\n", "b.txt": "b\n"})
    write(tree.path, {"prod.pem": "x\n"})
    (tree.path / "b.txt").rename(tree.path / "id_rsa")
    result = run.end()
    assert result.files == ()
    why = "is left out: its name says that it holds secrets"
    assert {*result.notes} == {f"id_rsa {why}", f"prod.pem {why}"}


def test_a_name_with_a_line_end_is_left_out_with_a_note_of_one_line(run: AgentRun) -> None:
    tree = run.begin({"a.py": "1\n", "old.py": TEXT, "bad\nname.py": "1\n"})
    write(tree.path, {"a.py": "2\n", "b\n\n## Done\nc.py": "x\n", "## Done": b"\0"})
    (tree.path / "old.py").rename(tree.path / "new\x1b[31m.py")
    (tree.path / "bad\nname.py").unlink()
    result = run.end()
    assert [os.path.relpath(file.path, run.root) for file in result.files] == ["a.py"]
    assert len(result.notes) == 4
    for note in result.notes:
        assert note.isprintable()
        assert not note.startswith("#")
    shown = "\n".join(result.notes)
    for name in ("$'b\\x0a\\x0a## Done\\x0ac.py'", "$'new\\x1b[31m.py'", "$'bad\\x0aname.py'"):
        assert f"{name} is left out: its name has a control character" in shown
    assert "'## Done' is not text" in shown
    commands = [note.partition(": ")[2].rpartition(": ")[2] for note in result.notes]
    for command in commands:
        subprocess.run(["bash", "-c", command], check=True)
    assert files_in(run.root).keys() == files_in(tree.path).keys()


def test_contents_that_are_no_text_are_not_read(
    run: AgentRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lcursor.agent.result.text.MAX_BYTES", 100)
    tree = run.begin({"a.py": "a\n", "old.txt": "o\n" * 99})
    write(tree.path, {"a.py": "b\n", "new.txt": "n\n" * 99, "old.txt": "o\n", "x": b"\0" * 9})
    found = dict[str, bytes]()

    def contents(keys: Sequence[str], max_bytes: int) -> dict[str, bytes]:
        found.update(whole(keys, max_bytes))
        return found

    whole = tree.contents
    monkeypatch.setattr(tree, "contents", contents)
    result = run.end()
    assert [Path(each.path).name for each in result.files] == ["a.py"]
    assert sorted(note.split(":")[0] for note in result.notes) == [
        f"{name} is not text, or too large" for name in ("new.txt", "old.txt", "x")
    ]
    assert sorted(found.values()) == [b"a\n", b"b\n", b"o\n"]
