"""Write every generated file and block: the Lua protocol, <Plug> maps, and tables of the help.

`python scripts/gen_docs.py` rewrites them; `--check` only says which differ and exits with 1.
Each fact has one source: `lcursor/protocol/`, `lcursor/errors.py`, `lcursor/config.py`,
`lcursor/llm/apis/`, and in `lua/lcursor/` `config/schema.lua`, `config/keys.lua`, `commands/`,
`host/status.lua` and `ui/highlights.lua`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lcursor import config, errors, protocol  # noqa: E402
from lcursor.install import find_neovim  # noqa: E402
from lcursor.llm import providers  # noqa: E402
from lcursor.project import git, secrets  # noqa: E402

WIDTH = 78
GLUE = "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
"""An equals sign at which no line ends."""
OPTIONS_PER_TAGS = 7
"""How many options follow a group of their tags."""
BLOCK = r"(?P<open>^[^\n]*generated: {name}[^\n]*\n).*?(?P<close>^[^\n]*end: {name}\b)"


def lua_protocol() -> str:
    """Return `host/protocol.lua`: what the Lua side checks of the messages that it gets."""
    lines = [
        "-- Generated from lcursor/protocol/ and lcursor/errors.py by `make docs`: do not edit.",
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


def quoted(words: Iterable[str], indent: str) -> list[str]:
    """Return the lines of a Lua list with some words."""
    text = ", ".join(json.dumps(word) for word in words)
    return textwrap.wrap(
        f"{text},",
        98,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def lua_servers() -> str:
    """Return `config/servers.lua`: the values that name a provider or an API."""
    apis, hosted = (providers.AUTO, *providers.APIS), sorted(config.PROVIDERS)
    lines = [
        "-- Generated from lcursor/config.py and lcursor/llm/apis/ by `make docs`: do not edit.",
        "-- The names of the APIs of servers, and of the hosted providers.",
        "",
        "-- stylua: ignore",
        "return {",
        "  apis = {",
        *quoted(apis, "    "),
        "  },",
        "  providers = {",
        *quoted(hosted, "    "),
        "  },",
    ]
    return "\n".join([*lines, "}", ""])


def expanded(glob: str) -> list[str]:
    """Return the globs that the braces of a glob stand for."""
    inner = re.search(r"\{([^{}]*)\}", glob)
    if not inner:
        return [glob]
    before, after = glob[: inner.start()], glob[inner.end() :]
    return [found for part in inner[1].split(",") for found in expanded(before + part + after)]


def hints(globs: Iterable[str]) -> list[str]:
    """Return texts of which each path has one that any of the globs matches, as few as possible."""
    longest = {
        max(re.split(r"[*?]|\[[^]]*\]", each.lower()), key=len)
        for glob in globs
        for each in expanded(glob)
    }
    found: list[str] = []
    for text in sorted(longest, key=lambda text: (len(text), text)):
        if not any(other in text for other in found):
            found.append(text)
    return sorted(found)


def lua_boundary() -> str:
    """Return `editor/boundary.lua`: how the Lua side protects the user from a project."""

    def pattern(text: str) -> str:
        """Return a pattern, in which Lua itself cannot repeat a class."""
        found = re.sub(r"(\[\S+?\])\{(\d+)\}", r'" .. ("\1"):rep(\2) .. "', json.dumps(text))
        return found.removeprefix('"" .. ').removesuffix(' .. ""')

    environment = [f"  {name} = {json.dumps(value)}," for name, value in git.ENVIRONMENT.items()]
    lines = [
        "-- Generated from lcursor/project/git.py and secrets.py by `make docs`: do not edit.",
        "-- How to start git so that it runs no program that a repository names, and which files",
        "-- hold secrets.",
        "",
        "local M = {}",
        "",
        "-- stylua: ignore",
        "M.git = {",
        *quoted(["git", *git.options(), "--no-pager"], "  "),
        "}",
        "",
        "M.git_environment = {",
        *environment,
        "}",
        "",
        "-- Variables of git that are passed on; the others may be meant for another repository.",
        "-- stylua: ignore",
        f"M.git_inherited = {{ {', '.join(json.dumps(name) for name in git.INHERITED)} }}",
        "",
        "-- Beginnings of git's messages that are shown; others may quote a file of the user.",
        "M.git_messages = {",
        *(f"  {json.dumps(text)}," for text in git.SHOWN),
        "}",
        "",
        "-- Globs. Without a slash they match the file's name, otherwise the end of its path.",
        "-- stylua: ignore",
        "M.secrets = {",
        *(f"  {json.dumps(glob)}," for glob in secrets.SECRETS),
        "}",
        "",
        "-- A path without any of these texts matches none of them.",
        "-- stylua: ignore",
        "M.secret_hints = {",
        *quoted(hints(secrets.SECRETS), "  "),
        "}",
        "",
        "-- Templates, which have names without values.",
        "M.harmless = {",
        *(f"  {json.dumps(glob)}," for glob in secrets.HARMLESS),
        "}",
        "",
        "-- Formats of private keys: a text of each, which is searched first, and a pattern.",
        "-- stylua: ignore",
        "M.keys = {",
        *(f"  {{ {json.dumps(key.hint)}, {pattern(key.lua)} }}," for key in secrets.KEY_FORMATS),
        "}",
    ]
    return "\n".join([*lines, "", "return M", ""])


def from_lua() -> dict[str, list[dict[str, Any]]]:
    """Ask a real Neovim for the tables that live in Lua."""
    script = """
        local function rows(module) return require("lcursor." .. module).describe() end
        io.stdout:write(vim.json.encode({
          config = rows("config"),
          commands = rows("commands"),
          highlights = rows("ui.highlights"),
          events = require("lcursor.host.status").describe_events(),
          keys = rows("config.keys"),
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
    tables: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    return tables


def tagged(head: str, tag: str) -> list[str]:
    """Return a line of the help with a tag at its right edge; two lines if it is too long."""
    label = f"*{tag}*"
    if len(head) + len(label) + 1 <= WIDTH:
        return [head + label.rjust(WIDTH - len(head))]
    return [label.rjust(WIDTH), head]


def indented(text: str, first: str, later: str | None = None) -> list[str]:
    """Return a wrapped text; `first` and `later` are what its lines begin with."""
    later = first if later is None else later
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False
    )


def table(rows: Iterable[tuple[str, ...]], widths: tuple[int, ...], tag: str = "") -> str:
    """Return a line for each row: columns, and the last field as a tag.

    The last column is wrapped if there are no tags.

    Args:
        rows: their fields; without a tag, one for each width and one more.
        widths: of the columns but the last.
        tag: the form of the tag; "" for none.
    """
    lines: list[str] = []
    for *fields, last in rows:
        head = "".join(
            f"{field:<{width - 1}} " for field, width in zip(fields, widths, strict=True)
        )
        if tag:
            lines += tagged(head.rstrip(), tag.format(last))
        else:
            lines += indented(last, head, " " * sum(widths))
    return "\n".join(lines)


def options(rows: list[dict[str, Any]]) -> str:
    """Return all options as one Lua table.

    The tags are in comments at the first column: |:helptags| finds none in an example, and such a
    line ends one.
    """
    lines = [">lua", "  vim.g.lcursor = {"]
    sections: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        sections.setdefault(row["name"].rpartition(".")[0], []).append(row)
    for section, inside in sections.items():
        indent = " " * (6 if section else 4)
        for start in range(0, len(inside), OPTIONS_PER_TAGS):
            group = inside[start : start + OPTIONS_PER_TAGS]
            labels = " ".join(f"*lcursor-{row['name']}*" for row in group)
            lines += indented(f"{labels}\N{NO-BREAK SPACE}>lua", "-- ")
            lines[-1] = lines[-1].replace("\N{NO-BREAK SPACE}", " ")
            if section and start == 0:
                lines.append(f"    {section} = {{")
            for row in group:
                lines += option(row, indent)
        lines += ["    },"] if section else []
    return "\n".join([*lines, "  }", "<"])


def option(row: dict[str, Any], indent: str) -> list[str]:
    """Return an option, with its text as a comment."""
    value = f"{indent}{row['name'].rpartition('.')[2]} = {row['default']},"
    if len(value) + len(row["text"]) + 4 <= WIDTH:
        return [f"{value} -- {row['text']}"]
    entries = value.replace(" = ", GLUE)
    return [
        *indented(row["text"], f"{indent}-- "),
        *(line.replace(GLUE, " = ") for line in indented(entries, "", f"{indent}  ")),
    ]


def commands(rows: list[dict[str, Any]]) -> str:
    """Return the commands with their verbs and arguments."""
    lines: list[str] = []
    for row in rows:
        lines += [
            *tagged(row["form"], row["name"].replace(" ", "-")),
            *indented(row["text"], "    "),
        ]
        for name, text in row.get("args", []):
            lines += table([(f"      {name}", text)], (24,)).splitlines()
    return "\n".join(lines)


def keys_of(keys: list[dict[str, Any]], *groups: str) -> str:
    """Return the keys of some groups: key, meaning and <Plug> map."""
    rows = [
        (f"    {row['default'] or '-'}", row["text"], row["name"])
        for row in keys
        if row["group"] in groups
    ]
    return table(rows, (14, 21), "{}")


def plugs(keys: list[dict[str, Any]]) -> str:
    """Return the Lua table with the names of the <Plug> maps."""
    names: dict[str, list[str]] = {}
    for row in keys:
        name = row["name"].removeprefix("<Plug>(lcursor-").removesuffix(")")
        names.setdefault(row["modes"] + " expr" * row["is_expr"], []).append(name)
    lines = ["local plugs = {"]
    for modes, some in names.items():
        line = f'["{modes}"] = {{ {", ".join(json.dumps(name) for name in some)} }},'
        lines += textwrap.wrap(
            line, 98, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )
    return "\n".join([*lines, "}"])


def help_blocks(tables: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    """Return the generated blocks of the help."""
    codes = [(f"    {e.code}", (e.__doc__ or "").splitlines()[0]) for e in errors.tree()]
    highlights = [(row["text"], row["default"], row["name"]) for row in tables["highlights"]]
    events = [(row["text"], row["name"]) for row in tables["events"]]
    hosted = [
        (f"    {name}", each.key_env, each.model or "set `model`")
        for name, each in config.PROVIDERS.items()
    ]
    apis = [(f"    {providers.AUTO}", "find out which of the first three it is (default)")]
    apis += [(f"    {name}", one.summary) for name, one in providers.APIS.items()]
    return {
        "options": options(tables["config"]),
        "apis": table(apis, (16,)),
        "commands": commands(tables["commands"]),
        "suggestion keys": keys_of(tables["keys"], "suggestion"),
        "next edit keys": keys_of(tables["keys"], "next_edit"),
        "hunk keys": keys_of(tables["keys"], "request", "edit", "hunk"),
        "chat keys": keys_of(tables["keys"], "chat"),
        "agent keys": keys_of(tables["keys"], "agent"),
        "events": table(events, (1,), "{}"),
        "highlights": table(highlights, (36, 16), "hl-{}"),
        "errors": table(codes, (26,)),
        "providers": table(hosted, (16, 22)),
    }


def replace_block(text: str, name: str, body: str) -> str:
    """Put `body` between the marks of one generated block."""
    pattern = re.compile(BLOCK.format(name=re.escape(name)), re.S | re.M)
    if not pattern.search(text):
        sys.exit(f"no block {name!r} found")
    return pattern.sub(lambda m: m["open"] + body.rstrip("\n") + "\n" + m["close"], text)


def lua_files() -> dict[Path, str]:
    """Return the wanted content of the Lua files that are made only from Python."""
    return {
        ROOT / "lua/lcursor/config/servers.lua": lua_servers(),
        ROOT / "lua/lcursor/host/protocol.lua": lua_protocol(),
        ROOT / "lua/lcursor/editor/boundary.lua": lua_boundary(),
    }


def outputs() -> dict[Path, str]:
    """Return the wanted content of every file that has generated parts."""
    tables = from_lua()
    help_path, plugin = ROOT / "doc/lcursor.txt", ROOT / "plugin/lcursor.lua"
    help_text = help_path.read_text()
    for name, body in help_blocks(tables).items():
        help_text = replace_block(help_text, name, body)
    return {
        **lua_files(),
        help_path: help_text,
        plugin: replace_block(plugin.read_text(), "plugs", plugs(tables["keys"])),
    }


def main() -> None:
    """Rewrite, or with `--check` compare."""
    if "--protocol" in sys.argv:
        for path, text in lua_files().items():
            path.write_text(text)
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
