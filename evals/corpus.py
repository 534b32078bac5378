"""Source files on every machine with this project: its own, Python's, Neovim's and C headers.

The label of a file does not depend on the machine, and the order depends only on seed and labels.
"""

from __future__ import annotations

import os
import random
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from lcursor import install

ROOT = Path(__file__).resolve().parents[1]
MAX_BYTES = 400_000
"""Larger files are tables, not code."""
SKIPPED = frozenset(
    {"site-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo", "encodings"}
)

_ENDINGS = {"python": (".py",), "lua": (".lua",), "vim": (".vim",), "c": (".h", ".c")}
LANGUAGES = tuple(_ENDINGS)


@dataclass(frozen=True, slots=True)
class File:
    """A source file."""

    language: str
    label: str
    """Its origin and its path there: `python/json/decoder.py`."""
    path: Path

    def read(self) -> str:
        """Return its text; "" if it cannot be read as UTF-8."""
        try:
            return self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""


def files(language: str, seed: int) -> list[File]:
    """Return the files of one of `LANGUAGES`, shuffled by the seed."""
    found: dict[str, File] = {}
    for origin, folder in _folders(language):
        for path in _below(folder, _ENDINGS[language]):
            label = f"{origin}/{path.relative_to(folder).as_posix()}"
            found.setdefault(label, File(language, label, path))
    ordered = [found[label] for label in sorted(found)]
    random.Random(f"{seed}:{language}").shuffle(ordered)
    return ordered


def _folders(language: str) -> Iterator[tuple[str, Path]]:
    if language == "python":
        yield "lcursor", ROOT / "lcursor"
        yield "python", Path(sysconfig.get_path("stdlib"))
    elif language == "c":
        yield "python-include", Path(sysconfig.get_path("include"))
        for package in ("numpy", "llama_cpp"):
            yield from ((package, folder) for folder in _package(package))
    else:
        if language == "lua":
            yield "lcursor", ROOT / "lua/lcursor"
        neovim = install.find_neovim(ROOT / ".venv")
        if neovim is not None:
            yield "neovim", neovim.resolve().parents[1] / "share/nvim/runtime"


def _package(name: str) -> list[Path]:
    spec = find_spec(name)
    return [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]


def _below(folder: Path, endings: tuple[str, ...]) -> Iterator[Path]:
    for inside, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED]
        for name in names:
            path = Path(inside, name)
            if name.endswith(endings) and path.stat().st_size <= MAX_BYTES:
                yield path
