"""Runs the user's own commands on a change before it is shown: formatter, linter, tests.

The formatter gets a text on its standard input. Linter and tests run in a copy of the project, of
what git lists and never through a link that leads out. The copy keeps the change out of the user's
files; it is no sandbox: what the commands run has the user's rights. Each command is a process
group of its own that is ended with it. Blocks; on the edit's thread.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lcursor.config import EditConfig
from lcursor.edit.records import Check, Lines
from lcursor.errors import Cancelled, CheckFailed
from lcursor.process.run import run
from lcursor.project import git, listing

MAX_FILES: Final = 20_000
MAX_BYTES: Final = 256 << 20
"""Of a project that is copied; a larger one is not tried, which is said."""
MAX_OUTPUT_BYTES: Final = 4 << 20
MAX_TOLD_CHARS: Final = 1200
"""Of what a command says, for the model and for people; its end says most."""
COPY_S: Final = 20.0
LIST_BYTES: Final = 16 << 20
PRIVATE: Final = re.compile(
    r"GIT_|LCURSOR_|NVIM$|NVIM_LISTEN_ADDRESS$|SSH_AUTH_SOCK$|SSH_AGENT_PID$"
    r"|.*(TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_KEY|PRIVATE_KEY)",
    re.IGNORECASE,
)
"""Variables that the commands do not get: the user's repository, the editor, keys and passwords."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What the commands said."""

    checks: tuple[Check, ...] = ()
    note: str = ""
    """Why a command was not run; empty where all were."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended."""

    status: int
    """Its exit status; negative for a signal."""
    text: str
    """What it said on both outputs."""
    data: bytes = b""
    """What it said on its standard output."""
    is_late: bool = False


