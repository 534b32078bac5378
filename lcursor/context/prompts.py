"""Slash commands: built-in ones, and Markdown files of the user and the project.

The text of a command contains mentions of its context. Commands and skills that people have for
other tools count as well; a skill is a folder with a `SKILL.md`. Nothing of them is run.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from lcursor.context import front_matter, mentions
from lcursor.context.servers import ServerTexts
from lcursor.process.run import Cancel
from lcursor.project.reading import Reader

Origin = Literal["built in", "project", "own", "server"]
Brings = Literal["", "trace", "tests"]
MAX_FILES = 300
PROJECT_FOLDERS: Final = (
    ".lcursor/prompts", ".claude/commands", ".cursor/commands", ".github/prompts",
)  # fmt: skip
HOME_FOLDERS: Final = ("~/.claude/commands", "~/.cursor/commands")
SKILL_FOLDERS: Final = (".lcursor/skills", ".agents/skills", ".claude/skills")
"""In the project and in the home folder."""
SKILL: Final = "SKILL.md"
NOT_USED: Final = "(that of the project is not used)"
NOT_USED_OWN: Final = "(that of another tool is not used)"
_COMMAND: Final = re.compile(r"\s*/(?P<name>[A-Za-z][\w:.-]*)(?=\s|$)[ \t]*(?P<rest>.*)\Z", re.S)
_SLOT: Final = re.compile(r"\$(ARGUMENTS|[1-9])(?!\w)|\{\{\s*input\s*\}\}")


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A command and its text."""

    name: str
    text: str
    description: str
    origin: Origin = "built in"
    path: str = ""
    brings: Brings = ""
    """Additional context: the files in a stack trace, or the tests of a file."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """A question with its command expanded."""

    text: str
    prompt: PromptFile | None = None
    note: str = ""
    """Why the command was not expanded."""


BUILT_IN: Final = (
    PromptFile(
        "explain",
        "Explain @selection. Say first in one or two sentences what it is for. Then go through it "
        "in the order in which it runs; name what is easy to get wrong, and what it relies on "
        "elsewhere. Quote only the lines that you discuss.",
        "explain what it does and how",
    ),
    PromptFile(
        "fix",
        "Find what is wrong in @selection and fix it. What the tools say: @diagnostics\n"
        "Say in one sentence what the cause is. Then give the fixed code as a whole, in one "
        "block, with nothing else changed and in the style of what stands there.",
        "find and fix what is wrong",
    ),
    PromptFile(
        "tests",
        "Write tests for @selection, with the test framework and in the style that this project "
        "uses. Cover what it is for, its edge cases and its failures; each test must be able to "
        "fail. Give one block that can be saved as a file, and say where it belongs.",
        "write tests for it",
        brings="tests",
    ),
    PromptFile(
        "doc",
        "Document @selection, in the form that this language and this file use: what it does, "
        "arguments, what it returns and raises, units and limits where they matter. Say nothing "
        "that the code says itself. Give the documented code and change nothing else.",
        "document it",
    ),
    PromptFile(
        "review",
        "Review these changes: @diff\nLook for mistakes first, then for missed cases, "
        "security, and what a reader will not understand. For each finding name file and line, how "
        "bad it is, and what to do. Say so plainly where nothing is wrong; praise nothing.",
        "review the uncommitted changes",
    ),
    PromptFile(
        "commit",
        "Write a message for this commit: @diff:--staged\nA subject of at most 72 characters in "
        "the imperative; an empty line; then why, not how, in lines of at most 72 characters. Give "
        "the message alone, in one block.",
        "write a message for the staged changes",
    ),
    PromptFile(
        "trace",
        "Explain this error and where it comes from: @terminal\nFollow the stack trace through "
        "the project's own code, which is attached where it names it. Name the line in which it "
        "goes wrong, the cause, and the smallest change that fixes it.",
        "explain a stack trace, pasted or in the terminal",
        brings="trace",
    ),
)


def own_folder() -> Path:
    """Return the folder of the user's own prompts."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "lcursor/prompts"


def library(root: Path) -> list[PromptFile]:
    """Return all commands; the user's override built-in ones and the project's.

    A project and other tools add commands, but replace no built-in one: a user who types `/explain`
    knows what it does.
    """
    built_in = {prompt.name: prompt for prompt in BUILT_IN}
    found: dict[str, PromptFile] = {}
    for folder in PROJECT_FOLDERS:
        found = _of_folder(root / folder, "project", root) | found
    found = {skill.name: skill for skill in skills(root)} | found
    for folder in SKILL_FOLDERS:
        found |= {skill.name: skill for skill in _skills(_home(folder), "own", root)}
    for folder in HOME_FOLDERS:
        found |= _of_folder(Path(folder).expanduser(), "own", root)
    for name in found.keys() & built_in.keys():
        known, note = built_in[name], NOT_USED if found[name].origin == "project" else NOT_USED_OWN
        found[name] = replace(known, description=f"{known.description} {note}")
    found = built_in | found | _of_folder(own_folder(), "own", root)
    return sorted(found.values(), key=lambda prompt: prompt.name)


def skills(root: Path) -> list[PromptFile]:
    """Return the skills of a project, each as a command."""
    found: dict[str, PromptFile] = {}
    for folder in SKILL_FOLDERS:
        found = {each.name: each for each in _skills(root / folder, "project", root)} | found
    return sorted(found.values(), key=lambda prompt: prompt.name)


