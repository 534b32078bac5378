"""What of other files is sent for later completions, and what never is."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes

Start = Callable[..., Pilot]

LINES = "".join(f"line_{n} = {n}\n" for n in range(200))
ALIKE = {"a.py": LINES, "b.py": LINES.replace("line", "other")}


def chunks(host: FakeHost, kind: str) -> list[dict[str, Any]]:
    """Return what was sent of a kind so far."""
    return [each for each in host.messages("context.chunk") if each["kind"] == kind]


def wait_chunk(host: FakeHost, kind: str, **fields: object) -> dict[str, Any]:
    """Wait for a chunk with those fields."""
    found: dict[str, Any] = host.wait(
        lambda: next(
            (
                each
                for each in chunks(host, kind)
                if all(each[name] == value for name, value in fields.items())
            ),
            None,
        )
    )
    return found


def test_an_open_buffer_is_sent_to_a_new_host(editor: Start, host: FakeHost) -> None:
    nvim = editor(ALIKE)
    nvim.command("edit b.py")
    nvim.command("100")
    nvim.insert("A")
    visited = wait_chunk(host, "visited", name="b.py")
    assert visited["first_row"] == 67
    assert visited["text"].startswith("other_67 = 67\n")
    assert visited["text"].count("\n") == 63
    wait_chunk(host, "visited", name="a.py", first_row=0)


def test_a_buffer_that_is_left_and_one_that_is_written(editor: Start, host: FakeHost) -> None:
    nvim = editor(ALIKE)
    nvim.insert("A")
    nvim.press("<Esc>150Gonew = 1<Esc>")
    nvim.command("write")
    assert "\nnew = 1\n" in wait_chunk(host, "edited", first_row=118)["text"]
    nvim.press("50G")
    nvim.command("edit b.py")
    wait_chunk(host, "visited", name="a.py", first_row=17)


@pytest.mark.parametrize(("keys", "count"), [("Vjjy", 1), ("Vjy", 0), ("Vjjd", 0), ("yyjyy", 0)])
def test_yanks_of_three_lines_count(editor: Start, host: FakeHost, keys: str, count: int) -> None:
    nvim = editor(ALIKE)
    nvim.insert("A")
    nvim.press("<Esc>11G" + keys)
    nvim.press("Vjjjjy")
    wait_chunk(host, "yanked", text="".join(f"line_{n} = {n}\n" for n in range(10, 15))[:-1]) if (
        keys != "Vjjd" and keys != "yyjyy"
    ) else host.wait(lambda: chunks(host, "yanked"))
    assert len(chunks(host, "yanked")) == count + 1


def test_where_the_work_was_before_it_went_elsewhere(editor: Start, host: FakeHost) -> None:
    nvim = editor(ALIKE)
    nvim.insert("A")
    rested = "return require('lcursor.complete.gather').rest()"
    nvim.press("<Esc>20Gofirst<Esc>")
    nvim.lua(rested)
    nvim.press("40Gonear<Esc>")
    nvim.lua(rested)
    nvim.settle()
    assert chunks(host, "edited") == []
    nvim.press("150Gofar<Esc>")
    edited = wait_chunk(host, "edited", first_row=0)
    assert "\nfirst\n" in edited["text"]
    assert "\nnear\n" in edited["text"]


PROJECT = {
    "app/main.py": "import os\nfrom app.tools import Tool, make\nfrom . import near\n\nTool\n",
    "app/tools.py": "class Tool:\n    pass\n",
    "app/near.py": "def beside():\n    pass\n",
    "app/os.txt": "",
    "setup.cfg": "",
    "pyproject.toml": "",
}


def test_imported_files_are_sent_with_what_is_imported(editor: Start, host: FakeHost) -> None:
    nvim = editor(PROJECT)
    nvim.insert("A")
    tools = wait_chunk(host, "import", name="app/tools.py")
    assert tools["symbols"] == ["Tool", "make"]
    assert tools["text"] == PROJECT["app/tools.py"]
    assert wait_chunk(host, "import", name="app/near.py")["symbols"] == []
    nvim.lua("return require('lcursor.complete.gather').rest()")
    nvim.settle()
    assert len(chunks(host, "import")) == 2


def test_an_imported_buffer_is_read_as_it_is_now(editor: Start, host: FakeHost) -> None:
    nvim = editor(PROJECT)
    nvim.command("edit app/tools.py")
    nvim.press("Gonew = 1<Esc>")
    nvim.command("set hidden | edit app/main.py")
    nvim.insert("A")
    assert wait_chunk(host, "import", name="app/tools.py")["text"].endswith("new = 1")


def test_only_who_imports_a_written_file_follows_its_imports_again(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor({**PROJECT, "app/other.py": "x = 1\n"})
    nvim.lua(
        """
        local reader = require("lcursor.editor.files")
        local first = reader.first
        _G.looked, _G.found = 0, 0
        reader.first = function(paths, done)
          _G.looked = _G.looked + 1
          first(paths, function(path)
            done(path) -- looks for the next import
            _G.found = _G.found + 1
          end)
        end
        """
    )
    nvim.insert("A")
    wait_chunk(host, "import", name="app/tools.py")
    nvim.wait_lua("return _G.looked == _G.found")
    nvim.press("<Esc>")
    nvim.lua("_G.looked = 0")
    counts = []
    for name in ("app/other.py", "app/tools.py"):
        nvim.command(f"edit {name} | write | buffer 1")
        nvim.settle()
        nvim.lua("require('lcursor.complete.gather').rest()")
        counts.append(nvim.lua("return _G.looked"))
    assert counts[0] == 0
    assert counts[1] > 0


def git(folder: str, *args: str) -> None:
    """Run git in a folder."""
    subprocess.run(["git", "-C", folder, *args], check=True, capture_output=True)


def test_nothing_is_sent_that_no_request_would_have(editor: Start, host: FakeHost) -> None:
    key = "-----BEGIN PRIVATE KEY-----\n"
    nvim = editor(
        {
            "main.py": "from . import credentials, made, inner, plain\n",
            "credentials.py": "TOKEN = 1\n",
            "made.py": "x = 1\n",
            "inner.py": "x = 1\n" * 90 + key,
            "plain.py": "def fine():\n    pass\n",
            ".env": "A=1\nB=2\nC=3\n",
            "deep.py": "x = 1\n" * 100 + key + "y = 1\n" * 100,
            ".gitignore": "made.py\n",
        }
    )
    git(nvim.lua("return vim.uv.cwd()"), "init", "-q")
    nvim.insert("A")
    nvim.press("<Esc>")
    nvim.command("set hidden")
    for name in (".env", "credentials.py", "made.py"):
        nvim.command(f"edit {name}")
        nvim.press("ggyG")
    nvim.command("edit deep.py")
    nvim.press("ggVGy")
    nvim.press("101G")
    nvim.command("edit main.py")
    nvim.press("ggVy")
    wait_chunk(host, "import", name="plain.py")
    wait_chunk(host, "visited", name="main.py")
    nvim.settle()
    sent = host.messages("context.chunk")
    assert {each["name"] for each in sent} <= {"main.py", "plain.py", "deep.py", "inner.py"}
    assert not any("PRIVATE KEY" in each["text"] for each in sent)
    assert {each["kind"] for each in sent if each["name"] == "inner.py"} <= {"visited"}


def test_switched_off_nothing_is_sent(editor: Start, host: FakeHost) -> None:
    nvim = editor(PROJECT, config={"completion": {"files_tokens": 0}})
    nvim.insert("A")
    nvim.press("<Esc>ggyG")
    nvim.lua("return require('lcursor.complete.gather').rest()")
    nvim.command("edit! app/tools.py")
    nvim.settle()
    assert host.messages("context.chunk") == []


def test_a_key_reads_nothing(editor: Start, host: FakeHost) -> None:
    """All that a key does here is to start the timer anew."""
    nvim = editor(ALIKE)
    nvim.insert("o")
    wait_chunk(host, "visited")
    nvim.lua(
        """
        _G.reads = 0
        local lines = vim.api.nvim_buf_get_lines
        local own = debug.getinfo(require("lcursor.complete.gather").rest, "S").source
        vim.api.nvim_buf_get_lines = function(...)
          if debug.getinfo(2, "S").source == own then _G.reads = _G.reads + 1 end
          return lines(...)
        end
        """
    )
    nvim.press("abcdef")
    before = nvim.lua("return _G.reads")
    nvim.lua("return require('lcursor.complete.gather').rest()")
    assert before == 0
    assert nvim.lua("return _G.reads") > 0


def test_the_top_of_the_file_where_the_window_begins_below_it(editor: Start) -> None:
    nvim = editor({"a.py": "import top\n" + "x = 1\n" * 1000})
    assert nvim.insert("A")["top"] == ""
    nvim.press("<Esc>")
    request = nvim.insert("GA")
    while request["first_row"] == 0:
        request = nvim.request()
    assert request["top"].startswith("import top\nx = 1\n")
    assert request["top"].count("\n") == 39


IMPORTS = [
    ("python", "import a.b as c", "/r/p", ["/r/a/b.py", "/r/src/a/b.py", "/r/p/a/b.py"], []),
    ("python", "from ..x import (\n  A,  # one\n  B as C,\n)", "/r/p/q", ["/r/p/x.py"], ["A", "B"]),
    ("python", "    from a import b", "/r", ["/r/a/b.py"], []),
    ("lua", 'local a = require("m.a")', "/r/lua/m", ["/r/lua/m/a.lua"], []),
    ("typescript", 'import { A, type B } from "./x/y.js";', "/r/s", ["/r/s/x/y.ts"], ["A", "B"]),
    ("javascript", "import z from '../y'", "/r/s", ["/r/y/index.js"], []),
    ("javascript", "const { q } = require('./y')", "/r/s", ["/r/s/y.js"], ["q"]),
    ("go", 'import (\n\tf "github.com/me/it/pkg/sub"\n)', "/r", ["/r/pkg/sub/sub.go"], []),
    ("rust", "use crate::a::b::{C, self};", "/r/src", ["/r/src/a/b.rs"], ["C"]),
    ("rust", "pub mod inner;", "/r/src", ["/r/src/inner.rs", "/r/src/inner/mod.rs"], []),
]


def test_where_imports_lead_to(editor: Start) -> None:
    nvim = editor()
    code = "return require('lcursor.complete.imports').of(...)"
    for filetype, text, folder, paths, symbols in IMPORTS:
        found = nvim.lua(code, text, filetype, folder, "/r")
        fitting = [
            each
            for each in found
            if set(paths) <= set(each["paths"]) and each["symbols"] == symbols
        ]
        assert fitting, (text, found)
    assert nvim.lua(code, "import a", "cobol", "/r", "/r") == []


def test_a_buffer_that_is_wiped_once_it_is_written(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "x = 1\n", "b.py": "y = 2\n"}, init=NOTES)
    nvim.press("Anew<Esc>")
    nvim.settle()
    nvim.command("edit b.py")
    nvim.press("Anew<Esc>")
    nvim.command("write | bwipeout")
    nvim.settle()
    assert "an error in lcursor" not in str(notes(nvim))
