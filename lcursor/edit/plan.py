"""A plan for a change of several files: which files and symbols, in which order, and what to do.

The model sees a list of what there is, each with a short name, and answers with these names and a
sentence for each; it writes no code and no rows. What it names and is not there is left out, with a
word about it. Blocks; on the thread of the edit.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final

from lcursor.config import EditConfig
from lcursor.context.codebase import Codebase
from lcursor.edit import candidates, talk
from lcursor.edit.candidates import Candidate, Spot
from lcursor.edit.records import FileKind
from lcursor.edit.rewriting.attempts import added
from lcursor.edit.sources import Sources
from lcursor.errors import ReplyUnusable
from lcursor.llm.pool import Connection
from lcursor.llm.records import Message, SamplingParams, Usage

UNKNOWN_TOKENS: Final = 8192
LIST_SHARE: Final = 3
"""One part in so many of the context is for the list of what there is."""
ANSWER_TOKENS: Final = 1200
SKETCH_TOKENS: Final = 500
MAX_STEPS: Final = 24
WHOLE_BUDGETS: Final = 2
"""A file is written anew as a whole up to so many times the tokens of a region."""
AGAIN_TEMPERATURE: Final = 0.4
MIN_NAME: Final = 3
"""Shorter names of files stand in many a sentence that means none."""
ORDER: Final[Mapping[str, int]] = {"create": 0, "edit": 1, "rename": 2, "delete": 3}
SYSTEM: Final = """\
You plan changes of a code base. You are given a list of files and of what they define, each with \
an id, and an instruction. You answer with a plan as JSON and nothing else:

{"summary": "…", "steps": [{"action": "edit", "id": "f1.2", "do": "…"}]}

- "summary" says in one sentence what becomes other.
- "edit" writes one thing of the list anew: its id, as exactly as you can (a function rather than \
its file), and in "do" what shall be other, complete enough for who sees only that part. To give \
something another name, edit it, and edit what uses it.
- "create_file" makes a new file: "path" from the root of the project, and in "do" what is in it.
- "delete_file" removes a file: its id. "move_file" gives a file another path: its id, and "path".
- Name only ids of the list. Write no code. Take as few steps as do what is asked for, each place \
once, and nothing that was not asked for."""

SKETCHING: Final = "You tell a programmer how to make a change."


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan."""

    key: str
    kind: FileKind
    path: str
    """Relative to the project's root."""
    to: str = ""
    """Of a rename, relative too."""
    first_row: int = 0
    last_row: int = 0
    what: str = ""
    """The symbol; "" for all of the file."""
    do: str = ""
    sketch: str = ""
    """How the planner would do it, for who writes; "" for nothing."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What shall be done."""

    summary: str
    """With a line for each step that was left out."""
    steps: tuple[Step, ...]
    usage: Usage = field(default_factory=Usage)
    """What the plan cost, without the sketches."""


