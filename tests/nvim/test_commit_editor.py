"""`:LCursor commit_message` in the editor that a real git starts, and in one that was there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import Editor, prepare_home
from tests.fakes.chat_server import Answer, ChatServer, say

DRIVE = """
vim.cmd.normal("gg")
%s
vim.cmd("LCursor commit_message")
vim.wait(30000, function()
  return #require("lcursor.edit").running() == 0
end)
local seen = table.concat(_G.notes, "\\n") .. "\\n" .. vim.wo.winbar
vim.fn.writefile(vim.split(seen, "\\n"), %s)
vim.cmd(%s)
"""


class Repository:
    """A repository whose editor is a Neovim that asks for a message and then ends."""

    def __init__(self, neovim: Path, folder: Path, server: ChatServer) -> None:
        self.root, self.server = folder / "project", server
        self._neovim, self._home = neovim, folder / "home"
        self.settings = {
            "python": sys.executable,
            "completion": {"auto_trigger": False, "model": "/nowhere.gguf"},
            "models": {"fake": {"url": server.url}},
            "chat": {"server": "off", "model": "fake", "rule_files": False},
        }
        self.init = f"vim.g.lcursor = vim.json.decode([==[{json.dumps(self.settings)}]==])\n"
        notes = "_G.notes = {} vim.notify = function(text) table.insert(_G.notes, text) end\n"
        self._home.mkdir()
        self.env = {
            **os.environ,
            **prepare_home(self._home, self.init + notes, plugin=True),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.org",
        }
        self.root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.write("a.py", "a = 1\n")
        self.write("b.py", "b = 1\n")
        self.git("add", ".")
        self.git("commit", "-qm", "Add both")

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)

    def git(self, *words: str, cwd: Path | None = None, **env: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.root, env={**self.env, **env}, check=False,
            capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def commit(self, *words: str, first: str = "", end: str = "wq", **more: Any) -> str:
        """Commit with a message from Neovim; return what the user saw.

        Args:
            first: Lua that runs before the command.
            end: how the editor ends.
        """
        drive, seen = self._home / "drive.lua", self._home / "seen"
        drive.write_text(DRIVE % (first, json.dumps(str(seen)), json.dumps(end)))
        editor = f"{self._neovim} --headless -c 'luafile {drive}'"
        self.git("commit", *words, GIT_EDITOR=editor, **more)
        return seen.read_text()

    @property
    def prompt(self) -> str:
        """What the model was asked at last."""
        return str(self.server.bodies[-1]["messages"][-1]["content"])

    @property
    def subject(self) -> str:
        return self.git("log", "-1", "--format=%s").strip()


@pytest.fixture
def project(neovim: Path, tmp_path: Path) -> Iterator[Repository]:
    def answer(body: dict[str, Any]) -> Answer:
        return say(f"Write message {len(server.bodies)}")

    with ChatServer(answer) as server:
        yield Repository(neovim, tmp_path, server)


WAYS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "staged": ((), "+a = 2", "+b = 2"),
    "all": (("-a",), "+b = 2", "+c"),
    "all, verbose": (("-a", "-v"), "+b = 2", "+c"),
    "one file": (("b.py",), "+b = 2", "+a = 2"),
    "one more file": (("-i", "b.py"), "+b = 2", "+c"),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_message_is_about_what_the_commit_contains(project: Repository, way: str) -> None:
    words, wanted, other = WAYS[way]
    project.write("a.py", "a = 2\n")
    project.git("add", "a.py")
    project.write("b.py", "b = 2\n")
    project.commit(*words)
    assert wanted in project.prompt
    assert other not in project.prompt
    assert project.subject == "Write message 1"
    assert wanted in project.git("show", "HEAD")


@pytest.mark.parametrize("sign", ["#", ";", "auto"])
def test_the_message_goes_above_the_comments_of_git(project: Repository, sign: str) -> None:
    project.write("a.py", "a = 2\n")
    for words in (("-a",), ("-a", "-v", "--amend")):
        seen = project.commit(*words, "--no-status", **_config("core.commentChar", sign))
        assert "u undoes it" in seen
        assert project.git("log", "-1", "--format=%B").strip().startswith("Write message")
    assert project.git("rev-list", "--count", "HEAD").strip() == "2"


def _config(name: str, value: str) -> dict[str, str]:
    return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": name, "GIT_CONFIG_VALUE_0": value}


@pytest.mark.parametrize("kind", ["linked work tree", "subfolder", "index elsewhere"])
def test_the_index_is_found(project: Repository, kind: str, tmp_path: Path) -> None:
    top = cwd = project.root
    more: dict[str, str] = {}
    if kind == "linked work tree":
        top = cwd = tmp_path / "linked"
        project.git("worktree", "add", "-q", str(top))
    elif kind == "subfolder":
        cwd = top / "sub"
        cwd.mkdir()
    else:
        more["GIT_INDEX_FILE"] = str(tmp_path / "index")
        project.git("read-tree", "HEAD", GIT_INDEX_FILE=more["GIT_INDEX_FILE"])
    (top / "b.py").write_text("b = 2\n")
    project.commit("-a", cwd=cwd, **more)
    assert "+b = 2" in project.prompt
    assert "a.py" not in project.prompt


def test_an_amended_commit_is_described_as_a_whole(project: Repository) -> None:
    seen = project.commit("--amend")  # the first commit, and nothing is staged
    assert {"+a = 1", "+b = 1"} <= {*project.prompt.splitlines()}
    assert "the message of the amended commit is written" in seen
    project.write("a.py", "a = 2\n")
    project.commit("-a", "-m", "Change a", "-e", first="vim.cmd('%delete _')")
    project.write("b.py", "b = 2\n")
    project.commit("--amend", "-a")
    assert {"+a = 2", "+b = 2", "-a = 1"} <= {*project.prompt.splitlines()}
    assert project.subject == "Write message 3"
    assert project.git("rev-list", "--count", "HEAD").strip() == "2"


def test_a_message_that_was_written_by_hand_stays(project: Repository) -> None:
    project.write("a.py", "a = 2\n")
    seen = project.commit("-a", "-m", "By hand", "-e", end="qall")
    assert "copy it into the commit's buffer" in seen
    assert project.subject == "By hand"


def test_the_index_of_another_repository_is_not_used(
    project: Repository, neovim: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    project.git("init", "-q", cwd=other)
    (other / "secret.txt").write_text("secret\n")
    project.git("add", ".", cwd=other)
    project.write("a.py", "a = 2\n")
    project.git("add", "a.py")
    message = project.root / ".git/COMMIT_EDITMSG"
    env = {"GIT_INDEX_FILE": str(other / ".git/index")}
    (tmp_path / "another").mkdir()
    with Editor(
        neovim, tmp_path / "another", init=project.init, files=("a.py",), cwd=project.root, env=env
    ) as editor:
        editor.command(f"edit {message}")
        editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, {})")
        editor.command("LCursor commit_message")
        editor.wait_lua("return vim.fn.getline(1) == 'Write message 1'")
    assert "+a = 2" in project.prompt
    assert "secret" not in project.prompt


def test_an_editor_that_ran_before_the_commit_finds_its_index(
    project: Repository, neovim: Path, tmp_path: Path
) -> None:
    """As `nvr` or fugitive do it: the git that waits has no part in the editor's environment."""
    project.write("a.py", "a = 2\n")
    waiter = tmp_path / "wait.sh"
    wait = f"while ! [ -e {tmp_path}/done ]; do sleep 0.05; done"
    waiter.write_text(f"#!/bin/sh\ntouch {tmp_path}/opened\n{wait}\n")
    waiter.chmod(0o755)
    (tmp_path / "another").mkdir()
    env = {**project.env, "GIT_EDITOR": str(waiter)}
    process = subprocess.Popen(["git", "commit", "-a"], cwd=project.root, env=env)
    try:
        with Editor(neovim, tmp_path / "another", init=project.init, cwd=tmp_path) as editor:
            editor.wait_lua("return vim.uv.fs_stat(...) ~= nil", str(tmp_path / "opened"))
            editor.command(f"edit {project.root}/.git/COMMIT_EDITMSG")
            editor.command("LCursor commit_message")
            editor.wait_lua("return vim.fn.getline(1) == 'Write message 1'")
            editor.command("write")
    finally:
        (tmp_path / "done").touch()
        assert process.wait(60) == 0
    assert project.subject == "Write message 1"
    assert "+a = 2" in project.prompt
