"""Checks of the doctor: Python, its environment and the packages.

Imports only the standard library at the top.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import re
import shlex
import sys
from pathlib import Path

from lcursor import __version__
from lcursor.cli.facts import AGAIN, ROOT, Fact
from lcursor.errors import DependencyMissing, InstallFailed
from lcursor.installer.engine import cpu_runs
from lcursor.installer.venv import STAMP, digest, read_stamp

LOCK = ROOT / "requirements.lock"
PACKAGES = {
    "pynvim": "pynvim",
    "msgpack": "msgpack",
    "numpy": "numpy",
    "typer": "typer",
    "rich": "rich",
    "huggingface_hub": "huggingface_hub",
    "httpx2": "httpx2",
    "pathspec": "pathspec",
    "watchdog": "watchdog",
    "tree-sitter": "tree_sitter",
    "tokenizers": "tokenizers",
    "onnxruntime": "onnxruntime",
    "usearch": "usearch",
    "xllamacpp": "xllamacpp",
    "llama-cpp-python": "llama_cpp",
}
"""Package to its module; the one that may crash comes last."""
if sys.version_info < (3, 11):
    PACKAGES = {"tomli": "tomli", **PACKAGES}


def locked_versions(lock: str) -> dict[str, set[str]]:
    """Return the versions of each package in a lock file."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", lock, re.MULTILINE):
        found.setdefault(name.replace("-", "_"), set()).add(version)
    return found


def python() -> Fact:
    """Describe the interpreter."""
    where = sys.executable
    data = {
        "executable": where,
        "version": platform.python_version(),
        "prefix": sys.prefix,
        "is_venv": sys.prefix != sys.base_prefix,
        "root": str(ROOT),
        "lcursor": __version__,
    }
    return Fact("python", f"{platform.python_version()}, {where}", data)


def environment() -> Fact:
    """Compare the environment with the lock file and the CPU."""
    venv = Path(sys.prefix)
    stamp = read_stamp(venv)
    is_ours = (venv / STAMP).is_file()
    fact = Fact(
        "environment",
        f"{venv}, made by lcursor {stamp.lcursor}" if is_ours else f"{venv}, not made by lcursor",
        {
            "path": str(venv),
            "is_ours": is_ours,
            "parts": stamp.parts,
            "engine": stamp.engine,
            "cpu_runs": True,
        },
    )
    if not is_ours:
        return fact
    if not cpu_runs(stamp.cpu):
        fact.data["cpu_runs"] = False
        fact.problem = InstallFailed(
            "The engine was compiled for another CPU, and would crash on this one", AGAIN
        )
    elif not {"runtime", "engine"} <= stamp.parts.keys():
        fact.problem = InstallFailed(f"The environment in {venv} is incomplete", AGAIN)
    elif stamp.parts["runtime"] != digest(LOCK):
        fact.problem = InstallFailed("The environment was made for another version", AGAIN)
        fact.level = "warn"
    return fact


def _repair_hint(environment: Fact) -> str:
    """Return the command that repairs the packages."""
    if not environment.data.get("is_ours"):
        install = shlex.join([sys.executable, "-m", "pip", "install", "-r", str(LOCK)])
        return f"Remove the setting python and run :LCursor install, or run {install}"
    if environment.problem:
        return AGAIN
    return f"Run rm -rf {shlex.quote(sys.prefix)}, then :LCursor install"


def package(name: str, module: str, locked: dict[str, set[str]], installed: Fact) -> Fact:
    """Import a package, and compare its version with the locked ones."""
    hint = _repair_hint(installed)
    is_ours = installed.data.get("is_ours", False)
    wanted = locked.get(name.replace("-", "_"), set())
    data = {"name": name, "module": module, "version": None, "locked": sorted(wanted)}
    fact = Fact("package", name, data)
    try:
        importlib.import_module(module)
        version = importlib.metadata.version(name)
    except ModuleNotFoundError as error:
        missing = name if error.name == module else f"{error.name}, which {name} needs,"
        fact.problem = DependencyMissing(f"The package {missing} is missing", hint)
    except importlib.metadata.PackageNotFoundError:
        fact.text = f"{name}, version unknown"
    except Exception as error:  # noqa: BLE001 - a foreign package may raise anything
        reason = f"{type(error).__name__}: {error}"
        fact.problem = DependencyMissing(f"The package {name} does not load ({reason})", hint)
    else:
        data["version"], fact.text = version, f"{name} {version}"
        if is_ours and wanted and version not in wanted:
            fact.level = "warn"
            fact.problem = DependencyMissing(
                f"{name} is {version}, and lcursor was tested with {', '.join(sorted(wanted))}",
                hint,
            )
    return fact
