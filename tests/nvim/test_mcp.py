"""`python -m lcursor mcp` with a real client of the protocol, a real Neovim and its host."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import TextContent

from lcursor.drive.editor import Editor

ROOT = Path(__file__).parents[2]
ONE = "def one(x):\n    return x\n"
HUNKS = "return require('lcursor.edit.proposals').count()"
ACCEPT = "require('lcursor.edit.hunks').accept_file()"
DIAGNOSE = """
vim.diagnostic.set(vim.api.nvim_create_namespace("test"), 0, {
  { lnum = 1, col = 0, message = "x is not\\ndefined", severity = vim.diagnostic.severity.ERROR },
})
"""

Call = Callable[..., Awaitable[tuple[bool, str]]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "one.py").write_text(ONE)
    (root / ".env").write_text("KEY=12345\n")
    return root


@pytest.fixture
def editor(neovim: Path, tmp_path: Path, root: Path) -> Iterator[Editor]:
    (tmp_path / "home").mkdir()
    init = (
        f"vim.g.lcursor = {{ python = [[{sys.executable}]], completion = {{ auto_trigger = false, "
        "model = '/nowhere.gguf' }, privacy = { exclude = { 'hidden.py' } } }\n"
    )
    with Editor(neovim, tmp_path / "home", init=init, files=(root / "one.py",), cwd=root) as opened:
        yield opened


def with_server(
    root: Path, use: Callable[[Client, Call], Awaitable[None]], *options: str, mode: str = "auto"
) -> None:
    """Start the server, and use it as a client."""

    async def run() -> None:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "lcursor", "mcp", str(root), *options],
            env={"PYTHONPATH": str(ROOT), "HOME": os.environ["HOME"]},
        )
        with anyio.fail_after(60):
            async with Client(command, mode=mode) as client:

                async def call(tool: str, /, **arguments: object) -> tuple[bool, str]:
                    result = await client.call_tool(tool, arguments)
                    part = result.content[0]
                    assert isinstance(part, TextContent)
                    return not result.is_error, part.text

                await use(client, call)

    anyio.run(run)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_of_either_revision_reads_the_project(root: Path, mode: str) -> None:
    async def use(client: Client, call: Call) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["search", "symbol", "read", "diagnostics"]
        assert await call("read", path="one.py") == (
            True,
            "one.py:1-2\n1\tdef one(x):\n2\t    return x",
        )
        assert "one.py:1-2 function one" in (await call("symbol", name="one"))[1]
        found = await call("search", query="what does one return")
        assert found[0]
        assert "one.py:1-2" in found[1]

    with_server(root, use, mode=mode)


def test_secrets_and_other_files_are_not_read(root: Path) -> None:
    async def use(client: Client, call: Call) -> None:
        for path in (".env", "../elsewhere", "/etc/passwd", "none.py"):
            is_fine, text = await call("read", path=path)
            assert not is_fine, path
            assert "12345" not in text
        assert "12345" not in (await call("search", query="KEY 12345"))[1]

    with_server(root, use)


def test_unsaved_text_and_diagnostics_come_from_the_editor(editor: Editor, root: Path) -> None:
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'def one(y):' })")
    editor.lua(DIAGNOSE)
    (root / "hidden.py").write_text("def hidden_one():\n    pass\n")
    address = editor.lua("return vim.v.servername")

    async def use(client: Client, call: Call) -> None:
        is_fine, text = await call("read", path="one.py", last_line=1)
        assert (is_fine, text) == (True, "one.py:1-1, unsaved in the editor\n1\tdef one(y):")
        assert await call("diagnostics") == (True, "one.py:2 error: x is not defined")
        assert not (await call("read", path="hidden.py"))[0]
        assert "pass" not in (await call("search", query="hidden_one"))[1]
        assert "hidden.py" not in (await call("symbol", name="hidden_one"))[1]

    with_server(root, use, "--editor", address)


def test_a_proposed_change_is_shown_as_hunks(editor: Editor, root: Path) -> None:
    address = editor.lua("return vim.v.servername")

    async def use(client: Client, call: Call) -> None:
        is_fine, text = await call("propose", path="one.py", old="return x", new="return x + 1")
        assert is_fine, text
        await anyio.to_thread.run_sync(editor.wait_lua, f"return (function() {HUNKS} end)() > 0")
        assert (root / "one.py").read_text() == ONE
        assert not (await call("propose", path="one.py", old="x", new="y"))[0]

    with_server(root, use, "--editor", address, "--propose")
    assert editor.lines() == ONE.splitlines()
    editor.lua(ACCEPT)
    editor.wait_lua("return vim.api.nvim_buf_get_lines(0, 1, 2, false)[1] == '    return x + 1'")


def test_an_editor_at_a_prompt_is_not_waited_for(editor: Editor, root: Path) -> None:
    address = editor.lua("return vim.v.servername")
    editor.keys("r")  # waits for a second key

    async def use(client: Client, call: Call) -> None:
        is_fine, text = await call("diagnostics")
        assert not is_fine
        assert "no Neovim" in text
        assert (await call("read", path="one.py"))[0]

    with_server(root, use, "--editor", address)
    editor.keys("<Esc>")
