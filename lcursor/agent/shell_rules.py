"""Decide by rules whether a shell command may run without approval. Pure, but for file names.

Only plain commands can be allowed: words without expansions, joined by `&&`, `||`, `;` or `|`. Two
parsers must agree on the words, tree-sitter's and `shlex`. Everything else has to be approved.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lcursor.agent.records import Decision
from lcursor.code import grammars
from lcursor.config import AgentConfig
from lcursor.errors import ConfigInvalid
from lcursor.project import secrets

if TYPE_CHECKING:
    from lcursor.code.grammars import Node

Words = tuple[str, ...]
"""A command: its name and arguments, without quotes."""

MAX_CHARS: Final = 2000
"""Length of a command that a user can still check at a glance. Its paths are short enough for the
system to resolve, so that a file that is not found does not exist, and cannot be read."""
OPERATORS: Final = frozenset({"&&", "||", ";", "|"})
WORDS: Final = frozenset({"word", "number", "string", "raw_string", "concatenation"})
PLAIN: Final = WORDS.union(
    ("program", "list", "pipeline", "command", "command_name", "string_content", '"', "")
)
"""Types of the other syntax nodes of plain commands."""
WHY: Final = {
    "ERROR": "it has a syntax error",
    "redirected_statement": "it redirects input or output",
    "file_redirect": "it redirects input or output",
    "herestring_redirect": "it redirects input or output",
    "command_substitution": "it inserts the output of a command",
    "process_substitution": "it inserts the output of a command",
    "simple_expansion": "it inserts a variable",
    "expansion": "it inserts a variable",
    "arithmetic_expansion": "it computes a value",
    "variable_assignment": "it sets a variable",
    "variable_assignments": "it sets a variable",
    "declaration_command": "it sets a variable",
    "function_definition": "it defines a function",
    "subshell": "it starts a subshell",
    "&": "it starts a background process",
}
"""Reasons by the type of a syntax node."""
ESCAPED: Final = "it has an escaped character"
NOT_PLAIN: Final = "it is not a list of plain commands"
PATTERN: Final = "it has a pattern for file names"
_PATTERN: Final = re.compile(r"[*?\[\]{}]|^~|[=:]~")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

# Source: openai/codex, shell-command/src/is_safe_command.rs, without `git`, whose configuration
# can run programs.
SAFE: Final = frozenset(
    {
        "base64", "cat", "cd", "cut", "echo", "expr", "false", "find", "grep", "head", "id", "ls",
        "nl", "paste", "pwd", "rev", "rg", "sed", "seq", "stat", "tail", "tr", "true", "uname",
        "uniq", "wc", "which", "whoami",
    }
)  # fmt: skip
"""Commands that only read, with the exceptions of `_is_safe`."""
_FIND_ACTS: Final = re.compile(r"-(exec|ok|delete|fprint|fls|files0-from)")
_RG_RUNS: Final = re.compile(r"--(pre|hostname-bin|search-zip)|-[^-]*z")
_SED_RANGE: Final = re.compile(r"\d+(,\d+)?p")
_ATTACHED: Final = re.compile(r"-[^-]+?((?:~|\.\.)?/.*|\.\.)|-[^-](.+)")
"""A path behind the letters of options."""
_RECURSIVE: Final = re.compile(r"--(dereference-)?recursive|--directories|-[^-]*[rRd]")


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """A command line."""

    commands: tuple[Words, ...]
    """All its commands, also those in subshells and substitutions."""
    joints: tuple[tuple[int, str], ...] = ()
    """The operators, each with the number of commands before it."""
    problem: str = ""
    """Why it needs approval whatever its words are; "" for plain commands."""


@dataclass(frozen=True, slots=True)
class ShellRules:
    """The user's rules: beginnings of commands."""

    allow: tuple[Words, ...] = ()
    forbid: tuple[Words, ...] = ()
    secret_globs: secrets.SecretGlobs = field(
        default_factory=lambda: secrets.SecretGlobs(Path("/"))
    )
    own: tuple[str, ...] = ()
    """Whole commands of the settings, which may run in the sandbox; `{path}` is any path."""

    def is_own(self, command: str) -> bool:
        """Return whether a command is exactly one of the settings."""
        for own_command in self.own:
            head, mark, tail = own_command.partition("{path}")
            path = command[len(head) : len(command) - len(tail)] if mark else ""
            with contextlib.suppress(ValueError):
                if mark:  # within quotes, those of the path would protect from nothing
                    shlex.split(head)
                paths = shlex.split(path)
                is_path = len(paths) == 1 and shlex.quote(paths[0]) == path and path[0] != "-"
                if command == own_command.replace("{path}", path) and (is_path or not mark):
                    return True
        return False

    @classmethod
    def of(
        cls, config: AgentConfig, secret_globs: Sequence[str] = (), own: Sequence[str] = ()
    ) -> ShellRules:
        """Return the rules of the settings.

        Args:
            secret_globs: the setting `privacy.exclude`.
            own: the settings `edit.test` and `edit.lint`.

        Raises:
            ConfigInvalid: a rule is not the beginning of one plain command.
        """
        globs = secrets.SecretGlobs(Path("/"), secret_globs)
        allow, forbid = _rules("allow", config.allow), _rules("forbid", config.forbid)
        return cls(allow, forbid, globs, tuple(filter(None, own)))