def plan(
    reached: Connection,
    config: EditConfig,
    instruction: str,
    root: Path,
    context: str,
    codebase: Codebase | None,
    cancel: threading.Event,
    *,
    files: Sources,
) -> Plan:
    """Return a plan; nothing is done.

    Args:
        reached: the model that plans.
        config: the settings; with a planner of its own, steps get a sketch.
        instruction: of the user.
        root: of the project.
        context: what is attached, as the model reads it.
        codebase: that knows the project; None for nothing.
        cancel: ends it at once.
        files: the texts of the project.

    Raises:
        ReplyUnusable: the model made no plan.
        Cancelled: `cancel` was set.
        LcursorError: the model cannot be asked.
    """
    known = candidates.collect(instruction, context, files, codebase, cancel.is_set)
    room = reached.context_tokens or UNKNOWN_TOKENS
    shown = _fitting(known, room // LIST_SHARE, reached)
    asked = messages(instruction, context, shown)
    named = {one.key for one in known if is_named(one.path, instruction)}

    def is_short(one: Candidate) -> bool:
        lines = files.read(one.path) or ()
        most = config.region_tokens * WHOLE_BUDGETS
        return reached.counter.known("\n".join(lines))[0] <= most

    read: tuple[str, list[dict[str, Any]]] | None = None
    steps, notes, spent = list[Step](), list[str](), list[Usage]()
    for temperature in (config.temperature, max(config.temperature, AGAIN_TEMPERATURE)):
        wish = SamplingParams(
            max_tokens=ANSWER_TOKENS, temperature=temperature, schema=schema(shown, named)
        )
        said = talk.answer(reached, asked, wish, cancel)
        spent.append(said.usage)
        read = parsed(said.text) or read
        if read is not None:
            steps, notes = _steps(read[1], known, root, files, is_short, instruction)
            if steps or not notes:
                break
            why = f"Nothing of this can be done: {'; '.join(dict.fromkeys(notes))}. Plan it anew."
            asked = [*asked, Message("assistant", said.text), Message("user", why)]
    if read is None:
        raise ReplyUnusable("form", "The model made no plan that can be read")
    summary = read[0].replace("…", "")
    if config.planner:
        steps = [_sketched(step, reached, instruction, files, cancel) for step in steps]
    usage = reduce(added, spent)
    lines = [summary.strip(), *(f"Left out: {note}" for note in dict.fromkeys(notes))]
    return Plan("\n".join(filter(None, lines)), tuple(steps), usage)


# The question.


def messages(instruction: str, context: str, shown: Sequence[Sequence[str]]) -> list[Message]:
    """Return what the model is asked.

    Args:
        instruction: of the user.
        context: what is attached.
        shown: lines for each candidate.
    """
    listed = "\n".join(line for lines in shown for line in lines) or "(no file yet)"
    parts = [
        context,
        f"What there is:\n\n{listed}",
        f"Instruction: {instruction.strip()}\n\nAnswer with the JSON of the plan alone.",
    ]
    return [Message("system", SYSTEM), Message("user", "\n\n".join(filter(None, parts)))]


def is_named(path: str, instruction: str) -> bool:
    """Return whether an instruction names a file, or a folder that it is in.

    Small models delete and move files that nobody spoke of; only what is named may go, in whatever
    language the rest of the instruction is.
    """
    names = {*path.split("/"), path.rpartition("/")[2].partition(".")[0]}
    return any(
        len(name) >= MIN_NAME
        and re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_]|/\w)", instruction, re.I)
        for name in names
    )


def schema(shown: Sequence[Sequence[str]], named: Collection[str]) -> dict[str, Any]:
    """Return the JSON schema of an answer: ids that there are, and nothing else.

    Args:
        shown: lines for each candidate.
        named: ids of the files that may be deleted and moved.
    """
    ids = [line.split(maxsplit=1)[0] for lines in shown for line in lines if "…" not in line[:4]]
    text: dict[str, Any] = {"type": "string"}
    edit: dict[str, Any] = {"action": {"const": "edit"}, "id": {"enum": ids}, "do": text}
    own = [one for one in ids if one in named]
    delete: dict[str, Any] = {"action": {"const": "delete_file"}, "id": {"enum": own}}
    rename: dict[str, Any] = {"action": {"const": "move_file"}, "id": {"enum": own}, "path": text}
    create: dict[str, Any] = {"action": {"const": "create_file"}, "path": text, "do": text}
    offered = [*([edit] if ids else []), create, *([rename, delete] if own else [])]
    return {
        "type": "object",
        "properties": {
            "summary": text,
            "steps": {
                "type": "array",
                "maxItems": MAX_STEPS,
                "items": {"anyOf": [_object(kind) for kind in offered]},
            },
        },
        "required": ["summary", "steps"],
        "additionalProperties": False,
    }


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _fitting(known: Sequence[Candidate], most_tokens: int, reached: Connection) -> list[list[str]]:
    """Return the lines for candidates, with fewer symbols or files where there is no room."""

    def is_much(shown: Sequence[Sequence[str]]) -> bool:
        text = "\n".join(line for lines in shown for line in lines)
        return reached.counter.known(text)[0] > most_tokens

    shown: list[list[str]] = []
    for most in (candidates.MAX_SYMBOLS, 16, 6, 0):
        shown = [one.lines(most) for one in known]
        if not is_much(shown):
            return shown
    while shown and is_much(shown):
        shown.pop()
    return shown


