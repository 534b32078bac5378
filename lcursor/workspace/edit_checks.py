"""Try new texts of files: the user's formatter on one, linter and tests on a copy of the project.

Linter and tests run as for agents, on a copy of what the user sees, without files that hold
secrets; see `commands`. Where no sandbox works, the copy only protects the user's files from tests
that write next to themselves. Blocks.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lcursor.changes.lines import stripped
from lcursor.changes.records import Check, Lines
from lcursor.changes.text import Text
from lcursor.config import AgentConfig, EditConfig
from lcursor.errors import Cancelled, CheckFailed, LcursorError
from lcursor.process import run
from lcursor.process.sandbox import open_sandbox
from lcursor.project.reading import SECRET_LINK, SECRET_TEXT
from lcursor.stop import Stop
from lcursor.workspace import evidence
from lcursor.workspace.approval import decides
from lcursor.workspace.commands import Commands, Compared
from lcursor.workspace.copy_folder import CopyFolder
from lcursor.workspace.files import Denied, Files
from lcursor.workspace.outputs import counted
from lcursor.workspace.shell import Shell, environment
from lcursor.workspace.tree import Tree

COPY_S: Final = 20.0
"""A project whose copy takes longer is not checked, with a note."""
MAX_OUTPUT_BYTES: Final = 4 << 20
MAX_NAMED: Final = 3
"""Maximum of files with secrets that are named after a failure."""
MAX_SHOWN_CHARS: Final = 1200
"""Maximum of a command's output for the model and the user, who get its end."""


@dataclass(frozen=True, slots=True)
class CheckResults:
    """The results of linter and tests."""

    checks: tuple[Check, ...] = ()
    note: str = ""
    """Which commands were not run, and why; "" if all were."""


class EditChecks:
    """The formatter, linter and tests of the user, for one edit.

    Args:
        agent: what commands in a sandbox see besides the copy.
        unsaved: the editor's texts by path.
        secrets: globs of files that are not copied, in addition to the built-in ones.
    """

    def __init__(
        self,
        root: Path,
        config: EditConfig,
        unsaved: Mapping[str, Lines] | None = None,
        secrets: Sequence[str] = (),
        agent: AgentConfig | None = None,
    ) -> None:
        self._root = Path(os.path.realpath(root))
        self._config, self._agent = config, agent or AgentConfig()
        self._unsaved, self._secrets = dict(unsaved or {}), secrets
        self._copy: _Copy | None = None
        self._why_not = ""

    @property
    def has_any(self) -> bool:
        """Whether there is a linter or a test to run."""
        return bool(self._config.lint or self._config.test)

    @property
    def has_tests(self) -> bool:
        """Whether there are tests to run."""
        return bool(self._config.test)

    def __enter__(self) -> EditChecks:
        return self

    def __exit__(self, *_: object) -> None:
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.delete()

    def format(self, path: str, lines: Lines, cancel: Stop) -> Lines:
        """Return the formatted text."""
        return format_text(self._config, self._root, path, lines, cancel)

    def run(self, files: Mapping[str, Lines | None], cancel: Stop) -> CheckResults:
        """Run linter and tests with some files changed, or deleted (None)."""
        if not self.has_any:
            return CheckResults()
        names = {os.path.relpath(os.path.realpath(path), self._root): path for path in files}
        if far := [path for name, path in names.items() if name.startswith("..")]:
            return _not_run(f"{far[0]} is outside of the project")
        if open_sandbox().level == "none" and (decisive := self._decisive(names)):
            return _not_run(f"{decisive} decides what they do, and no sandbox works here")
        try:
            copy = self._opened(cancel)
            if copy is None:
                return _not_run(self._why_not)
            copy.put({name: files[path] for name, path in names.items()})
            existing = [name for name, path in names.items() if files[path] is not None]
            return self._run(copy, existing, cancel)
        except OSError as error:
            return _not_run(f"the copy of the project cannot be written: {error.strerror or error}")
        except Denied as error:
            return _not_run(f"the copy of the project cannot be written: {error}")
        except Cancelled:
            raise
        except LcursorError as error:
            return _not_run(error.message)

    def _decisive(self, names: Iterable[str]) -> str:
        """Return a changed file that decides what a command does, so that no approval holds."""
        commands = (self._config.lint, self._config.test)
        return next((name for name in names if any(decides(name, each) for each in commands)), "")

    def _run(self, copy: _Copy, existing: Sequence[str], cancel: Stop) -> CheckResults:
        checks, note, is_unconfined = list[Check](), "", open_sandbox().level == "none"
        changed = copy.tree.checkpoint()
        if changed != copy.tree.base:
            copy.commands.forget_last()
        with copy.commands as commands:
            if self._config.lint:
                results = [
                    commands.lint(name, cancel.is_set, is_unconfined=is_unconfined)
                    for name in existing
                ]
                text = "\n".join(filter(None, (self._text(each, copy) for each in results)))
                if why := next((each.why_not_run for each in results if each.why_not_run), ""):
                    note = f"lint was not run: {why}"
                else:
                    checks.append(Check("lint", all(each.is_ok for each in results), text))
                copy.tree.restore(changed)  # a linter may fix files
            if self._config.test:
                name = next(iter(existing), "")
                test = commands.test(name, cancel.is_set, is_unconfined=is_unconfined)
                text = self._text(test, copy)
                if self._config.evidence and not test.is_ok and not is_unconfined:
                    seen = evidence.collect(
                        copy.shell, test.command, test.result, cancel.is_set, copy.tree.path
                    )
                    text = "\n".join([text, *seen])
                checks.append(Check("test", test.is_ok, text))
        return CheckResults(tuple(checks), note)

    def _text(self, found: Compared, copy: _Copy) -> str:
        """Return why a command failed; "" if it did not."""
        if found.is_ok:
            return ""
        text = "\n".join(found.lines if found.result.status is not None else [found.result.head])
        for folder in (copy.tree.path, self._root):
            text = text.replace(f"{folder}/", "")
        text = text.strip()
        if len(text) > MAX_SHOWN_CHARS:
            text = "…" + text[-MAX_SHOWN_CHARS:]
        secret = copy.secret()
        if not secret:
            return text
        names = ", ".join(secret[:MAX_NAMED]) + (", …" if len(secret) > MAX_NAMED else "")
        return f"{text}\n({counted(len(secret), 'file')} with secrets left out: {names})"

    def _opened(self, cancel: Stop) -> _Copy | None:
        """Return the copy, made on first use; None if that is impossible."""
        if self._copy is not None or self._why_not:
            return self._copy
        end_s = time.monotonic() + COPY_S
        try:
            self._copy = _Copy(
                self._root,
                self._config,
                self._agent,
                {path: "\n".join(lines) for path, lines in self._unsaved.items()},
                self._secrets,
                lambda: cancel.is_set() or time.monotonic() > end_s,
            )
        except Cancelled:
            cancel.check()
            self._why_not = f"copying the project took longer than {COPY_S:g} s"
        except LcursorError as error:
            self._why_not = error.message
        return self._copy


