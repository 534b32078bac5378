"""Source files that are on every machine with this project: its own, Python's, Neovim's, headers.

Finds and reads; which lines are of use, others know. A file's label has no folder of the machine
in it, and the order depends on seed and labels alone.
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
MOST_BYTES = 400_000
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
    """Where it comes from and its path there: `python/json/decoder.py`."""
    path: Path

    def read(self) -> str:
        """Return its text, "" where it is no UTF-8 or cannot be read."""
        try:
            return self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""


def files(language: str, seed: int) -> list[File]:
    """Return the files of one of `LANGUAGES`, shuffled by the seed; none where there are none."""
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
            if name.endswith(endings) and path.stat().st_size <= MOST_BYTES:
                yield path
