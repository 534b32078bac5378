"""Check an agent's changes: syntax and linter after an edit, linter and tests at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lcursor.agent.observe import Outputs, TokenLimit, command_observation
from lcursor.agent.records import Observation
from lcursor.agent.result import changed_tests, file_changes
from lcursor.changes.records import Check, Region, digest
from lcursor.code import languages
from lcursor.config import EditConfig
from lcursor.process.run import Cancel
from lcursor.workspace import checks, evidence, shell
from lcursor.workspace.commands import Commands, with_path
from lcursor.workspace.edit_checks import MAX_SHOWN_CHARS
from lcursor.workspace.outputs import failed_tests
from lcursor.workspace.shell import DEFAULT_S, CommandResult, Shell
from lcursor.workspace.tree import Tree


class FinishChecks:
    """Runs the user's `edit.lint` and `edit.test`.

    Args:
        test: the only failing test that has to be corrected; "" for all.
    """

    def __init__(
        self,
        tree: Tree,
        commands: Shell,
        config: EditConfig,
        limit: TokenLimit,
        outputs: Outputs,
        test: str = "",
    ) -> None:
        self._test = test
        self._tree, self._shell, self._config = tree, commands, config
        self._limit, self._outputs = limit, outputs
        self._lint: dict[tuple[str, str], list[str]] = {}
        """Problems by path and digest of the text."""
        self.seen: list[str] = []
        """What the last failed tests did; see `evidence`."""
        self._commands = Commands(tree, commands, config, max(config.check_seconds, DEFAULT_S))

    def lint(self, path: str, lines: Sequence[str], cancel: Cancel) -> list[str]:
        """Return what the linter says of a file in the tree; nothing if there is none.

        Args:
            lines: of the file, for which the result is cached.
        """
        if not self._config.lint or not self._shell.is_confined:
            return []
        key = path, digest(lines)
        if key not in self._lint:
            max_s = max(self._config.check_seconds, DEFAULT_S)
            command = with_path(self._config.lint, path)
            self._lint[key] = self._shell.run(command, cancel, max_s=max_s).problems()
        return self._lint[key]

    def test(self, path: str, cancel: Cancel) -> Check | None:
        """Return what the user's tests say of the tree; None without tests.

        Args:
            path: the file that was changed last.
        """
        if not self._config.test or not self._shell.is_confined:
            return None
        max_s = max(self._config.check_seconds, DEFAULT_S)
        result = self._shell.run(with_path(self._config.test, path), cancel, max_s=max_s)
        text = "\n".join(result.lines)
        end = text[-MAX_SHOWN_CHARS:]
        lost = failed_tests(text) - failed_tests(end)
        return Check(
            "test", result.is_ok, "\n".join([*(f"✖ {name}" for name in sorted(lost)), end])
        )

    def evidence(
        self, command: str, result: CommandResult, tests: str, cancel: Cancel
    ) -> list[str]:
        """Return what failed tests did before they failed; nothing if that is unknown.

        Args:
            tests: the user's command for tests; others are repeated if they surely run tests.

        Raises:
            Cancelled: `cancel` returned true.
        """
        if not self._config.evidence or not evidence.is_test(command, tests):
            return []
        self.seen = evidence.collect(self._shell, command, result, cancel, self._tree.path)
        return self.seen

    def forget(self) -> None:
        """Forget what the tests said: a command may have changed files that git ignores."""
        self._commands.forget_last()

    def finish(self, summary: str, cancel: Cancel, *, is_unconfined: bool = False) -> Observation:
        """Return "done", or the problems of the changes; status 0 if the tests passed.

        Raises:
            Cancelled: `cancel` returned true.
        """
        target = summary.strip().partition("\n")[0]
        all_changed = self._tree.changed()
        changed = [each.to or each.path for each in all_changed if each.kind != "delete"]
        if not all_changed:
            return Observation("finished; no file was changed", target=target, result="done")
        has_lint, has_tests = bool(self._config.lint), bool(self._config.test)
        if not self._shell.is_confined and not is_unconfined and (has_lint or has_tests):
            words = f"finished; linter and tests were not run: {shell.NO_SANDBOX}"
            return Observation(words, target=target, result="done")
        note = ""
        with self._commands as commands:
            for path in changed if has_lint else ():
                compared = commands.lint(path, cancel, is_unconfined=is_unconfined)
                if not compared.is_ok:
                    words = (
                        f"new problems of {compared.command}; correct them, then call finish again"
                    )
                    result = replace(compared.result, lines=compared.lines)
                    return self._failed(compared.command, result, words, target, "linter failed")
                if compared.why_not_run:
                    note = f"; the linter was not run: {compared.why_not_run}"
            if not has_tests:
                words = f"finished; the user has not set a test command{note}"
                return Observation(words, target=target, result="done")
            compared = commands.test(next(iter(changed), ""), cancel, is_unconfined=is_unconfined)
            command, result = compared.command, compared.result
            if self._test and (tests := self._changed_tests()):
                words = f"restore {tests}; change what the tests test, then call finish again"
                return self._failed(command, result, words, target, "tests changed")
            if compared.is_ok:
                words = f"finished; the tests passed{note}"
                return Observation(words, False, target, "done", status=0)
            before = commands.before(command, cancel, is_unconfined=is_unconfined)
            if self._is_corrected(before, result):
                words = f"finished; {self._test} passes, and other tests fail as before"
                return Observation(words, False, target, "done", status=0)
            seen = [] if is_unconfined else self.evidence(command, result, command, cancel)
        reason = shell.obstacle(result, command, self._tree.root)
        if reason and before.status == result.status:
            return Observation(reason, True, target, result.brief, obstacle=reason)
        when = (
            "but not before your changes" if before.is_ok else
            f"as before your changes ({before.head})"
        )  # fmt: skip
        words = f"the tests ({command}) failed, {when}; correct them, then call finish again"
        return self._failed(command, result, words, target, "tests failed", seen)

    def _changed_tests(self) -> str:
        """Return the names of test files with changed or deleted lines."""
        return ", ".join(changed_tests(self._tree.root, file_changes(self._tree).files))

    def _is_corrected(self, before: CommandResult, after: CommandResult) -> bool:
        """Return whether the test passes, and no other one fails that did not before."""
        if any(each.status is None or each.is_cut for each in (before, after)):
            return False
        then, now = (failed_tests("\n".join(each.lines)) for each in (before, after))
        return self._test in then and bool(now) and now <= then - {self._test}

    def _failed(
        self,
        command: str,
        result: CommandResult,
        words: str,
        target: str,
        brief: str,
        seen: Sequence[str] = (),
    ) -> Observation:
        found = command_observation(result, command, self._limit, self._outputs, [*seen, words])
        return replace(found, is_error=True, target=target, result=brief)


def syntax_problem(
    path: str, before: Sequence[str], after: Sequence[str], first_row: int, last_row: int
) -> str:
    """Return a syntax error that a change of some rows made; "" for none.

    Cost: about 3 MB/s; twice that if there is an error.
    """
    language = languages.detect(path, after[0] if after else "")
    found = checks.parses(before, after, Region(first_row, last_row, ""), language)
    return "" if found is None or found.is_ok else found.text