class _Copy:
    """A copy of a project in a temporary folder."""

    def __init__(
        self,
        root: Path,
        config: EditConfig,
        agent: AgentConfig,
        unsaved: Mapping[str, str],
        secrets: Sequence[str],
        cancel: run.Cancel,
    ) -> None:
        self._folder = CopyFolder()
        try:
            folder = self._folder.path
            self.tree = Tree.create(root, folder, unsaved=unsaved, secrets=secrets, cancel=cancel)
            self.shell = Shell(self.tree, open_sandbox(), agent, (config.test, config.lint))
            self.commands = Commands(self.tree, self.shell, config, config.check_seconds)
            names = tuple(dict.fromkeys((self.tree.root, self.tree.path)))
            self._files = Files(self.tree.path, names, self.tree.secret_reason, folder)
            self._is_used = False
        except BaseException:
            self.delete()
            raise

    def put(self, files: Mapping[str, Lines | None]) -> None:
        """Restore the copy, except for some changed files.

        Raises:
            OSError, Denied, LcursorError: it cannot be written.
        """
        if self._is_used:
            self.tree.restore(self.tree.base)
        self._is_used = True
        for name, lines in files.items():
            if lines is None:
                self._files.delete(name)
            elif self._files.exists(name):
                file = self._files.read(name)
                self._files.write(name, file.text.with_lines(lines), file.mode)
            else:
                self._files.write(name, Text(lines))

    def secret(self) -> list[str]:
        """Return the names of files with secrets, which are not in the copy."""
        reasons = (SECRET_TEXT, SECRET_LINK)
        return sorted(
            path
            for path, why in self.tree.left_out.items()
            if why in reasons or self.tree.secret_reason(path)
        )

    def delete(self) -> None:
        """Delete it."""
        self._folder.delete()


def format_text(config: EditConfig, root: Path, path: str, lines: Lines, cancel: Stop) -> Lines:
    """Return a text as `edit.formatter` writes it.

    Raises:
        CheckFailed: the formatter failed.
        Cancelled: `cancel` was set.
    """
    given = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    try:
        words = [word.replace("{path}", path) for word in shlex.split(config.formatter)]
    except ValueError as error:
        raise CheckFailed(
            f"edit.formatter is not a command: {error}", "Check its quotes"
        ) from error
    output = run.run(
        words,
        root,
        stdin=given,
        env=environment(),
        max_bytes=MAX_OUTPUT_BYTES,
        max_error_bytes=MAX_OUTPUT_BYTES,
        drops_excess=True,
        max_s=config.check_seconds,
        cancel=cancel.is_set,
    )
    if output.status is None:
        raise CheckFailed(output.failure, "Check edit.formatter")
    name = words[0] if words else "the formatter"
    if output.is_cut:
        raise CheckFailed(
            f"{name} took longer than {config.check_seconds:g} s", "Raise edit.check_seconds"
        )
    if output.status:
        shown = (output.data + output.errors).decode("utf-8", "replace").strip()[-MAX_SHOWN_CHARS:]
        raise CheckFailed(f"{name} failed: {shown or f'status {output.status}'}")
    if not output.data.strip() and stripped(lines):
        raise CheckFailed(f"{name} wrote nothing", "It must write the text to its standard output")
    formatted = output.data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    return tuple(formatted.removesuffix("\n").split("\n"))


def _not_run(why: str) -> CheckResults:
    return CheckResults((), f"lint and test were not run: {why}")
