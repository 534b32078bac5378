"""Copies of unusual repositories and files; the user's repository is never written."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.agent.result import file_changes
from lcursor.changes.history import History
from lcursor.changes.undo import resume, revert
from lcursor.changes.write import write as write_files
from lcursor.config import AgentConfig
from lcursor.errors import AgentFailed
from lcursor.process.sandbox import open_sandbox
from lcursor.workspace.tree import Tree
from tests.fakes.disk import full_disk, small_disk
from tests.unit.project.trees import git
from tests.unit.workspace.projects import Project, everything_in, files_in, kinds, project
from tests.unit.workspace.projects import write as write_all

__all__ = ["project"]


@pytest.fixture(autouse=True)
def unchanged(project: Project) -> Iterator[None]:
    """Check that nothing but the tests has written the repository."""
    seen = dict[str, object]()
    create = Tree.create

    def watched(root: Path, folder: Path, **more: object) -> Tree:
        for each in (root, root.parent / "bare.git", root.parent / "main"):
            seen[str(each)] = everything_in(each)
        return create(root, folder, **more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tree, "create", watched)
        yield
    for each, before in seen.items():
        assert everything_in(Path(each)) == before


def round_trip(project: Project, tree: Tree, name: str = "a.py") -> dict[str, bytes]:
    """Change files, restore them, record the result, accept and undo all of it.

    Returns:
        The files of the start.
    """
    before, users = files_in(tree.path), files_in(project.root)
    (tree.path / name).write_text("by the agent\n")
    (tree.path / "made by the agent").write_text("new\n")
    made = {name: b"by the agent\n", "made by the agent": b"new\n"}
    assert kinds(tree.changed()) == {name: "edit", "made by the agent": "create"}
    step, result = tree.last, file_changes(tree)
    assert result.notes == ()
    tree.restore(tree.base)
    assert files_in(tree.path) == before
    tree.restore(step)
    assert files_in(tree.path) == before | made
    tree.restore(tree.base)
    shutil.rmtree(tree.path)
    assert files_in(Tree.open(project.root, tree.folder).path) == before
    history = History(project.root, project.root.parent / "edits")
    key = history.begin("task", result.files, bases=result.bases)
    write_files(resume(history, key).files, history, key)
    assert files_in(project.root) == users | made
    assert revert(history, key, "undo", []).problems == ()
    assert files_in(project.root) == users
    return before


def sandboxed(tree: Tree, script: str) -> list[str]:
    """Return the output of a script in the sandbox."""
    command, confinement = ["sh", "-c", script], tree.confinement(AgentConfig())
    output = open_sandbox().run(command, confinement, max_s=30, max_bytes=9999)
    return (output.data + output.errors).decode().splitlines()


@pytest.mark.sandbox
def test_no_commits(project: Project) -> None:
    project.repository({})
    project.write({"a.py": "a\n"})
    tree = project.tree()
    assert sandboxed(tree, "git status --short --branch") == [
        "## No commits yet on main",
        "?? a.py",
    ]
    assert round_trip(project, tree) == {"a.py": b"a\n"}


def test_an_empty_project(project: Project) -> None:
    project.repository({})
    tree = project.tree()
    assert files_in(tree.path) == {}
    (tree.path / "a.py").write_text("a\n")
    assert kinds(tree.changed()) == {"a.py": "create"}


@pytest.mark.parametrize("files", [{}, {"a.py": "a\n", "sub/b.py": "b\n", "build/x.o": "o"}])
@pytest.mark.sandbox
def test_no_git(project: Project, files: dict[str, str | bytes]) -> None:
    project.root.mkdir()
    project.write(files)
    project.write({".gitignore": "*.log\n", "x.log": "x", ".env": "s", "node_modules/y.js": "y"})
    (project.root / "link").symlink_to(".gitignore")
    tree = project.tree()
    wanted = {name: str(data).encode() for name, data in files.items() if name[0] != "b"}
    assert files_in(tree.path) == {**wanted, ".gitignore": b"*.log\n", "link": b".gitignore"}
    (tree.path / "build").mkdir()
    (tree.path / "build/z.o").touch()
    assert tree.changed() == []
    shutil.rmtree(tree.path / "build")
    assert sandboxed(tree, "ls -d .git node_modules/*; git status")[0] == "node_modules/y.js"
    round_trip(project, tree, ".gitignore")


@pytest.mark.sandbox
def test_a_linked_work_tree(project: Project) -> None:
    main = project.root.parent / "main"
    project.repository({"a.py": "a\n"})
    project.root.rename(main)
    git(main, "worktree", "add", "-q", "-b", "side", str(project.root))
    project.write({"b.py": "b\n"})
    tree = project.tree()
    assert sandboxed(tree, "git log --format=%D; git status --short") == [
        "HEAD -> side, main", "?? b.py",
    ]  # fmt: skip
    assert round_trip(project, tree) == {"a.py": b"a\n", "b.py": b"b\n"}


@pytest.mark.sandbox
def test_the_work_tree_of_a_bare_repository(project: Project) -> None:
    project.repository({"a.py": "a\n"})
    bare = project.root.parent / "bare.git"
    git(project.root.parent, "clone", "-q", "--bare", str(project.root), str(bare))
    shutil.rmtree(project.root)
    git(bare, "worktree", "add", "-q", str(project.root), "main")
    tree = project.tree()
    assert sandboxed(tree, "git log --format=%s; git status --short") == ["one"]
    assert round_trip(project, tree) == {"a.py": b"a\n"}


@pytest.mark.sandbox
def test_submodules(project: Project) -> None:
    library = project.root.parent / "library"
    library.mkdir()
    git(library, "init", "-q")
    write_all(library, {"l.py": "l\n", ".env": "s\n"})
    git(library, "add", "-A")
    git(library, "commit", "-qm", "library")
    project.repository({"a.py": "a\n"})
    add = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library))
    for name in ("lib", "away"):
        git(project.root, *add, name)
    git(project.root, "commit", "-qam", "two")
    git(project.root, "submodule", "deinit", "-q", "away")
    project.write({"lib/l.py": "changed\n", "lib/new.py": "n\n"})
    hook = project.root.parent / "ran"
    git(project.root / "lib", "config", "core.fsmonitor", f"touch {hook}")
    tree = project.tree()
    found = files_in(tree.path)
    assert {*found} == {".gitmodules", "a.py", "lib/l.py", "lib/new.py"}
    assert found["lib/l.py"] == b"changed\n"
    assert {*tree.left_out} == {"lib/.env", "away"}
    assert sandboxed(tree, "git status --short") == []
    round_trip(project, tree, "lib/l.py")
    assert not hook.exists()


def test_another_repository_in_the_project(project: Project) -> None:
    project.repository({"a.py": "a\n"})
    git(project.root, "init", "-q", "other")
    project.write({"other/b.py": "b\n"})
    tree = project.tree()
    assert round_trip(project, tree) == {"a.py": b"a\n"}
    assert tree.left_out == {"other": "another repository"}


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 9\n".format("0" * 64)


@pytest.mark.sandbox
def test_git_lfs_is_missing(project: Project) -> None:
    project.repository({"a.py": "a\n", "x.psd": POINTER})
    for word in ("clean", "smudge", "process"):
        git(project.root, "config", f"filter.lfs.{word}", f"git-lfs-is-missing {word} %f")
    git(project.root, "config", "filter.lfs.required", "true")
    project.write({".gitattributes": "*.psd filter=lfs diff=lfs merge=lfs -text\n"})
    tree = project.tree()
    assert sandboxed(tree, "git status --short; head -c 7 x.psd") == [
        "?? .gitattributes",
        "version",
    ]
    assert round_trip(project, tree)["x.psd"] == POINTER.encode()


@pytest.mark.parametrize("where", ["repository", "user"])
def test_no_filter_runs(project: Project, where: str) -> None:
    canary = project.root.parent / "ran"
    project.repository({"a.py": "a\n", "x.psd": POINTER, "y.psd": POINTER})
    project.write({".gitattributes": "*.psd filter=lfs diff=lfs merge=lfs -text\n"})
    git(project.root, "add", ".gitattributes")
    git(project.root, "commit", "-qm", "two")
    settings = {"clean": "clean", "smudge": "smudge", "process": "process", "required": "true"}
    place = ["--file", str(project.home / ".gitconfig")] if where == "user" else []
    for name, word in settings.items():
        value = word if word == "true" else f"touch {canary}; cat"
        git(project.root, "config", *place, f"filter.lfs.{name}", value)
    for name in ("textconv", "command"):
        git(project.root, "config", *place, f"diff.lfs.{name}", f"touch {canary}; cat")
    for name in ("post-checkout", "post-index-change", "pre-commit", "reference-transaction"):
        hook = project.root / f".git/hooks/{name}"
        hook.write_text(f"#!/bin/sh\ntouch {canary}\n")
        hook.chmod(0o755)
    git(project.root, "config", *place, "core.fsmonitor", f"touch {canary}")
    project.write({"y.psd": b"real \0 content"})
    tree = project.tree()
    assert files_in(tree.path)["x.psd"] == POINTER.encode()
    assert files_in(tree.path)["y.psd"] == b"real \0 content"
    (tree.path / "x.psd").write_bytes(b"painted \0 by the agent")
    assert "x.psd is not text" in file_changes(tree).notes[0]
    tree.restore(tree.base)
    assert len(round_trip(project, tree)) == 4
    assert not canary.exists()


@pytest.mark.sandbox
def test_a_sparse_checkout(project: Project) -> None:
    project.repository({"a.py": "a\n", "here/b.py": "b\n", "there/c.py": "c\n", "d.cfg": "d\n"})
    git(project.root, "sparse-checkout", "set", "--cone", "--sparse-index", "here")
    git(project.root, "update-index", "--skip-worktree", "d.cfg")
    project.write({"d.cfg": "my own\n"})
    tree = project.tree()
    assert sandboxed(tree, "git status --short; cat d.cfg") == [" M d.cfg", "my own"]
    assert {*round_trip(project, tree)} == {"a.py", "here/b.py", "d.cfg"}


@pytest.mark.parametrize("mode", ["intent to add", "conflict", "assume unchanged", "split", "lock"])
def test_states_of_the_index(project: Project, mode: str) -> None:
    root = project.repository({"a.py": "a\n", "b.py": "b\n"})
    expected = {"a.py": b"a\n", "b.py": b"changed\n"}
    if mode == "conflict":
        git(root, "switch", "-qc", "other")
        project.write({"b.py": "theirs\n"})
        git(root, "commit", "-qam", "theirs")
        git(root, "switch", "-q", "main")
        project.write({"b.py": "ours\n"})
        git(root, "commit", "-qam", "ours")
        with pytest.raises(Exception, match="merge"):
            git(root, "merge", "other")
        expected["b.py"] = (root / "b.py").read_bytes()
        assert b"<<<<<<<" in expected["b.py"]
    elif mode == "intent to add":
        project.write({"b.py": "changed\n", "c.py": "c\n"})
        git(root, "add", "-N", "c.py")
        expected["c.py"] = b"c\n"
    else:
        if mode == "split":
            git(root, "update-index", "--split-index")
        elif mode == "assume unchanged":
            git(root, "update-index", "--assume-unchanged", "b.py")
        project.write({"b.py": "changed\n"})
    if mode == "lock":
        (root / ".git/index.lock").touch()
    assert round_trip(project, project.tree()) == expected


def test_a_change_in_the_second_in_which_the_index_was_written(project: Project) -> None:
    root = project.repository({"a.py": "one\n"})
    status = (root / "a.py").stat()
    project.write({"a.py": "two\n"})  # the same size
    os.utime(root / "a.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    index = root / ".git/index"
    os.utime(index, ns=(status.st_atime_ns, status.st_mtime_ns))
    git(root, "config", "core.trustctime", "false")
    assert files_in(project.tree().path) == {"a.py": b"two\n"}


NAMES = ["with\nline end", "tab\t", b"caf\xe9".decode("utf-8", "surrogateescape"), "ü", "-rf", "a*",
         ":(top)x", "a\\b", " blank ", "'", '"quoted"', "[x]", "#h", "!n"]  # fmt: skip


def test_names_and_line_ends(project: Project) -> None:
    files: dict[str, str | bytes] = {name: f"{name!r}\n" for name in NAMES}
    files |= {"crlf": b"a\r\nb\r\n", "mixed": b"a\r\nb\n", "none": b"a", "empty": b""}
    files |= {".gitattributes": b"crlf text eol=crlf\nmixed text=auto\n"}
    project.repository({**files, "a.py": "a\n"})
    files["git~1"] = "git takes this for its own folder\n"
    project.write(files)
    for name in NAMES[:3]:
        project.write({f"secret/{name}.pem": "s"})
    tree = project.tree()
    before = round_trip(project, tree)
    assert len(before) == len(files) + 1
    for name, data in files.items():
        expected = data if isinstance(data, bytes) else data.encode()
        assert before[name] == expected or name == "mixed", name
    for name in (*NAMES, "crlf", "none"):
        path = tree.path / name
        path.write_bytes(path.read_bytes() + b"more\n")
    history = History(project.root, project.root.parent / "edits")
    result = file_changes(tree)
    key = history.begin("names", result.files, bases=result.bases)
    wanted = files_in(tree.path)
    seen = everything_in(project.root / ".git")
    try:
        write_files(resume(history, key).files, history, key)
        # The file's own line ends stay, and whether there is one at its end. Names with line ends
        # and tabs are left out.
        own = {"crlf": b"a\r\nb\r\nmore\r\n", "none": b"amore"}
        own |= {name: before[name] for name in NAMES[:2]}
        assert files_in(project.root).items() >= {**wanted, **own}.items()
        assert everything_in(project.root / ".git") == seen
    finally:
        for name in (*NAMES, "crlf", "none"):
            project.write({name: before[name]})


def test_links(project: Project, tmp_path: Path) -> None:
    project.repository({"src/a.py": "a\n", "was/b.py": "b\n"})
    links = {"file": "src/a.py", "folder": "src", "up": "..", "out": "/etc/hosts", "dangling": "x",
             "chain": "out", "src/back": "../was", "own": str(project.root / "src")}  # fmt: skip
    for name, target in links.items():
        (project.root / name).symlink_to(target)
    shutil.rmtree(project.root / "was")
    (project.root / "was").symlink_to(tmp_path)
    tree = project.tree()
    found = files_in(tree.path)
    assert {*found} == {"src/a.py", "file", "folder", "dangling", "own"}
    assert found["folder"] == b"src"
    shutil.rmtree(tree.path / "src")
    outside = tmp_path / "outside"
    write_all(outside, {"a.py": "outside\n"})
    (tree.path / "src").symlink_to(outside)  # a command leads git out of the tree
    assert kinds(tree.changed()) == {"src/a.py": "delete", "src": "create"}
    tree.restore(tree.base)
    assert files_in(tree.path) == found
    assert files_in(outside) == {"a.py": b"outside\n"}


def test_special_files_and_permissions(project: Project) -> None:
    project.repository({"a.py": "a\n", "run": "x\n"})
    (project.root / "run").chmod(0o755)
    os.mkfifo(project.root / "pipe")
    tree = project.tree()
    assert {*tree.left_out} <= {"pipe"}
    os.mkfifo(tree.path / "another")
    assert os.access(tree.path / "run", os.X_OK)
    assert tree.changed() == []
    os.unlink(project.root / "pipe")  # could not be read at the end


@pytest.mark.parametrize("kind", ["files", "file system"])
def test_a_full_disk(project: Project, kind: str, tmp_path: Path) -> None:
    project.repository({"a.py": "a\n", "b.py": os.urandom(90_000)})
    project.write({"b.py": os.urandom(100_000)})
    folder = project.run
    folder.mkdir()
    disk = full_disk(50_000) if kind == "files" else small_disk(folder)
    with disk:
        with pytest.raises(AgentFailed, match=r"cannot be read or written"):
            project.tree()
        assert list(folder.iterdir()) == []


def test_the_disk_gets_full_later(project: Project) -> None:
    project.repository({"a.py": "a\n"})
    tree = project.tree()
    (tree.path / "b").write_bytes(os.urandom(100_000))
    with full_disk(50_000), pytest.raises(AgentFailed):
        tree.checkpoint()
    assert tree.last == tree.base
    assert kinds(Tree.open(project.root, project.run).changed()) == {"b": "create"}


def test_a_repository_that_git_cannot_read(project: Project) -> None:
    project.repository({"a.py": "a\n"})
    (project.root / ".git/HEAD").write_text("damaged")
    assert round_trip(project, project.tree()) == {"a.py": b"a\n"}


def test_other_settings_of_the_environment(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.repository({"a.py": "a\n"})
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "/nowhere")
    assert round_trip(project, project.tree()) == {"a.py": b"a\n"}


def test_20_000_files(project: Project) -> None:
    names = [f"part{number // 100}/{number}.py" for number in range(20_000)]
    project.repository(dict.fromkeys(names, ""))
    tree = Tree.create(project.root, project.run, unsaved={})
    (tree.path / names[0]).write_text("by the agent\n")
    (tree.path / names[1]).unlink()
    assert kinds(tree.changed()) == {names[0]: "edit", names[1]: "delete"}
    assert len(file_changes(tree).files) == 2
    tree.restore(tree.base)
    assert sum(len(files) for _, _, files in os.walk(tree.path)) >= 20_000


def test_two_runs_at_once(project: Project) -> None:
    project.repository({f"{number}.py": f"{number}\n" for number in range(50)})
    made = dict[str, Tree]()

    def work(name: str) -> None:
        tree = made[name] = project.tree(name)
        for number in range(5):
            (tree.path / f"{number}.py").write_text(f"{name}\n")
            tree.checkpoint()

    threads = [threading.Thread(target=work, args=(f"run {number}",)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len({tree.base for tree in made.values()}) == 1
    for name, tree in made.items():
        assert kinds(tree.changed()) == dict.fromkeys((f"{n}.py" for n in range(5)), "edit")
        assert (tree.path / "3.py").read_text() == f"{name}\n"
