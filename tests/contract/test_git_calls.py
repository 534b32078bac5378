"""Git is started in one place, which takes away all that a repository could make it run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILDER = ROOT / "lcursor/project/git.py"
CALLERS = {BUILDER, ROOT / "lcursor/workspace/shadow_git.py"}
"""May use its command lines; the second only on a repository of our own."""
TABLE, ASKING = ROOT / "lua/lcursor/editor/boundary.lua", ROOT / "lua/lcursor/editor/privacy.lua"
STARTS = re.compile(r"run|call|Popen|popen|system|check_\w+|exec\w*|spawn\w*|create_sub\w+|split")
"""Functions that start a program, or make words of a command line."""
PROGRAM = re.compile(r"(\S*/)?git(\.exe)?(\s|\Z)")
LUA = re.compile(
    r"""["'\[](?:[^\s"']*/)?git["'\]]"""
    r"""|(?:system|systemlist|jobstart|termopen|popen|execute|spawn|cmd)[\s(.{"'!\[]*git\b"""
)
"""The name alone, as in a list of words, or a command line for a function that starts it."""


def python_calls(source: str) -> Iterator[int]:
    """Yield the line numbers at which Python source has a command line of git."""
    for node in ast.walk(ast.parse(source)):
        first: ast.expr | None = None
        if isinstance(node, ast.List | ast.Tuple) and node.elts:
            first = node.elts[0]
            if isinstance(first, ast.Constant) and first.value == "git":
                yield node.lineno
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        texts = [*node.args, *(word.value for word in node.keywords)]
        texts += [node.func.value] if isinstance(node.func, ast.Attribute) else []
        if STARTS.fullmatch(name) and any(PROGRAM.match(text_of(each)) for each in texts):
            yield node.lineno


def text_of(node: ast.expr) -> str:
    """Return the beginning of a text, or of the first word of a list."""
    while isinstance(node, ast.List | ast.Tuple | ast.JoinedStr | ast.BinOp):
        if isinstance(node, ast.BinOp):
            node = node.left
            continue
        parts = node.values if isinstance(node, ast.JoinedStr) else node.elts
        if not parts:
            return ""
        node = parts[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def lua_calls(source: str) -> Iterator[int]:
    """Yield the line numbers at which Lua source has a command line of git."""
    code = re.sub(r"--(?!\[\[).*", "", source)
    for found in LUA.finditer(code):
        yield code.count("\n", 0, found.start()) + 1


def test_no_other_python_file_builds_a_command_line_of_git() -> None:
    for path in [*ROOT.glob("lcursor/**/*.py"), *ROOT.glob("rplugin/**/*.py")]:
        if path != BUILDER:
            assert list(python_calls(path.read_text())) == [], path
        names = {
            getattr(node.func, "attr", "")
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and "git" in ast.unparse(node.func)
        }
        assert path in CALLERS or "command_line" not in names, path
    assert list(python_calls(BUILDER.read_text())) != []


def test_no_other_lua_file_builds_a_command_line_of_git() -> None:
    for path in [*ROOT.glob("lua/**/*.lua"), *ROOT.glob("plugin/*.lua")]:
        text = path.read_text()
        if path != TABLE:
            assert list(lua_calls(text)) == [], path
        assert path in (TABLE, ASKING) or not re.search(r"boundary\.git\b", text), path
    assert len(list(lua_calls(TABLE.read_text()))) == 1


@pytest.mark.parametrize(
    "source",
    [
        'subprocess.run(["git", "status"], check=True)',
        'run(("git", *words), folder)',
        'words = ["git"]\nwords.append("status")',
        'run(["/usr/bin/git", "status"], folder)',
        'os.system("git status")',
        'subprocess.Popen(args=["git"])',
        'subprocess.check_output(f"git -C {folder} status", shell=True)',
        'run("git status".split(), folder)',
        'run(shlex.split("git -C x log"), folder)',
        'run(["git"] + words, folder)',
        'asyncio.create_subprocess_exec("git", "status")',
        'os.execvp("git", words)',
    ],
)
def test_a_new_call_in_python_is_noticed(source: str) -> None:
    assert list(python_calls(source)) != []


@pytest.mark.parametrize(
    "source",
    [
        'vim.system({ "git", "status" })',
        "vim.system({ 'git', 'status' }, {}, done)",
        'local command = { "git", "-C", root }',
        'vim.fn.system("git status")',
        'vim.fn.systemlist({ "/usr/bin/git", "log" })',
        'io.popen("git log")',
        'os.execute("git log")',
        'vim.uv.spawn("git", { args = { "log" } })',
        'vim.cmd("!git log")',
        "vim.fn.jobstart([[git log]])",
    ],
)
def test_a_new_call_in_lua_is_noticed(source: str) -> None:
    assert list(lua_calls(source)) != []


@pytest.mark.parametrize(
    "source",
    [
        'missing("diff", f"git says: {failure}")',
        'folder / "git"',
        'names = ("tree", "git", "index")',
        "from lcursor.project import git\ngit.ask(folder, 'ls-files')",
    ],
)
def test_words_about_git_are_no_calls(source: str) -> None:
    assert list(python_calls(source)) == []