# The answer.


def parsed(text: str) -> tuple[str, list[dict[str, Any]]] | None:
    """Return the summary and the steps that an answer has; None where it has none.

    Takes JSON with or without a fence and words around it, also where it was cut off.
    """
    text = re.sub(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", "", text, flags=re.S)
    values = list(_values(text))
    for found in values:
        if isinstance(found, dict) and isinstance(found.get("steps"), list):
            rows = [row for row in found["steps"] if isinstance(row, dict)]
            return str(found.get("summary") or ""), rows
    loose = [row for value in values for row in (value if isinstance(value, list) else [value])]
    rows = [row for row in loose if isinstance(row, dict) and ("action" in row or "id" in row)]
    summary = re.search(r'"summary"\s*:\s*"((?:[^"\\]|\\.)*)"', text)
    return (summary.group(1) if summary else "", rows) if rows else None


def _values(text: str) -> Iterator[Any]:
    """Yield the JSON values that stand in a text; of one that is cut off, those within it."""
    decoder = json.JSONDecoder(strict=False)
    at = 0
    while (found := re.compile(r"[{\[]").search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, found.start())
        except ValueError:
            at = found.start() + 1
        else:
            yield value


def _steps(
    rows: Sequence[Mapping[str, Any]],
    known: Sequence[Candidate],
    root: Path,
    files: Sources,
    is_short: Callable[[Candidate], bool],
    instruction: str,
) -> tuple[list[Step], list[str]]:
    """Return the steps that can be done, in the order to do them, and what was left out."""
    steps, notes = dict[tuple[str, ...], Step](), list[str]()
    places: dict[str, Step] = {}
    for row in rows[:MAX_STEPS]:
        try:
            step = _step(row, known, root, files, is_short)
        except _Odd as odd:
            notes.append(str(odd))
            continue
        if step.kind in ("delete", "rename") and not is_named(step.path, instruction):
            notes.append(f"{step.path}: name the file to have it deleted or moved")
            continue
        place = step.to or (step.path if step.kind == "create" else "")
        first = places.setdefault(place, step) if place else step
        if (first.kind, first.path) != (step.kind, step.path):
            notes.append(f"{step.path}: another step makes {place}")
            continue
        same = (step.kind, step.path, step.to, step.what, str(step.first_row))
        if same in steps:
            told = steps[same].do
            steps[same] = replace(steps[same], do=told if step.do in told else f"{told}\n{step.do}")
        else:
            steps[same] = step
    gone = {step.path for step in steps.values() if step.kind == "delete"}
    kept = [step for step in steps.values() if step.kind == "delete" or step.path not in gone]
    notes += [f"{step.path}: it is deleted" for step in steps.values() if step not in kept]
    kept.sort(key=lambda step: ORDER[step.kind])
    return [replace(step, key=f"s{at}") for at, step in enumerate(kept, 1)], notes


class _Odd(Exception):
    """A step that cannot be done."""


def _step(
    row: Mapping[str, Any],
    known: Sequence[Candidate],
    root: Path,
    files: Sources,
    is_short: Callable[[Candidate], bool],
) -> Step:
    action = str(row.get("action") or row.get("kind") or "edit").strip().lower()
    wanted = str(row.get("id") or row.get("file") or "").strip()
    path = str(row.get("path") or "").strip()
    do = " ".join(str(row.get("do") or row.get("description") or "").split())
    action = action.removesuffix("_file")
    if action in ("create", "new", "add"):
        return Step("", "create", _inside(path or wanted, root, is_new=True), do=do)
    one, spot = _found(wanted or path, known, files)
    if action in ("delete", "remove"):
        return Step("", "delete", one.path, last_row=one.rows, do=do)
    if action in ("rename", "move"):
        to = _inside(path or str(row.get("to") or ""), root, is_new=True)
        return Step("", "rename", one.path, to, last_row=one.rows, do=do)
    if action not in ("edit", "change", "update", "modify"):
        raise _Odd(f"there is no action {action!r}")
    if not one.is_text:
        raise _Odd(f"{one.path} cannot be read")
    if not spot.what and one.spots and not is_short(one):
        spot = _narrowed(one, do)
    if not spot.what and not is_short(one):
        raise _Odd(f"{one.path} is too long to be written anew, and no part of it was named")
    return Step("", "edit", one.path, "", spot.first_row, spot.last_row, spot.what, do)


def _found(wanted: str, known: Sequence[Candidate], files: Sources) -> tuple[Candidate, Spot]:
    """Return what a model names: by its id, else by a path or a name that only one thing has.

    Raises:
        _Odd: there is none, or several.
    """
    for one in known:
        for spot in (one.whole(), *one.spots):
            if spot.key == wanted:
                return one, spot
    bare, _, name = wanted.partition(":")
    by_path = [one for one in known if one.path == bare or one.path.endswith(f"/{bare}")]
    if len(by_path) == 1:
        inner = [spot for spot in by_path[0].spots if name and spot.name == name.strip()]
        return by_path[0], inner[0] if len(inner) == 1 else by_path[0].whole()
    named = [(one, spot) for one in known for spot in one.spots if spot.name == wanted]
    if len(named) == 1:
        return named[0]
    if bare and bare in files.all() and (lines := files.read(bare)) is not None:
        one = candidates.one_of(bare, lines)
        return one, one.whole()
    raise _Odd(f"there is no {wanted or 'thing without an id'} in the list")


def _narrowed(one: Candidate, do: str) -> Spot:
    """Return the one symbol of a file that a sentence names; all of it where that is not clear."""
    words = set(re.findall(r"\w+", do))
    named = [spot for spot in one.spots if spot.name in words]
    return named[0] if len(named) == 1 else one.whole()


def _inside(path: str, root: Path, *, is_new: bool) -> str:
    """Return a path of a file in the project.

    Raises:
        _Odd: it is none, or something is there.
    """
    bare = path.replace("\\", "/").removeprefix("./")
    parts = bare.split("/")
    if not bare or bare.startswith(("/", "~")) or ".." in parts or "" in parts or "\0" in bare:
        raise _Odd(f"{path or 'a new file without a path'} is no path in the project")
    if parts[0] in (".git", ".hg", ".svn", ".jj"):
        raise _Odd(f"{path} belongs to version control")
    if is_new and (root / bare).exists():
        raise _Odd(f"{path} is there already")
    return bare


# The sketches.


def _sketched(
    step: Step, reached: Connection, instruction: str, files: Sources, cancel: threading.Event
) -> Step:
    """Return a step with how the planner would do it."""
    if step.kind not in ("edit", "create"):
        return step
    lines = (files.read(step.path) or ()) if step.kind == "edit" else ()
    region = "\n".join(lines[step.first_row : step.last_row])
    place = f"This is {step.what or 'the file'} in {step.path}:\n\n```\n{region}\n```"
    if step.kind == "create":
        place = f"The file {step.path} is new."
    text = (
        f"{place}\n\nThe whole change: {instruction.strip()}\nHere: {step.do}\n\nSay in a few "
        "lines how this part shall change, for a programmer who will write it: names, signatures, "
        "what goes where, and what to keep. Show only the few lines of code that are not obvious."
    )
    asked = [Message("system", SKETCHING), Message("user", text)]
    said = talk.answer(
        reached, asked, SamplingParams(max_tokens=SKETCH_TOKENS, temperature=0.0), cancel
    )
    return replace(step, sketch=said.text.strip())
