"""Run the user's formatter on a new text, and linter and tests on a copy of the project.

The copy contains the files that git lists, without those that hold secrets, and with the editor's
texts. Linter and tests run in the sandbox, which shows them the copy at the project's path, with
the packages installed there. Where no sandbox works, the copy only protects the user's files from
tests that write next to themselves. Blocks.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lcursor.changes import text
from lcursor.changes.lines import stripped
from lcursor.changes.records import Check, Lines
from lcursor.changes.text import Text
from lcursor.config import EditConfig
from lcursor.errors import CheckFailed, EditFailed, LcursorError, SandboxFailed
from lcursor.process.mounts import environments
from lcursor.process.run import Output, run
from lcursor.process.sandbox import Confinement, open_sandbox
from lcursor.project import dependencies, git, listing
from lcursor.project.links import Links
from lcursor.project.reading import Reader, open_inside
from lcursor.project.secrets import has_private_key
from lcursor.stop import Stop
from lcursor.workspace.copy_folder import CopyFolder
from lcursor.workspace.outputs import new_lines

MAX_FILES: Final = 20_000
MAX_BYTES: Final = 256 << 20
"""Maximum size of a project; in a larger one linter and tests are not run, with a note."""
MAX_OUTPUT_BYTES: Final = 4 << 20
MAX_NAMED: Final = 3
"""Maximum of files with secrets that are named after a failure."""
MAX_SHOWN_CHARS: Final = 1200
"""Maximum of a command's output for the model and the user, who get its end."""
COPY_S: Final = 20.0
LIST_BYTES: Final = 16 << 20
PRIVATE: Final = re.compile(
    r"GIT_|LCURSOR_|NVIM$|NVIM_LISTEN_ADDRESS$|SSH_AUTH_SOCK$|SSH_AGENT_PID$"
    r"|.*(TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_KEY|PRIVATE_KEY)",
    re.IGNORECASE,
)
"""Variables hidden from the commands: the user's repository, the editor, keys and passwords."""


@dataclass(frozen=True, slots=True)
class CheckResults:
    """The results of linter and tests."""

    checks: tuple[Check, ...] = ()
    note: str = ""
    """Why the commands were not run; "" if they were."""


