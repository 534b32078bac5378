"""Who may import what, and who may call what."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

LAYERS = {
    "errors": 0,
    "system": 0,
    "protocol": 0,
    "config": 0,
    "config_table": 0,
    "install": 1,
    "installer": 1,
    "executor": 1,
    "stop": 1,
    "storage": 1,
    "process": 1,
    "reporting": 1,
    "http": 1,
    "catalog": 1,
    "code": 1,
    "project": 1,
    "fim": 2,
    "llm": 2,
    "index": 2,
    "context": 3,
    "changes": 4,
    "workspace": 5,
    "run": 6,
    "chat": 7,
    "edit": 7,
    "next_edit": 7,
    "agent": 8,
    "host": 9,
    "drive": 9,
    "mcp": 9,
    "acp": 9,
    "cli": 10,
    "__main__": 11,
}
SEALED = ({"code", "project"}, {"fim", "llm", "index"}, {"chat", "edit", "next_edit"})
"""Packages of one layer that never import each other."""

ONE_IMPORTER = {
    "llama_cpp": "lcursor/fim/llama.py",
    "pynvim": "lcursor/host/session.py",
    "jsonschema": "lcursor/mcp/client/schemas.py",
    "huggingface_hub": "lcursor/catalog/hub.py",
    "msgpack": "lcursor/drive/client.py",
    "onnxruntime": "lcursor/index/embed.py",
    "tokenizers": "lcursor/index/embed.py",
    "usearch": "lcursor/index/vector_index.py",
    "tree_sitter": "lcursor/code/grammars.py",
    "watchdog": "lcursor/index/fs_events.py",
    "pathspec": "lcursor/project/ignore.py",
    "xllamacpp": "lcursor/llm/server_process.py",
}
HELPER = "lcursor/mcp/client/connection.py"
"""The module of the helper process for servers of tools, which is not the host."""
TWO_IMPORTERS = {
    "mcp": {"lcursor/mcp/server/protocol.py", HELPER},
    "httpx2": {"lcursor/http/client.py", HELPER},
}

LUA_LAYERS = {
    "types": 0,
    "text": 0,
    "config": 0,
    "config_table": 0,
    "ui": 1,
    "host": 2,
    "editor": 3,
    "index": 4,
    "edit": 4,
    "conversation": 4,
    "next_edit": 5,
    "agent": 5,
    "complete": 6,
    "chat": 6,
    "init": 7,
    "commands": 8,
    "health": 8,
    "start": 8,
    "tutor": 8,
    "integrations": 8,
}
LUA_SEALED = ({"index", "edit", "conversation"}, {"next_edit", "agent"}, {"complete", "chat"})
"""Features of one layer never require each other. A feature may require those of lower layers: all
show changes as hunks of edits, and a chat starts agents."""


def python_files() -> list[Path]:
    """Every Python file of the product."""
    return sorted([*ROOT.glob("lcursor/**/*.py"), *ROOT.glob("rplugin/**/*.py")])


def lua_files() -> list[Path]:
    """Every Lua file of the product."""
    return sorted([*ROOT.glob("lua/**/*.lua"), *ROOT.glob("plugin/*.lua")])


@cache
def import_nodes(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Return every import statement of a Python file, anywhere in it."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(path: Path) -> Iterator[str]:
    """Yield every module that a Python file imports, anywhere in it."""
    for node in import_nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif node.module and not node.level:
            yield node.module
            if node.module == "lcursor":
                yield from (f"lcursor.{alias.name}" for alias in node.names)


def imported_names(path: Path) -> Iterator[str]:
    """Yield `package.module` and `package import name` of every import of a Python file."""
    for node in import_nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module} import {alias.name}" for alias in node.names)


def package_of(module: str) -> str:
    """Return the package of one of our modules, as LAYERS names it."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def module_of(path: Path) -> str:
    """Return the name by which a Python file of ours is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_each_imported_package_is_declared() -> None:
    declared = {
        re.split(r"[^\w.-]", line)[0].lower().replace("-", "_")
        for path in ("requirements.in", "requirements/mcp.in")
        for line in (ROOT / path).read_text().splitlines()
        if line[:1].isalpha()
    }
    distributions = importlib.metadata.packages_distributions()
    for path in python_files():
        for name in {module.split(".")[0] for module in imports(path)}:
            if name in sys.stdlib_module_names or name in ("lcursor", "tomli"):
                continue
            owners = {each.lower().replace("-", "_") for each in distributions[name]}
            assert owners & declared, f"{path}: {name}"


def test_the_paths_in_the_architecture_follow_the_imports() -> None:
    text = (ROOT / "doc/architecture.md").read_text()
    assert len(text.splitlines()) <= 250
    paths = [re.findall(r"`([\w.]+)`", line) for line in re.findall(r"^Modules: .*", text, re.M)]
    assert len(paths) == 5, "a keystroke, a question, an edit, an agent and a next edit"
    for path in paths:
        assert len(path) <= 7
        for module, following in pairwise(path):
            file = ROOT / "lcursor" / f"{module.replace('.', '/')}.py"
            package, name = following.split(".")
            found = {f"lcursor.{following}", f"lcursor.{package} import {name}"}
            assert found & set(imported_names(file)), f"{module} does not import {following}"


@pytest.mark.parametrize("package", ["lcursor", "bench", "evals"])
def test_no_modules_import_each_other_in_a_cycle(package: str) -> None:
    """Every import counts: those in functions and under TYPE_CHECKING too."""
    paths = {module_of(path): path for path in ROOT.glob(f"{package}/**/*.py")}
    graph = {name: modules_imported(path, {*paths}) - {name} for name, path in paths.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def modules_imported(path: Path, known: set[str]) -> set[str]:
    """Return those of the known modules that a file imports; `from a import b` may mean `a.b`."""
    found: set[str] = set()
    for node in import_nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            assert node.module, f"{path}: a relative import"
            assert not node.level, f"{path}: a relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names if names <= known else names | {node.module}
    return found & known


def test_no_python_file_imports_a_higher_layer() -> None:
    wrong = []
    for path in sorted(ROOT.glob("lcursor/**/*.py")):
        own = package_of(module_of(path))
        assert own in LAYERS or path.name == "__init__.py", f"{path} has no place in the plan"
        for module in imports(path):
            other = package_of(module) if module.startswith("lcursor") else ""
            if other in {"", "__version__", own} or own == "__init__":
                continue
            assert other in LAYERS, f"{module} has no place in the plan"
            if LAYERS[other] > LAYERS[own] or any({own, other} <= sealed for sealed in SEALED):
                wrong.append(f"{path.relative_to(ROOT)} imports {module}")
    assert wrong == []


def test_the_product_imports_no_developer_tool() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in python_files()
        for module in imports(path)
        if module.split(".")[0] in {"bench", "evals", "scripts", "tests"}
    ]
    assert wrong == []


@pytest.mark.parametrize(("library", "owner"), ONE_IMPORTER.items())
def test_a_heavy_library_has_one_importer(library: str, owner: str | None) -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in python_files()
        if any(module.split(".")[0] == library for module in imports(path))
    }
    found.discard("rplugin/python3/lcursor_host.py")  # a classic remote plugin needs pynvim
    assert found == ({owner} if owner else set())


@pytest.mark.parametrize(("library", "owners"), TWO_IMPORTERS.items())
def test_what_the_helper_process_imports_has_one_more_importer(
    library: str, owners: set[str]
) -> None:
    assert owners == {
        str(path.relative_to(ROOT))
        for path in python_files()
        if any(module.split(".")[0] == library for module in imports(path))
    }


def test_only_the_helper_process_imports_the_connection() -> None:
    module = module_of(ROOT / HELPER)
    importers = {
        module_of(path) for path in python_files() if module in modules_imported(path, {module})
    }
    assert importers == {"lcursor.mcp.client.helper"}


def requires(path: Path) -> set[str]:
    """Return the modules of ours that a Lua file requires, at any place."""
    return set(re.findall(r'require\(?\s*["\']lcursor\.?([\w.]*)["\']', path.read_text()))


def test_no_lua_file_requires_a_higher_layer() -> None:
    wrong = []
    for path in sorted(ROOT.glob("lua/lcursor/**/*.lua")):
        own = path.relative_to(ROOT / "lua/lcursor").with_suffix("").parts[0]
        for module in requires(path):
            other = module.split(".")[0] or "init"
            if other == own:
                continue
            assert other in LUA_LAYERS, f"{module} has no place in the plan"
            is_sealed = any({own, other} <= sealed for sealed in LUA_SEALED)
            if LUA_LAYERS[other] > LUA_LAYERS[own] or is_sealed:
                wrong.append(f"{path.relative_to(ROOT)} requires {module}")
    assert wrong == []


def test_the_plugin_file_requires_nothing_at_load() -> None:
    text = (ROOT / "plugin/lcursor.lua").read_text()
    assert not re.search(r"^(local\s+\w+\s*=\s*)?require", text, re.M)
    assert len(text.splitlines()) <= 88


def test_one_module_opens_files_and_one_names_buffers() -> None:
    for path in lua_files():
        text = path.read_text()
        if path.name != "open.lua":
            assert not re.search(r"vim\.cmd(\.(edit|buffer|drop)\b|\[)", text), path
        if path.parts[-2:] != ("ui", "window.lua"):
            assert not re.search(r"buf_set_name\([^)]*lcursor://", text), path


def test_nothing_blocks_neovim() -> None:
    for path in lua_files():
        assert "rpcrequest" not in path.read_text(), path
    for path in sorted((ROOT / "lcursor/host").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            name = node.func.attr
            assert name not in {"request", "command", "call", "eval", "funcs"} or (
                (name, path.name)
                in {
                    ("request", "dispatch.py"),  # the completer's own
                    ("call", "project.py"),  # of the index's client, on the project's thread
                }
            ), f"{path.name}: {name}"
            if name == "exec_lua":
                wanted = {word.arg: ast.unparse(word.value) for word in node.keywords}
                assert wanted.get("async_") == "True", path


def test_the_garbage_collector_is_left_to_neovim() -> None:
    for path in lua_files():
        assert "collectgarbage" not in path.read_text(), path


def test_only_one_file_speaks_to_the_user_and_one_to_the_wire() -> None:
    for path in lua_files():
        text, name = path.read_text(), path.name
        assert "vim.notify(" not in text or name == "notify.lua", path
        assert "rpcnotify" not in text or name == "rpc.lua", path
        code = re.sub(r"\[\[.*?\]\]", "", text, flags=re.S)  # Python to be run stands in these
        assert not re.search(r"^\s*print\(", code, re.M), path


def test_each_lua_class_is_declared_once() -> None:
    """The language server merges classes of the same name, and then checks neither."""
    declared: dict[str, Path] = {}
    for path in lua_files():
        for name in re.findall(r"^---@class (?:\(exact\) )?([\w.]+)", path.read_text(), re.M):
            assert name not in declared, f"{name}: {path} and {declared[name]}"
            declared[name] = path


def test_no_file_is_longer_than_500_lines() -> None:
    folders = ("lcursor", "lua", "plugin", "rplugin", "tests", "bench", "evals", "scripts")
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".lua"}:
                assert len(path.read_text().splitlines()) <= 500, path
