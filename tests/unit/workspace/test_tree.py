"""The copy of a project: what the user sees of it, checkpoints, and what is repaired."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from types import SimpleNamespace

import pytest

from lcursor.config import AgentConfig
from lcursor.errors import AgentFailed, Cancelled
from lcursor.process.sandbox import open_sandbox
from lcursor.workspace.tree import Tree
from tests.unit.project.trees import git
from tests.unit.workspace.projects import Project, everything_in, files_in, kinds, project

__all__ = ["project"]
KEY = "-----BEGIN RSA PRIVATE KEY-----\nabc\n"


def test_a_home_directory_is_not_copied(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project.root))
    project.write({"notes.md": "a\n"})
    with pytest.raises(AgentFailed, match="is your home directory"):
        project.tree()


def test_it_has_what_the_user_sees(project: Project) -> None:
    project.repository(
        {"a.py": "a\n", "b.py": "b\n", "gone.py": "", "src/run.sh": "#!/bin/sh\n"}, "*.log\n"
    )
    project.write({"b.py": "changed\n", "new.py": "new\n", "x.log": "ignored\n"})
    (project.root / "gone.py").unlink()
    (project.root / "src/run.sh").chmod(0o755)
    (project.root / "link").symlink_to("src")
    tree = project.tree(**{"a.py": "unsaved", "fresh/c.py": "c\nd"})
    assert files_in(tree.path) == {
        ".gitignore": b"*.log\n",
        "a.py": b"unsaved\n",
        "b.py": b"changed\n",
        "fresh/c.py": b"c\nd\n",
        "link": b"src",
        "new.py": b"new\n",
        "src/run.sh": b"#!/bin/sh\n",
    }
    assert os.access(tree.path / "src/run.sh", os.X_OK)
    assert (tree.path / "b.py").stat().st_mtime_ns == (project.root / "b.py").stat().st_mtime_ns
    assert tree.changed() == []


def test_without_secrets(project: Project) -> None:
    secret = {".env": "A=1\n", "deep/id_rsa": "x\n", "my.vault": "y\n", "notes.txt": KEY}
    project.repository({"a.py": "a\n", **secret})
    project.write({"secrets.yml": "untracked\n"})
    os.link(project.root / ".env", project.root / "deep/linked.txt")
    (project.root / "away").symlink_to("/etc/passwd")
    tree = Tree.create(project.root, project.run, unsaved={}, secrets=["*.vault"])
    assert files_in(tree.path) == {"a.py": b"a\n"}
    assert {*tree.left_out} == {*secret, "secrets.yml", "away", "deep/linked.txt"}
    again = Tree.open(project.root, project.run)
    assert (again.left_out, again.secret_reason("b.vault")) == (
        tree.left_out,
        "a pattern of privacy.exclude names it: *.vault",
    )
    (tree.path / ".env").write_text("made by a command\n")  # it would hide the user's
    assert tree.changed() == []


def test_unsaved_texts_of_files_that_are_left_out(project: Project) -> None:
    project.repository({"a.py": "a\n", ".env": "A=1\n"}, "*.log\n")
    project.write({"x.log": "x\n"})
    outside = project.root.parent / "outside.py"
    unsaved = {".env": "s", "x.log": "s", "new.pem": "s", str(outside): "s", "a.py": KEY}
    assert files_in(project.tree(**unsaved).path) == {"a.py": b"a\n", ".gitignore": b"*.log\n"}


def test_the_repository_is_not_written(project: Project) -> None:
    project.repository({"a.py": "a\n", "b.py": "b\n"})
    project.write({"a.py": "staged\n"})
    git(project.root, "add", "a.py")
    project.write({"a.py": "on disk\n", "new.py": "new\n"})
    before = everything_in(project.root)
    tree = project.tree(**{"a.py": "unsaved"})
    (tree.path / "b.py").write_text("agent\n")
    tree.restore(tree.checkpoint())
    assert kinds(tree.changed()) == {"b.py": "edit"}
    assert everything_in(project.root) == before


def test_checkpoints(project: Project) -> None:
    project.repository({"a.py": "a\n" * 20, "b.py": "b\n", "c.bin": b"\0\1", "d/e.py": "e\n"})
    tree = project.tree()
    assert tree.checkpoint() == tree.base == tree.last
    (tree.path / "a.py").rename(tree.path / "moved.py")
    (tree.path / "b.py").write_text("one\ntwo\n")
    first = tree.checkpoint()
    (tree.path / "b.py").chmod(0o755)
    (tree.path / "c.bin").write_bytes(b"\0\2")
    (tree.path / "d/e.py").unlink()
    (tree.path / "new.py").write_text("new\n")
    second = tree.checkpoint()
    assert len({tree.base, first, second}) == 3

    found = {each.path: each for each in tree.changed()}
    assert (found["a.py"].kind, found["a.py"].to) == ("rename", "moved.py")
    assert (found["b.py"].added, found["b.py"].removed) == (2, 1)
    assert [each.path for each in found.values() if each.is_made_executable] == ["b.py"]
    assert [each.path for each in found.values() if each.is_binary] == ["c.bin"]
    assert kinds(tree.changed(first)) == {
        "b.py": "edit", "c.bin": "edit", "d/e.py": "delete", "new.py": "create",
    }  # fmt: skip
    keys = [key for each in found.values() for key in each.keys if key.strip("0")]
    assert tree.contents(keys, 9)[found["b.py"].keys[1]] == b"one\ntwo\n"

    tree.restore(first)
    assert tree.checkpoint() == first
    assert files_in(tree.path) == {
        "b.py": b"one\ntwo\n", "c.bin": b"\0\1", "d/e.py": b"e\n", "moved.py": b"a\n" * 20,
    }  # fmt: skip
    tree.restore(tree.base)
    assert tree.changed() == []
    assert tree.problems == []


def test_a_change_within_the_time_resolution_of_files(project: Project) -> None:
    project.repository({"a.py": "one\n"})
    tree = project.tree()
    seen = {tree.base}
    for number in range(20):
        (tree.path / "a.py").write_text(f"{number:03}\n")
        seen.add(tree.checkpoint())
    assert len(seen) == 21


def test_a_repository_made_by_a_command_is_moved_aside(project: Project) -> None:
    project.repository({"a.py": "a\n", "src/b.py": "b\n"})
    tree = project.tree()
    git(tree.path, "init", "-q", "inner")
    (tree.path / "inner/c.py").write_text("c\n")
    (tree.path / "src/.git").mkdir()
    canary = project.run / "canary"
    git(tree.path / "inner", "config", "core.fsmonitor", f"touch {canary}")
    assert kinds(tree.changed()) == {"inner/c.py": "create"}
    assert sorted(words.split()[0] for words in tree.problems) == ["inner/.git", "src/.git"]
    assert len(list((project.run / "aside").iterdir())) == 2
    assert not canary.exists()


@pytest.mark.parametrize("with_git", [True, False])
def test_the_git_folder_is_replaced(project: Project, with_git: bool) -> None:
    project.repository({"a.py": "a\n"}) if with_git else project.write({"a.py": "a\n"})
    tree = project.tree()
    shutil.rmtree(tree.path / ".git", ignore_errors=True)
    (tree.path / ".git").write_text("gitdir: /elsewhere\n")
    (tree.path / "a.py").write_text("b\n")
    assert kinds(tree.changed()) == {"a.py": "edit"}
    assert len(tree.problems) == 1
    assert (tree.path / ".git").is_dir() == with_git
    assert tree.changed()
    assert len(tree.problems) == 1


@pytest.mark.parametrize("with_git", [True, False])
@pytest.mark.parametrize("is_reopened", [True, False])
def test_the_tree_is_deleted(project: Project, with_git: bool, is_reopened: bool) -> None:
    project.repository({"a.py": "a\n"}) if with_git else project.write({"a.py": "a\n"})
    tree = project.tree()
    (tree.path / "b.py").write_text("b\n")
    last = tree.checkpoint()
    shutil.rmtree(tree.path)
    if is_reopened:
        tree = Tree.open(project.root, project.run)
        assert (tree.last, tree.problems) == (last, [])
    assert tree.checkpoint() == last
    assert files_in(tree.path) == {"a.py": b"a\n", "b.py": b"b\n"}
    assert len(tree.problems) == (not is_reopened)


def test_the_tree_is_partly_deleted(project: Project) -> None:
    project.repository({"a.py": "a\n", "b/c.py": "c\n"})
    tree = project.tree()
    shutil.rmtree(tree.path / ".git")
    shutil.rmtree(tree.path / "b")
    tree = Tree.open(project.root, project.run)
    assert files_in(tree.path) == {"a.py": b"a\n", "b/c.py": b"c\n"}


@pytest.mark.parametrize("damage", ["index.lock", "index", "short index"])
def test_git_was_killed(project: Project, damage: str) -> None:
    project.repository({"a.py": "a\n"})
    tree = project.tree()
    (tree.path / "b.py").write_text("b\n")
    last = tree.checkpoint()
    if damage == "index.lock":
        (project.run / damage).touch()
        assert kinds(tree.changed()) == {"b.py": "create"}
        (project.run / damage).touch()
        tree.restore(last)
        (project.run / damage).touch()
    elif damage == "index":
        (project.run / "index").unlink()
    else:
        (project.run / "index").write_bytes((project.run / "index").read_bytes()[:-30])
    tree = Tree.open(project.root, project.run)
    assert tree.checkpoint() == last
    assert files_in(tree.path) == {"a.py": b"a\n", "b.py": b"b\n"}


def test_its_folder_is_deleted(project: Project) -> None:
    project.repository({"a.py": "a\n"})
    tree = project.tree()
    shutil.rmtree(project.run)
    with pytest.raises(AgentFailed, match="gone"):
        Tree.open(project.root, project.run)
    with pytest.raises(AgentFailed):
        tree.checkpoint()


def test_a_copy_that_is_stopped_leaves_nothing(project: Project) -> None:
    project.repository({"a.py": "a\n"})
    with pytest.raises(Cancelled):
        Tree.create(project.root, project.run, unsaved={}, cancel=lambda: True)
    assert list(project.run.iterdir()) == []


@pytest.mark.sandbox
def test_git_works_in_the_sandbox(project: Project) -> None:
    project.repository({"a.py": "a\n", ".env": "A=1\n", "node_modules/x.js": ""}, "node_modules\n")
    git(project.root, "rm", "-rq", "--cached", "node_modules")
    git(project.root, "commit", "-qm", "two")
    project.write({"b.py": "staged\n"})
    git(project.root, "add", "b.py")
    project.write({"a.py": "by the user\n", "big": b"\0" * (17 << 20)})
    tree = project.tree()
    (tree.path / "c.py").write_text("c\n")
    script = (
        "git log --format=%s main; git blame -s a.py; git status --short; git diff --stat;"
        "ls node_modules; wc -c big; ls -a .git/hooks; echo x > .git/HEAD; rm -rf .git; echo end"
    )
    confinement = tree.confinement(AgentConfig())
    output = open_sandbox().run(["sh", "-c", script], confinement, max_s=30, max_bytes=9999)
    lines = output.data.decode().splitlines()
    assert lines[:2] == ["two", "one"]
    assert "00000000 1) by the user" in lines[2]
    assert lines[3:6] == [" M a.py", "A  b.py", "?? c.py"]
    assert lines[6:] == [
        " a.py | 2 +-", " 1 file changed, 1 insertion(+), 1 deletion(-)", "x.js",
        f"{17 << 20} big", "end",
    ]  # fmt: skip
    assert kinds(tree.changed()) == {"c.py": "create"}
    assert tree.problems == []


UNLISTABLE = """
import subprocess, sys
from pathlib import Path
from lcursor.workspace.tree import Tree
root, run, canary = map(Path, sys.argv[1:])
tree = Tree.create(root, run, unsaved={})
def shell(script):
    subprocess.run(["sh", "-ec", script, "sh", canary], cwd=tree.path, check=True)