def parse(text: str) -> ParsedCommand:
    """Return the commands of a command line."""
    data = text.encode("utf-8", "replace")
    root = grammars.parse("bash", data)
    if root is None:
        return ParsedCommand((), problem="it cannot be parsed")
    commands, joints, problems = list[Words](), list[tuple[int, str]](), list[str]()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += reversed(node.children)
        if node.type in OPERATORS:
            joints.append((len(commands), node.type))
        elif node.is_missing or node.type.strip() not in PLAIN:
            problems.append(WHY.get(node.type, NOT_PLAIN))
        elif node.type == "command":
            parts = [each for each in node.children if each.type in {"command_name", *WORDS}]
            commands.append(tuple(_value(each, data, problems) for each in parts))
    if _CONTROL.search(text):
        problems.append("it has control characters")
    if len(text) > MAX_CHARS:
        problems.insert(0, f"it is longer than {MAX_CHARS:,} characters")
    if not problems and not _is_agreed(text, commands):
        problems.append(NOT_PLAIN)
    return ParsedCommand(tuple(commands), tuple(joints), problems[0] if problems else "")


def check(text: str, rules: ShellRules, folder: Path, *, is_confined: bool) -> Decision:
    """Decide whether a command may run without approval, without regard to the policy.

    A rule that forbids applies first, then what needs approval, then what allows.

    Args:
        folder: where it runs.
        is_confined: whether files with secrets are hidden from it.
    """
    if reason := forbidden(text, rules):
        return Decision("forbid", reason)
    parsed = parse(text)
    if parsed.problem:
        return Decision("ask", parsed.problem)
    folders = [folder]
    for words in parsed.commands:
        rule = next((rule for rule in rules.allow if words[: len(rule)] == rule), None)
        only_reads = _is_safe(words, is_confined=is_confined)
        if rule is None and not only_reads:
            return Decision("ask", f"no rule allows {_short(words)}")
        for word in words[len(rule or words[:1]) :]:
            if reason := _outside(word, folders, folder, rules, only_reads=only_reads):
                return Decision("ask", reason)
        if words[0] == "cd":
            if len(words) != 2 or words[1] in {"", "-"}:
                return Decision("ask", "it leaves the project")
            folders += [each / words[1] for each in folders]
    return Decision("allow")


def is_safe(text: str, folder: Path, rules: ShellRules, *, is_confined: bool) -> bool:
    """Return whether a command only reads files of the project."""
    only = ShellRules((), rules.forbid, rules.secret_globs)
    return check(text, only, folder, is_confined=is_confined).verdict == "allow"


def forbidden(text: str, rules: ShellRules) -> str:
    """Return which rule forbids a command; "" if none does.

    Rules match the program in any folder, and options between their words. They are no protection
    from a command that hides its words; the sandbox is.
    """
    if not rules.forbid:
        return ""
    for words in (each for each in parse(text).commands if each):
        name = words[0].rpartition("/")[2]
        for rule in rules.forbid:
            rest = iter(words[1:])
            if name == rule[0] and all(word in rest for word in rule[1:]):
                return f"the setting agent.forbid has {' '.join(rule)!r}"
    return ""