class CheckCommands:
    """The configured commands, for one edit.

    Args:
        unsaved: the editor's texts by path.
        secrets: globs of files that are not copied, in addition to the built-in ones.
    """

    def __init__(
        self,
        root: Path,
        config: EditConfig,
        unsaved: Mapping[str, Lines] | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self._root, self._packages = Path(os.path.realpath(root)), list[str]()
        self._config, self._unsaved, self._secrets = config, dict(unsaved or {}), secrets
        self._copy: CopyFolder | None = None
        self._why_not = ""
        self._left_out: list[str] = []
        """Names of files with secrets, which are not in the copy."""
        self._lint_before: dict[str, Output] = {}
        self._originals: dict[str, bytes | None] = {}

    @property
    def has_any(self) -> bool:
        """Whether there is a linter or a test to run."""
        return bool(self._config.lint or self._config.test)

    @property
    def has_tests(self) -> bool:
        """Whether there are tests to run."""
        return bool(self._config.test)

    def __enter__(self) -> CheckCommands:
        return self

    def __exit__(self, *_: object) -> None:
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.delete()

    def format(self, path: str, lines: Lines, cancel: Stop) -> Lines:
        """Return the formatted text."""
        given = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
        try:
            words = [word.replace("{path}", path) for word in shlex.split(self._config.formatter)]
        except ValueError as error:
            raise CheckFailed(
                f"edit.formatter is not a command: {error}", "Check its quotes"
            ) from error
        output = self._execute(words, self._root, given, environment(), cancel)
        name = words[0] if words else "the formatter"
        if output.is_cut:
            raise CheckFailed(
                f"{name} took longer than {self._config.check_seconds:g} s",
                "Raise edit.check_seconds",
            )
        if output.status:
            shown = _text(output).strip()[-MAX_SHOWN_CHARS:]
            raise CheckFailed(f"{name} failed: {shown or f'status {output.status}'}")
        if not output.data.strip() and stripped(lines):
            raise CheckFailed(
                f"{name} wrote nothing", "It must write the text to its standard output"
            )
        made = output.data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
        return tuple(made.removesuffix("\n").split("\n"))

    def run(self, files: Mapping[str, Lines | None], cancel: Stop) -> CheckResults:
        """Run linter and tests on a copy of the project with some files changed, or deleted (None).

        The linter fails if it reports something that it did not before, or anything in a new file.
        """
        if not self.has_any:
            return CheckResults()
        names = {os.path.relpath(os.path.realpath(path), self._root): path for path in files}
        if far := [path for name, path in names.items() if name.startswith("..")]:
            return _not_run(f"{far[0]} is outside of the project")
        try:
            folder = self._folder(cancel)
            if folder is None:
                return _not_run(self._why_not)
            return self._run(folder, {name: files[path] for name, path in names.items()}, cancel)
        except OSError as error:
            return _not_run(f"the copy of the project cannot be written: {error.strerror or error}")
        except (EditFailed, SandboxFailed) as error:
            return _not_run(error.message)

    def _run(self, folder: Path, files: Mapping[str, Lines | None], cancel: Stop) -> CheckResults:
        found: list[Check] = []
        existing = [name for name, lines in files.items() if lines is not None]
        if self._config.lint:
            self._put(folder, files)
            each = [self._lint(folder, files, name, cancel) for name in existing]
            words = "\n".join(check.text for check in each if check.text)
            found.append(Check("lint", all(check.is_ok for check in each), words))
        if self._config.test:
            self._put(folder, files)  # again, because a linter may fix files
            output = self._shell(self._config.test, folder, next(iter(existing), ""), cancel)
            is_ok = not output.status and not output.is_cut
            found.append(Check("test", is_ok, self._problem(output)))
        return CheckResults(tuple(found))

    def _lint(
        self, folder: Path, files: Mapping[str, Lines | None], name: str, cancel: Stop
    ) -> Check:
        output = self._shell(self._config.lint, folder, name, cancel)
        if output.is_cut or not output.status:
            return Check("lint", not output.is_cut, self._problem(output))
        if self._originals[name] is None:
            return Check("lint", False, self._problem(output))
        if name not in self._lint_before:
            self._put(folder, {})
            self._lint_before[name] = self._shell(self._config.lint, folder, name, cancel)
            self._put(folder, files)
        is_worse = bool(new_lines(_reported(self._lint_before[name]), _reported(output)))
        return Check("lint", not is_worse, self._problem(output) if is_worse else "")

    def _shell(self, command: str, folder: Path, name: str, cancel: Stop) -> Output:
        command = command.replace("{path}", shlex.quote(name))
        words = ["/bin/sh", "-c", command]
        # Python's bytecode cache cannot distinguish two versions of a file within a second.
        env = {"PYTHONDONTWRITEBYTECODE": "1"}
        sandbox = open_sandbox()
        if sandbox.level == "none":
            return self._execute(
                words, folder, b"", environment() | env | {"PWD": str(folder)}, cancel
            )
        packages = tuple(self._root / name for name in self._packages)
        named = tuple(environments(self._root, [command]))
        confinement = Confinement(
            folder, self._root, packages=packages, environments=named, env=env
        )
        return sandbox.run(
            words,
            confinement,
            max_s=self._config.check_seconds,
            max_bytes=MAX_OUTPUT_BYTES,
            cancel=cancel.is_set,
        )

    def _execute(
        self,
        words: list[str],
        folder: Path,
        given: bytes,
        variables: Mapping[str, str],
        cancel: Stop,
    ) -> Output:
        """Run a command to its end, and kill its child processes."""
        output = run(
            words,
            folder,
            stdin=given,
            env=variables,
            max_bytes=MAX_OUTPUT_BYTES,
            max_error_bytes=MAX_OUTPUT_BYTES,
            drops_excess=True,
            max_s=self._config.check_seconds,
            cancel=cancel.is_set,
        )
        if output.status is None:
            raise CheckFailed(output.failure, "Check edit.formatter, edit.lint and edit.test")
        return output

    def _problem(self, output: Output) -> str:
        """Return why a command failed; "" if it did not."""
        if output.is_cut:
            return output.failure
        if not output.status:
            return ""
        words = _text(output).strip()
        if self._copy is not None:
            for folder in (self._copy.path, self._root):
                words = words.replace(f"{folder}/", "")
        if len(words) > MAX_SHOWN_CHARS:
            words = "…" + words[-MAX_SHOWN_CHARS:]
        words = words or f"it ended with status {output.status}"
        if not self._left_out:
            return words
        names, count = ", ".join(self._left_out[:MAX_NAMED]), len(self._left_out)
        names += ", …" if count > MAX_NAMED else ""
        return f"{words}\n({count} file{'s' * (count > 1)} with secrets left out: {names})"

    # The copy.

    def _folder(self, cancel: Stop) -> Path | None:
        """Return the copy, created on first use; None if that is impossible."""
        if self._copy is None and not self._why_not:
            try:
                copy = CopyFolder()
            except LcursorError as error:
                self._why_not = error.message
                return None
            try:
                self._why_not = self._fill(copy.path, cancel)
            except OSError as error:
                self._why_not = f"the project cannot be copied: {error.strerror or error}"
            except BaseException:
                copy.delete()
                raise
            if self._why_not:
                copy.delete()
            else:
                self._copy = copy
        return self._copy.path if self._copy is not None else None

    def _fill(self, folder: Path, cancel: Stop) -> str:
        """Copy the project; return the error, "" on success."""
        left, end_s = MAX_BYTES, time.monotonic() + COPY_S
        names, why_not = self._names(cancel)
        if why_not:
            return why_not
        if len(names) > MAX_FILES:
            return f"the project has over {MAX_FILES:,} files"
        reader, links = Reader(self._root, self._secrets), Links(self._root)
        for name in names:
            cancel.check()
            if time.monotonic() > end_s:
                return f"copying the project took longer than {COPY_S:g} s"
            if not links.above(name):
                left -= self._copied(folder, name, reader)
            if left < 0:
                return f"the project has over {MAX_BYTES >> 20} MB"
        parents = {str(parent) for name in names for parent in Path(name).parents if parent.parts}
        self._packages = dependencies.installed(self._root, parents)
        for path, lines in self._unsaved.items():
            name = os.path.relpath(os.path.realpath(path), self._root)
            if not name.startswith("..") and not reader.secret(path):
                _write(folder, name, _data(lines, folder / name))
        return ""

    def _names(self, cancel: Stop) -> tuple[list[str], str]:
        """Return the files that git lists, and the error if that fails."""
        names, output = git.list_names(
            self._root, (), max_bytes=LIST_BYTES, max_s=COPY_S, cancel=cancel.is_set
        )
        if output.is_cut:
            return [], f"git lists too much: {output.failure}"
        if not output.failure:
            return [name for name in names if not name.endswith("/")], ""
        others = listing.names(self._root, cancel=cancel.is_set, max_files=MAX_FILES)
        return list(others.files), others.note

    def _copied(self, folder: Path, name: str, reader: Reader) -> int:
        """Copy one file, unless it holds secrets; return its size."""
        source, target = self._root / name, folder / name
        try:
            found = os.lstat(source)
        except OSError:
            return 0  # deleted, but still in the git index
        if not stat.S_ISLNK(found.st_mode) and not stat.S_ISREG(found.st_mode):
            return 0
        if reader.secret(source):
            self._left_out.append(name)
            return 0
        target.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISLNK(found.st_mode):
            real = Path(os.path.realpath(source))
            if real.is_relative_to(self._root):
                to = folder / real.relative_to(self._root)
                target.symlink_to(os.path.relpath(to, target.parent))
            return 0
        try:
            with open_inside(self._root, name) as file:
                data = file.read(MAX_BYTES + 1)
            if has_private_key(data):
                self._left_out.append(name)
                return 0
            target.write_bytes(data)
            os.chmod(target, stat.S_IMODE(found.st_mode) | stat.S_IRUSR | stat.S_IWUSR)
        except PermissionError:
            return 0  # unreadable for the user, so also for the tests
        return len(data)

    def _put(self, folder: Path, files: Mapping[str, Lines | None]) -> None:
        """Restore the copy, except for some changed files."""
        for name, data in self._originals.items():
            _write(folder, name, data)
        self._originals.clear()
        for name, lines in files.items():
            path = folder / name
            self._originals[name] = _read(folder, name)
            _write(folder, name, None if lines is None else _data(lines, path))


def environment() -> dict[str, str]:
    """Return the environment of the commands: ours without `PRIVATE`."""
    return {name: value for name, value in os.environ.items() if not PRIVATE.match(name)}


def _not_run(why: str) -> CheckResults:
    return CheckResults((), f"lint and test were not run: {why}")


def _read(folder: Path, name: str) -> bytes | None:
    """Return the content of a file of the copy; None if a command replaced it by something else."""
    try:
        with open_inside(folder, name) as file:
            return file.read(MAX_BYTES)
    except OSError:
        return None


def _write(folder: Path, name: str, data: bytes | None) -> None:
    """Write or delete a file of the copy; links and pipes that a command created are replaced."""
    path = folder / name
    if not path.parent.resolve().is_relative_to(folder.resolve()):
        raise OSError(0, f"a command has replaced the folder of {name}")
    if data is None or not path.is_file() or path.is_symlink():
        path.unlink(missing_ok=True)
    if data is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _data(lines: Lines, path: Path) -> bytes:
    """Return a text as bytes, with the encoding and line ends of the current file."""
    try:
        return text.read(path).with_lines(lines).encode()
    except EditFailed:
        return Text(lines).encode()


def _reported(output: Output) -> Lines:
    """Return the lines that a command wrote if it failed, or else its status."""
    if not output.status:
        return ()
    return tuple(stripped(_text(output).splitlines())) or (f"status {output.status}",)


def _text(output: Output) -> str:
    return (output.data + output.errors).decode("utf-8", "replace")