shell('''
mkdir d; cd d; git init -q .; echo '* filter=x' > .gitattributes; echo 1 > f; git add -A
git -c user.name=A -c user.email=a@b.c commit -qm x
git config filter.x.clean "touch $1; cat"
chmod 0311 .
''')
tree.checkpoint()
shell("sleep 0.05; echo 222 > d/f")
tree.checkpoint()
print(canary.exists(), [each.path for each in tree.changed()], *tree.problems)
"""


def test_a_repository_in_a_folder_that_cannot_be_listed_runs_nothing(
    project: Project, tmp_path: Path
) -> None:
    project.repository({"a.py": "a\n"})
    command = [sys.executable, "-c", UNLISTABLE]
    if not os.getuid():  # root lists every folder
        lost = "-dac_override,-dac_read_search"
        command = ["setpriv", "--bounding-set", lost, "--inh-caps", lost, *command]
    paths = [str(each) for each in (project.root, project.run, tmp_path / "canary")]
    done = subprocess.run([*command, *paths], capture_output=True, text=True)
    assert done.stdout.startswith("False ['d/.gitattributes', 'd/f'] d/.git was moved"), done


@pytest.mark.parametrize("name", ["HEAD", "commondir"])
def test_a_pipe_in_the_mark_of_git_is_replaced(project: Project, name: str) -> None:
    project.repository({"a.py": "a\n"})
    tree = project.tree()
    (tree.path / ".git" / name).unlink()
    os.mkfifo(tree.path / ".git" / name)
    tree.checkpoint()
    assert (tree.path / ".git" / name).is_file()


KEYS: dict[str, str | bytes] = {
    "utf-16": f"some text\n{KEY}".encode("utf-16"),
    "jwk": '{"kty": "OKP", "d": "' + "a" * 43 + '"}\n',
    "wireguard": f"PrivateKey = {'a' * 43}=\n",
    "base64": b64encode(f"  {KEY}".encode()).decode(),
    "age": "AGE-SECRET-KEY-1QQQQQQQQQQQQ\n",
}


@pytest.mark.parametrize("name", KEYS)
def test_private_keys_of_each_format_are_left_out(project: Project, name: str) -> None:
    project.repository({"a.py": "a\n", "notes.txt": KEYS[name]})
    assert files_in(project.tree().path) == {"a.py": b"a\n"}


def test_what_the_sandbox_may_read(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.repository({"a.py": "a\n", "web/b.js": "b\n"}, ".venv\nnode_modules\n")
    elsewhere = project.home / "venv"
    elsewhere.mkdir()
    (project.root / ".venv").symlink_to(elsewhere)
    (project.root / "web/node_modules").mkdir()
    monkeypatch.setenv("TOKEN", "t")
    config = AgentConfig(env=("TOKEN", "MISSING"), readable=("~/venv", "/missing", "relative"))
    tree = project.tree()
    found = tree.confinement(config)
    assert found.env == {"TOKEN": "t"}
    assert (found.tree, found.root) == (project.run / "tree", project.root)
    assert found.read_only == ((project.run / "history", project.root / ".git"),)
    assert {*found.packages} == {project.root / ".venv", project.root / "web/node_modules"}
    assert found.readable == (elsewhere,)
    assert tree.hidden(config) == [
        f"Commands do not see {project.root}/.venv: it is, or is below, a link to {elsewhere}."
    ]


def test_the_copy_has_the_users_bytes_whatever_git_converts(project: Project) -> None:
    files = {
        ".gitattributes": b"* text=auto\n*.id ident\n*.u16 working-tree-encoding=UTF-16LE-BOM\n"
        b"*.crlf eol=crlf\n*.up filter=up\n",
        "mixed.txt": b"a\r\nb\nc\r\n",
        "crlf.txt": b"a\r\nb\r\n",
        "a.id": b"x $Id: 123 $\ny\n",
        "a.u16": b"\xff\xfea\0\n\0",
        "lf.crlf": b"a\nb\n",
        "c.crlf": b"a\r\nb\r\n",
        "a.up": b"abc\n",
    }
    project.repository({})
    git(project.root, "config", "filter.up.clean", "wc -c")
    project.write(files)
    git(project.root, "add", "-A")
    git(project.root, "commit", "-qm", "one")
    tree = project.tree()
    assert files_in(tree.path) == files
    assert tree.changed() == []
    for name in files:
        with (tree.path / name).open("ab") as file:
            file.write(b"new\r\n")
    assert kinds(tree.changed()) == dict.fromkeys(files, "edit")
    before = {each.path: each.keys[0] for each in tree.changed()}
    contents = tree.contents([*before.values()], 1 << 20)
    assert {path: contents[key] for path, key in before.items()} == files


def test_the_folder_has_a_tree(project: Project) -> None:
    project.repository({"a.py": "a\n"})
    tree = project.tree()
    with pytest.raises(AgentFailed, match="exists"):
        project.tree()
    assert files_in(tree.path) == {"a.py": b"a\n"}


def test_a_project_without_files(project: Project) -> None:
    project.root.mkdir()
    tree = project.tree()
    assert tree.checkpoint() == tree.base
    (tree.path / "a.py").write_text("a\n")
    assert kinds(tree.changed()) == {"a.py": "create"}
    assert tree.problems == []


def test_files_are_as_before_after_a_trial(project: Project) -> None:
    root = project.repository({"a.py": "a\n", "b.py": "b\n"})
    tree = project.tree()
    (tree.path / "a.py").write_text("changed\n")
    with tree.restoring():
        (tree.path / "a.py").write_text("a\n")
        tree.checkpoint()
    expected = {"a.py": b"changed\n", "b.py": b"b\n"}
    assert files_in(tree.path) == expected
    with contextlib.ExitStack() as stack:
        stack.enter_context(tree.restoring())
        (tree.path / "a.py").write_text("a\n")
        (tree.path / "new.py").write_text("new\n")
        tree.checkpoint()
        again = Tree.open(root, tree.folder)  # as after a kill
        assert files_in(again.path) == expected
        assert kinds(again.changed()) == {"a.py": "edit"}
        (tree.path / "a.py").write_text("later\n")
        again.checkpoint()
        assert kinds(Tree.open(root, tree.folder).changed()) == {"a.py": "edit"}
        assert files_in(again.path)["a.py"] == b"later\n"


def test_a_file_that_cannot_be_read_counts_as_changed(project: Project) -> None:
    project.repository({"run": "#!/bin/sh\n"})
    tree = project.tree()
    (tree.path / "run").write_text("#!/bin/sh\nrm x\n")
    (tree.path / "run").chmod(0o111)
    (tree.path / "run.sh").write_text("x\n")
    (tree.path / "run.sh").chmod(0)
    assert kinds(tree.changed()) == {"run": "edit", "run.sh": "create"}
    assert (tree.path / "run").stat().st_mode & 0o777 == 0o511


def test_a_copy_leaves_space_on_the_disk(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.repository({"a.bin": b"\0" * (3 << 20)})
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=258 << 20))
    with pytest.raises(AgentFailed, match="a copy needs 3 MB, and 258 MB are free"):
        project.tree()
    monkeypatch.undo()
    project.tree("again")
