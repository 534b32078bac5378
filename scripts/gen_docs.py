"""Write every generated file and block: the Lua protocol, the settings and keys in the help.

`python scripts/gen_docs.py` rewrites them; `--check` only says which differ and exits with 1.
Each fact has one source: `lcursor/protocol.py`, `lcursor/errors.py`, `lua/lcursor/schema.lua`,
`commands.lua`, `ui/highlights.lua`, and the command line's own help.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lcursor import errors, protocol  # noqa: E402
from lcursor.install import find_neovim  # noqa: E402

BLOCK = r"(?P<open>^[^\n]*generated: {name}[^\n]*\n).*?(?P<close>^[^\n]*end: {name}\b)"


def lua_protocol() -> str:
    """Return `lua/lcursor/protocol.lua`: what the Lua side checks of the messages that it gets."""
    lines = [
        "-- Generated from lcursor/protocol.py and lcursor/errors.py by `make docs`: do not edit.",
        "-- The protocol's version, the fields of each message from Python, the levels of errors.",
        "",
        "local M = {}",
        "",
        f"M.version = {protocol.PROTOCOL}",
        "",
        "-- stylua: ignore",
        "M.to_lua = {",
    ]
    for method, message in protocol.TO_LUA.items():
        fields = ", ".join(f'"{field}"' for field in protocol.fields(message))
        row = f'["{method}"] = {{ {fields} }},'
        lines += textwrap.wrap(row, 98, initial_indent="  ", subsequent_indent="    ")
    lines += ["}", "", "M.levels = {"]
    lines += [f'  {code} = "{level}",' for code, level in errors.levels().items()]
    return "\n".join([*lines, "}", "", "return M", ""])


def from_lua() -> dict[str, list[dict[str, str]]]:
    """Ask a real Neovim for the tables that live in Lua."""
    script = """
        local function rows(module) return require("lcursor." .. module).describe() end
        io.stdout:write(vim.json.encode({
          config = rows("config"),
          commands = rows("commands"),
          highlights = rows("ui.highlights"),
          events = require("lcursor.status").describe_events(),
          plugs = require("lcursor.commands").describe_maps(),
        }))
    """
    neovim = find_neovim(ROOT / ".venv")
    if neovim is None:
        sys.exit("no Neovim found. Run: make test")
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_STATE_HOME": home}
        command = [str(neovim), "--clean", "--headless", "--cmd", f"set rtp^={ROOT}"]
        done = subprocess.run(
            [*command, "+lua " + " ".join(script.split()), "+qa!"],
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
    tables: dict[str, list[dict[str, str]]] = json.loads(done.stdout)
    return tables


def help_rows(rows: list[dict[str, str]], tag: str) -> str:
    """Return rows of {name, text, default?} as a help section of 78 columns."""
    lines: list[str] = []
    for row in rows:
        label = f"*{tag.format(row['name'].replace(' ', '-'))}*"
        default = f"  (default: {row['default']})" if row.get("default") else ""
        is_long = len(row["name"] + default) > 78
        head = row["name"] + ("" if is_long else default)
        if len(head) + len(label) + 1 <= 78:
            lines.append(head + " " * (78 - len(head) - len(label)) + label)
        else:
            lines += [" " * (78 - len(label)) + label, head]
        text = row["text"] + (f" Default: {row['default']}" if is_long else "")
        lines += textwrap.wrap(text, 72, initial_indent="    ", subsequent_indent="    ")
        lines.append("")
    return "\n".join(lines)


def replace_block(text: str, name: str, body: str) -> str:
    """Put `body` between the marks of one generated block."""
    pattern = re.compile(BLOCK.format(name=re.escape(name)), re.S | re.M)
    if not pattern.search(text):
        sys.exit(f"no block {name!r} found")
    return pattern.sub(lambda m: m["open"] + body.rstrip("\n") + "\n" + m["close"], text)


def outputs() -> dict[Path, str]:
    """Return the wanted content of every file that has generated parts."""
    tables = from_lua()
    help_path = ROOT / "doc/lcursor.txt"
    help_text = help_path.read_text()
    for name, tag in [
        ("config", "lcursor-config-{}"),
        ("commands", "{}"),
        ("plugs", "{}"),
        ("highlights", "hl-{}"),
        ("events", "{}"),
    ]:
        help_text = replace_block(help_text, name, help_rows(tables[name], tag))
    codes = [
        {"name": error.code, "text": (error.__doc__ or "").splitlines()[0]}
        for error in errors.tree()
    ]
    help_text = replace_block(help_text, "errors", help_rows(codes, "lcursor-error-{}"))
    return {
        ROOT / "lua/lcursor/protocol.lua": lua_protocol(),
        help_path: help_text,
    }


def main() -> None:
    """Rewrite, or with `--check` compare."""
    if "--protocol" in sys.argv:
        (ROOT / "lua/lcursor/protocol.lua").write_text(lua_protocol())
        return
    stale = [path for path, text in outputs().items() if path.read_text() != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date. Run: make docs")
        sys.exit(1 if stale else 0)
    for path, text in outputs().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