def normalize(text: str) -> str:
    """Return a key that is the same for commands that differ only in blanks and quotes."""
    parsed = parse(text)
    return text.strip() if parsed.problem else repr((parsed.commands, parsed.joints))


def _rules(name: str, texts: Sequence[str]) -> tuple[Words, ...]:
    found = []
    for text in texts:
        parsed = parse(text)
        if parsed.problem or len(parsed.commands) != 1:
            reason = parsed.problem or "it has several commands"
            raise ConfigInvalid(
                f"agent.{name}: {text!r} is no beginning of a command: {reason}",
                'Write words without quotes or patterns: "make test"',
            )
        found.append(parsed.commands[0])
    return tuple(found)


def _value(node: Node, data: bytes, problems: list[str]) -> str:
    """Return a word without its quotes, and note what is not plain."""
    text = data[node.start_byte : node.end_byte].decode("utf-8", "replace")
    if node.type == "command_name" and node.child_count == 1:
        return _value(node.children[0], data, problems)
    if node.type == "concatenation":
        return "".join(_value(child, data, problems) for child in node.children)
    if node.type == "raw_string":
        return text[1:-1]
    if node.type == "string":
        if re.search(r"\\[$`\n]", text):
            problems.append(ESCAPED)
        return re.sub(r'\\(["\\])', r"\1", text[1:-1])
    if "\\" in text:
        problems.append(ESCAPED)
    if _PATTERN.search(text):
        problems.append(PATTERN)
    return text


def _tokens(text: str) -> list[str] | None:
    """Return words and operators in the other parser's view; None if it finds no end of a quote."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return None


def _is_agreed(text: str, commands: Sequence[Words]) -> bool:
    """Return whether both parsers find the same words."""
    tokens = _tokens(text)
    ours = [word for words in commands for word in words if word not in OPERATORS]
    return tokens is not None and ours == [word for word in tokens if word not in OPERATORS]


def _is_safe(words: Words, *, is_confined: bool) -> bool:
    """Return whether a plain command only reads, whatever its files are."""
    name, rest = words[0], words[1:]
    if name not in SAFE:
        return False
    if name == "find":
        return not any(map(_FIND_ACTS.match, rest))
    if name == "rg":  # it searches whole folders, and so do the options of grep
        return is_confined and not any(map(_RG_RUNS.match, rest))
    if name == "grep":
        return is_confined or not any(map(_RECURSIVE.match, rest))
    if name == "sed":
        return len(rest) >= 2 and rest[0] == "-n" and _is_sed_print(rest[1:])
    if name == "base64":
        return not any(word.startswith(("-o", "--o")) for word in rest)
    if name == "uniq":  # the second file is its output
        return sum(word == "-" or not word.startswith("-") for word in rest) <= 1
    return True


def _is_sed_print(words: Words) -> bool:
    return bool(_SED_RANGE.fullmatch(words[0])) and not any(
        word.startswith("-") for word in words[1:]
    )


def _outside(
    word: str, folders: Sequence[Path], root: Path, rules: ShellRules, *, only_reads: bool
) -> str:
    """Return why a word may name a file that needs approval; "" if it does not.

    A file that does not exist cannot be read, but written: its nearest existing folder decides.
    """
    for name in sorted(_names(word)):
        for folder in folders:
            path = os.path.normpath(folder / name)
            exists = os.path.lexists(folder / name)
            if not exists and only_reads and ".." not in name.split("/"):
                continue
            home = os.path.expanduser(name) if name.startswith("~") and "/" in name else name
            real = os.path.realpath(folder / (name if exists else home))
            if not Path(real).is_relative_to(os.path.realpath(root)):
                return f"it names a path outside the project: {name}"
            for each in (path, real) if exists or only_reads else ():
                if rules.secret_globs.name_reason(each.lstrip("/")):
                    return f"it names a file with secrets: {name}"
    return ""


def _names(word: str) -> set[str]:
    """Return the parts of a word that may be paths: all of it, after an `=`, after options."""
    names = {word}
    while "=" in word:
        word = word.partition("=")[2]
        names.add(word)
    for name in tuple(names):
        if found := _ATTACHED.fullmatch(name):
            names |= {name[2:], found[1] or found[2]}
    return names - {""}


def _short(words: Words) -> str:
    text = shlex.join(words)
    return text if len(text) <= 60 else f"{text[:59]}…"