class Trial:
    """The commands of the settings, for one edit.

    Args:
        root: of the project.
        config: the commands, and how long each may take.
        unsaved: texts of other files as they stand in the editor, by absolute path.

    Thread: of the edit; `close` by who made it.
    """

    def __init__(
        self, root: Path, config: EditConfig, unsaved: Mapping[str, Lines] | None = None
    ) -> None:
        self._root = Path(os.path.realpath(root))
        self._config, self._unsaved = config, dict(unsaved or {})
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._refusal = ""
        self._before: dict[str, Ran] = {}
        self._changed: dict[str, bytes | None] = {}

    @property
    def has_commands(self) -> bool:
        """Whether there is a linter or a test to run."""
        return bool(self._config.lint or self._config.test)

    @property
    def has_tests(self) -> bool:
        """Whether there are tests to run."""
        return bool(self._config.test)

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the copy."""
        copy, self._copy = self._copy, None
        if copy is not None:
            _remove(Path(copy.name))
            copy.cleanup()

    def formatted(self, path: str, lines: Lines, cancel: threading.Event) -> Lines:
        """Return a text as the formatter wants it; as it is where there is none.

        Raises:
            CheckFailed: it cannot be run, says no, or says nothing.
            Cancelled: `cancel` was set.
        """
        if not self._config.formatter:
            return lines
        text = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        try:
            words = [word.replace("{path}", path) for word in shlex.split(self._config.formatter)]
        except ValueError as error:
            raise CheckFailed(
                f"edit.formatter is no command: {error}", "Look at its quotes"
            ) from error
        ran = _run(words, self._root, text, self._config.check_seconds, cancel, environment())
        name = words[0] if words else "the formatter"
        if ran.is_late:
            raise CheckFailed(
                f"{name} took longer than {self._config.check_seconds:g} s",
                "Raise edit.check_seconds",
            )
        if ran.status:
            words_of_it = ran.text.strip()[-MAX_TOLD_CHARS:]
            raise CheckFailed(f"{name} says: {words_of_it or f'status {ran.status}'}")
        if not ran.data.strip() and any(line.strip() for line in lines):
            raise CheckFailed(
                f"{name} wrote nothing", "It has to write the text to its standard output"
            )
        made = ran.data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
        return tuple(made.removesuffix("\n").split("\n"))

    def checks(self, files: Mapping[str, Lines | None], cancel: threading.Event) -> Tried:
        """Run linter and tests on a copy of the project with some files changed.

        A linter that complained before fails only where it complains more; about a new file, where
        it complains at all.

        Args:
            files: the new lines of all that is changed, by absolute path; None for no file.
            cancel: ends it.

        Raises:
            Cancelled: `cancel` was set.
        """
        if not self.has_commands:
            return Tried()
        names: dict[str, Lines | None] = {}
        for path, lines in files.items():
            name = os.path.relpath(os.path.realpath(path), self._root)
            if name.startswith(".."):
                return _not_run(f"{path} is outside of the project")
            names[name] = lines
        folder = self._folder(cancel)
        if folder is None:
            return _not_run(self._refusal)
        try:
            return self._checked(folder, names, cancel)
        except OSError as error:
            return _not_run(f"the copy of the project cannot be written: {error.strerror or error}")
        except CheckFailed as error:
            return _not_run(error.message)

    def _checked(
        self, folder: Path, names: Mapping[str, Lines | None], cancel: threading.Event
    ) -> Tried:
        found: list[Check] = []
        there = [name for name, lines in names.items() if lines is not None]
        self._put_back(folder)
        if self._config.lint:
            self._put(folder, names)
            each = [self._lint(folder, names, name, cancel) for name in there]
            words = "\n".join(check.text for check in each if check.text)
            found.append(Check("lint", all(check.is_ok for check in each), words))
        if self._config.test:
            self._put(folder, names)  # once more: a linter may mend what it finds
            ran = self._ran(self._config.test, folder, next(iter(there), ""), cancel)
            found.append(Check("test", not ran.status and not ran.is_late, self._told(ran)))
        return Tried(tuple(found))

    def _lint(
        self, folder: Path, names: Mapping[str, Lines | None], name: str, cancel: threading.Event
    ) -> Check:
        ran = self._ran(self._config.lint, folder, name, cancel)
        if ran.is_late or not ran.status:
            return Check("lint", not ran.is_late, self._told(ran))
        if self._changed[name] is None:  # the file is new
            return Check("lint", False, self._told(ran))
        before = self._before.get(name)
        if before is None:
            self._put_back(folder)
            before = self._before[name] = self._ran(self._config.lint, folder, name, cancel)
            self._put(folder, names)
        if before.status and _rows(ran.text) <= _rows(before.text):
            return Check("lint", True)
        return Check("lint", False, self._told(ran))

    def _ran(self, command: str, folder: Path, name: str, cancel: threading.Event) -> Ran:
        command = command.replace("{path}", shlex.quote(name))
        given = {
            **environment(),
            "PWD": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",  # what is written twice in a second looks the same
        }
        words = ["/bin/sh", "-c", command]
        return _run(words, folder, b"", self._config.check_seconds, cancel, given)

    def _told(self, ran: Ran) -> str:
        if ran.is_late:
            return f"it took longer than {self._config.check_seconds:g} s"
        if not ran.status:
            return ""
        text = ran.text.strip()
        if self._copy is not None:
            text = text.replace(f"{os.path.realpath(self._copy.name)}/", "")
        if len(text) > MAX_TOLD_CHARS:
            text = "…" + text[-MAX_TOLD_CHARS:]
        return text or f"it ended with status {ran.status}"

    # The copy.

    def _folder(self, cancel: threading.Event) -> Path | None:
        """Return the copy, made when it is needed first; None where there can be none."""
        if self._copy is None and not self._refusal:
            copy = tempfile.TemporaryDirectory(prefix="lcursor-edit-", ignore_cleanup_errors=True)
            try:
                self._refusal = self._fill(Path(copy.name), cancel)
            except OSError as error:
                self._refusal = f"the project cannot be copied: {error.strerror or error}"
            except BaseException:
                copy.cleanup()
                raise
            if self._refusal:
                copy.cleanup()
            else:
                self._copy = copy
        return Path(os.path.realpath(self._copy.name)) if self._copy is not None else None

    def _fill(self, folder: Path, cancel: threading.Event) -> str:
        """Copy the project; return why not, "" where it was."""
        left, end_s = MAX_BYTES, time.monotonic() + COPY_S
        names, refusal = self._names(cancel)
        if refusal:
            return refusal
        if len(names) > MAX_FILES:
            return f"the project has over {MAX_FILES:,} files"
        for name in names:
            if cancel.is_set():
                raise Cancelled("the edit was stopped")
            if time.monotonic() > end_s:
                return f"copying the project took longer than {COPY_S:g} s"
            left -= self._copied(folder, name)
            if left < 0:
                return f"the project has over {MAX_BYTES >> 20} MB"
        for path, lines in self._unsaved.items():
            name = os.path.relpath(os.path.realpath(path), self._root)
            if not name.startswith(".."):
                _write(folder, name, _data(lines, folder / name))
        return ""

    def _names(self, cancel: threading.Event) -> tuple[list[str], str]:
        """Return what git lists, and why nothing can be listed."""
        words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        said = git.output(self._root, *words, max_bytes=LIST_BYTES, cancel=cancel.is_set)
        if said.is_cut:
            return [], f"git lists too much: {said.failure}"
        if not said.failure:
            found = dict.fromkeys(os.fsdecode(name) for name in said.data.split(b"\0") if name)
            return [name for name in found if not name.endswith("/")], ""
        found_files = listing.names(self._root, cancel=cancel.is_set, max_files=MAX_FILES)
        return list(found_files.files), found_files.note

    def _copied(self, folder: Path, name: str) -> int:
        """Copy one file; return its size."""
        source, target = self._root / name, folder / name
        try:
            found = os.lstat(source)
        except OSError:
            return 0  # it is deleted, and git has not been told
        if not stat.S_ISLNK(found.st_mode) and not stat.S_ISREG(found.st_mode):
            return 0
        # A folder on the way may be a link that leads out of the project.
        if not Path(os.path.realpath(source.parent)).is_relative_to(self._root):
            return 0
        target.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISLNK(found.st_mode):
            real = Path(os.path.realpath(source))
            if real.is_relative_to(self._root):
                to = folder / real.relative_to(self._root)
                target.symlink_to(os.path.relpath(to, target.parent))
            return 0
        try:
            shutil.copyfile(source, target, follow_symlinks=False)
            os.chmod(target, stat.S_IMODE(found.st_mode) | stat.S_IRUSR | stat.S_IWUSR)
        except PermissionError:
            return 0  # what the user cannot read, the tests cannot either
        return found.st_size

    def _put(self, folder: Path, files: Mapping[str, Lines | None]) -> None:
        """Write files into the copy, or delete them there, and keep what was there."""
        for name, lines in files.items():
            path = folder / name
            if name not in self._changed:
                self._changed[name] = path.read_bytes() if path.is_file() else None
            if lines is None:
                path.unlink(missing_ok=True)
            else:
                _write(folder, name, _data(lines, path))

    def _put_back(self, folder: Path) -> None:
        """Make the copy what the project is."""
        for name, data in self._changed.items():
            if data is None:
                (folder / name).unlink(missing_ok=True)
            else:
                _write(folder, name, data)
        self._changed.clear()


def environment() -> dict[str, str]:
    """Return the variables that the commands get: ours but for `PRIVATE`."""
    return {name: value for name, value in os.environ.items() if not PRIVATE.match(name)}


def _not_run(why: str) -> Tried:
    return Tried((), f"lint and test were not run: {why}")


def _write(folder: Path, name: str, data: bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() and not path.resolve().is_relative_to(folder):
        path.unlink()
    path.write_bytes(data)


def _data(lines: Lines, path: Path) -> bytes:
    """Return a text as bytes, with the line ends of what is there."""
    end = b"\n"
    try:
        with path.open("rb") as file:
            if file.readline(1 << 16).endswith(b"\r\n"):
                end = b"\r\n"
    except OSError:
        pass
    rows = [line.encode("utf-8", "surrogateescape") for line in lines]
    return b"".join(row + end for row in rows)


def _rows(text: str) -> int:
    return sum(bool(line.strip()) for line in text.splitlines())


def _run(
    words: list[str],
    folder: Path,
    given: bytes,
    most_s: float,
    cancel: threading.Event,
    environment: Mapping[str, str],
) -> Ran:
    """Run a command to its end, and end all that it started.

    Raises:
        CheckFailed: it cannot be run.
        Cancelled: `cancel` was set.
    """
    output = run(
        words,
        folder,
        stdin=given,
        env=environment,
        max_bytes=MAX_OUTPUT_BYTES,
        max_error_bytes=MAX_OUTPUT_BYTES,
        drops_excess=True,
        max_s=most_s,
        cancel=cancel.is_set,
    )
    if output.status is None:
        raise CheckFailed(output.failure, "Look at edit.formatter, edit.lint and edit.test")
    text = (output.data + output.errors).decode("utf-8", "replace")
    return Ran(output.status, text, output.data, output.is_cut)


def _remove(folder: Path) -> None:
    """Make what a command wrote removable."""
    for here, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(here, name)
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