def expand(
    text: str,
    root: Path,
    servers: ServerTexts | None = None,
    cancel: Cancel = lambda: False,
) -> Expanded:
    """Expand the command of a question, if there is one.

    The text after the command replaces `$ARGUMENTS` (or `{{input}}`), its words `$1` to `$9`;
    without a placeholder it is appended. For `/commit`, `/review` and `/trace` it replaces the
    default context.

    Args:
        servers: for `/SERVER:PROMPT`, unless a file has this name. Blocks while one is asked.

    Raises:
        McpFailed: the server has no text for it.
        DependencyMissing: the package for servers is not installed.
        Cancelled: `cancel` returned true.
    """
    match = _COMMAND.match(text)
    if not match:
        return Expanded(text)
    name, rest = match["name"], match["rest"].strip()
    known = {prompt.name.lower(): prompt for prompt in library(root)}
    prompt = known.get(name.lower())
    if prompt is None and servers is not None and servers.is_prompt(name):
        found = servers.prompt(name, rest, cancel)
        return Expanded(found, PromptFile(name, found, "", "server"))
    if prompt is None:
        near = _near(name, known)
        hint = f"; did you mean /{near[0]}?" if near else f"; commands: {_list(list(known))}"
        return Expanded(text, None, f"there is no command /{name}{hint}")
    return Expanded(_filled(prompt, rest), prompt)


def mistyped(text: str, root: Path, servers: ServerTexts | None = None) -> tuple[str, str] | None:
    """Return the unknown command of a question and the most similar known one, if both exist."""
    match = _COMMAND.match(text)
    if not match:
        return None
    name = match["name"]
    if servers is not None and servers.is_prompt(name):
        return None
    known = {prompt.name.lower() for prompt in library(root)}
    near = _near(name, known) if name.lower() not in known else []
    return (name, near[0]) if near else None


def _near(name: str, known: Collection[str]) -> list[str]:
    """Return the most similar known name, if there is one."""
    return difflib.get_close_matches(name.lower(), known, 1)


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"/{name}" for name in names)


def _filled(prompt: PromptFile, rest: str) -> str:
    """Return a prompt's text with the text typed after the command."""
    body = prompt.text.strip()
    if prompt.origin == "built in" and rest and _has_own_context(prompt, rest):
        # The given context replaces the default one.
        body = re.sub(r"@(?:selection|diff(?::--staged)?|terminal)\b", "what follows", body)
    words = rest.split()

    def fill(slot: re.Match[str]) -> str:
        number = slot[1] if slot[1] and slot[1].isdigit() else ""
        if number:
            return words[int(number) - 1] if int(number) <= len(words) else ""
        return rest

    text = _SLOT.sub(fill, body)
    if text == body and rest and not _SLOT.search(body):
        return f"{body}\n\n{rest}"
    return text


def _has_own_context(prompt: PromptFile, rest: str) -> bool:
    """Return whether the typed text specifies the context."""
    if prompt.brings == "trace" and "\n" in rest:
        return True  # the pasted trace
    kinds = {mention.kind for mention in mentions.parse(rest)}
    return bool(kinds - {"rules", "codebase", "diagnostics"})


def _of_folder(folder: Path, origin: Origin, root: Path) -> dict[str, PromptFile]:
    found: dict[str, PromptFile] = {}
    reader = Reader(root)
    for path in _files(folder, "**/*.md", origin, reader):
        name = path.relative_to(folder).with_suffix("").as_posix()
        prompt = _read(path, _name(name.removesuffix(".prompt")), origin, reader)
        if prompt is not None:
            found[prompt.name] = prompt
    return found


def _skills(folder: Path, origin: Origin, root: Path) -> list[PromptFile]:
    """Return the skills in a folder; the command's text is the skill's, with its place."""
    reader = Reader(root)
    found = (
        _read(path, _name(path.parent.name), origin, reader)
        for path in _files(folder, f"*/{SKILL}", origin, reader)
    )
    return [
        replace(skill, text=f"Work as this says (from {skill.path}):\n\n{skill.text.strip()}")
        for skill in found
        if skill is not None
    ]


def _home(folder: str) -> Path:
    """Return a folder of skills in the home folder."""
    own = own_folder().with_name("skills")
    return own if folder.startswith(".lcursor/") else Path.home() / folder


def _files(folder: Path, pattern: str, origin: Origin, reader: Reader) -> list[Path]:
    try:
        paths = sorted(folder.glob(pattern))[:MAX_FILES]
    except OSError:
        return []
    # A link in the project to a file outside counts as no file.
    return [
        path
        for path in paths
        if origin == "own" or Path(os.path.realpath(path)).is_relative_to(reader.root)
    ]


def _read(path: Path, name: str, origin: Origin, reader: Reader) -> PromptFile | None:
    head, body = front_matter.split(reader.read(path).text)
    if not name or not body.strip():
        return None
    first = next((line.strip("# \t") for line in body.splitlines() if line.strip()), "")
    about = front_matter.words(head.get("description")) or first[:80]
    value = front_matter.words(head.get("brings"))
    brings: Brings = "trace" if value == "trace" else "tests" if value == "tests" else ""
    return PromptFile(name, body, about, origin, str(path), brings)


def _name(path: str) -> str:
    """Return the name of a command: `git/Big change` is `git:big-change`."""
    name = re.sub(r"[^\w:.-]+", "-", path.lower().replace("/", ":")).strip("-")
    return name if name[:1].isalpha() else ""
