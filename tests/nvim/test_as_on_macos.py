"""The features in processes that lack what Linux has and macOS has not: `tests/fakes/macos.py`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes import acp_agent
from tests.fakes.macos import make_environment
from tests.fakes.model_server import ModelServer
from tests.nvim.home import COUNT, Home, accept_all, proposed, told
from tests.nvim.test_agent_real import EDIT, FINISH, HUNKS, READ, RUN, TEXT, has
from tests.nvim.test_index_real import FOUND
from tests.nvim.test_mcp_servers import configure, shows
from tests.waiting import wait_for

PATCH = """\
*** Begin Patch
*** Update File: b.py
@@
-b = 1
+b = 2
*** Update File: a.py
@@
-    return x
+    return x + 1
*** End Patch
"""
ROOT = Path(__file__).resolve().parents[2]
NOT_RUN = (
    "No sandbox works on this machine, so this was not run. lcursor has a sandbox on Linux only"
)


@pytest.fixture(scope="session")
def mac_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_environment(tmp_path_factory.mktemp("macos"))


@pytest.fixture
def mac(home: Home, mac_python: Path) -> Home:
    """A person whose hosts run there."""
    home.python = str(mac_python)
    return home


def test_the_environment_is_as_on_macos(mac_python: Path) -> None:
    """Also in isolated processes, and in those that these start."""
    code = """
import os, platform, subprocess, sys
print(sys.platform, platform.system(), hasattr(os, "pidfd_open"), os.path.exists("/proc"))
sys.stdout.flush()
if sys.argv[1:]:
    subprocess.run([sys.executable, "-I", "-c", sys.argv[1]])
"""
    printed = subprocess.check_output([mac_python, "-I", "-c", code, code], text=True)
    assert printed == "darwin Darwin False False\n" * 2


def test_the_doctor_finds_what_works(mac_python: Path, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    words = [str(mac_python), "-m", "lcursor", "doctor"]
    printed = subprocess.run(words, env=env, cwd=ROOT, capture_output=True, text=True)
    text = printed.stdout
    assert "This check failed" not in text
    assert "Apple GPU" in text
    assert "! No sandbox works. lcursor has a sandbox on Linux only" in text
    assert "the engine passes its self-test" in text
    assert "the chat server passes its self-test" in text


def test_a_suggestion_is_accepted(mac: Home) -> None:
    with ModelServer() as server:
        server.llama(" + 1")
        mac.settings = {
            "models": {"desk": {"url": server.url}},
            "completion": {"model": "desk"},
        }
        editor = mac.open()
        editor.keys("jA")
        editor.wait_state("ready")
        editor.wait_ghost(lambda ghost: ghost == " + 1")
        editor.keys("<Tab>")
        editor.wait_lua("return vim.api.nvim_get_current_line() == '    return x + 1'")


def test_an_edit_is_written_by_the_host_and_undone(mac: Home) -> None:
    """One of the files is in no buffer."""
    editor = mac.open()
    editor.lua("vim.fn.setreg('\"', ...)", PATCH)
    editor.command("LCursor edit apply")
    proposed(editor)
    accept_all(editor)
    editor.wait_lua(f"{COUNT} == 0")
    editor.wait_lua("return vim.fn.getline(2) == '    return x + 1'")
    other = mac.project / "b.py"
    wait_for(lambda: other.read_text() == "b = 2\n")
    editor.command("LCursor edit undo")
    told(editor, "undid")
    wait_for(lambda: other.read_text() == "b = 1\n")


def test_an_agent_asks_before_each_command(mac: Home) -> None:
    editor = mac.open()
    mac.replies += [READ, RUN, EDIT, FINISH]
    editor.command("LCursor agent make alpha add one")
    has(editor, "No sandbox works here, so each command needs your approval")
    has(editor, "? command · waits for approval\n```bash\ntouch made\n```\n")
    editor.keys("]wga")
    has(editor, "## Done\n\nalpha adds one.")
    assert "✓ command touch made · exit 0" in editor.lua(TEXT)
    editor.keys("<C-w>p")
    editor.wait_lua(f"{HUNKS} == 1")


def test_an_agent_of_others_does_not_start(mac: Home) -> None:
    command = [sys.executable, "-I", acp_agent.__file__]
    mac.settings["agents"] = {"helper": {"command": command}}
    editor = mac.open()
    editor.lua("require('lcursor').agent({ model = 'helper', task = 'say hello' })")
    has(editor, f"{NOT_RUN}\n")


def test_a_server_with_tools_does_not_start(mac: Home) -> None:
    editor = mac.open()
    configure(editor)
    editor.command("LCursor mcp")
    shows(editor, "it  new")
    editor.keys("<CR>")
    shows(editor, "network    none")
    editor.keys("a")
    shows(editor, f"it has ended: {NOT_RUN}\n")


def test_a_project_is_indexed_and_a_change_is_noticed(mac: Home) -> None:
    mac.settings["index"] = {"embedder": ""}
    editor = mac.open()
    editor.command("LCursor index start")

    def finds(words: str, name: str) -> bool:
        editor.command("silent LCursor search " + words)
        is_found: bool = editor.lua(FOUND)[:1] == [name]
        editor.command("cclose")
        return is_found

    wait_for(lambda: finds("beta", "a.py"))
    (mac.project / "c.py").write_text("def gamma():\n    pass\n")
    wait_for(lambda: finds("gamma", "c.py"))
    (state,) = editor.lua("return require('lcursor.index').states()")
    os.kill(state["pid"], signal.SIGTERM)
    assert state["watching"] == "watching"
