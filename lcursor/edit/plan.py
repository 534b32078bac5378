"""Plan a change of several files: which files and symbols to edit, and how.

The model gets a list of files and symbols with ids, and answers with ids and a sentence for each,
without code or line numbers. Impossible steps are left out, with a note. Blocks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final

from lcursor.changes.records import FileKind
from lcursor.changes.sources import Sources
from lcursor.changes.steps import VCS_FOLDERS
from lcursor.config import EditConfig
from lcursor.context.codebase import Codebase
from lcursor.edit import candidates
from lcursor.edit.ask_model import complete
from lcursor.edit.candidates import Candidate, Entry
from lcursor.edit.rewriting.region import MAX_REGION_TOKENS
from lcursor.edit.workspace import UNKNOWN_TOKENS
from lcursor.errors import ReplyUnusable
from lcursor.llm.pool import Connection
from lcursor.llm.records import Message, SamplingParams, Usage, add_usage
from lcursor.stop import Stop

LIST_SHARE: Final = 3
"""Maximum part of the context for the list of candidates, as a divisor."""
ANSWER_TOKENS: Final = 1200
SKETCH_TOKENS: Final = 500
MAX_STEPS: Final = 24
WHOLE_FILE_FACTOR: Final = 2
"""Maximum size of a file that is rewritten as a whole, in multiples of a region's tokens."""
SECOND_TEMPERATURE: Final = 0.4
MIN_NAME: Final = 3
"""Shorter file names are often ordinary words of a sentence."""
ORDER: Final[Mapping[str, int]] = {"create": 0, "edit": 1, "rename": 2, "delete": 3}
SYSTEM: Final = """\
You plan changes of a code base. You are given a list of files and of what they define, each with \
an id, and an instruction. You answer with a plan as JSON and nothing else:

{"summary": "…", "steps": [{"action": "edit", "id": "f1.2", "do": "…"}]}

- "summary" says in one sentence what changes.
- "edit" rewrites one thing of the list: its id, as exactly as you can (a function rather than \
its file), and in "do" what to change, complete enough for someone who sees only that part. To \
give something another name, edit it, and edit what uses it.
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
    """Path relative to the project's root."""
    to: str = ""
    """New relative path of a rename."""
    first_row: int = 0
    last_row: int = 0
    what: str = ""
    """The symbol; "" for the whole file."""
    do: str = ""
    sketch: str = ""
    """The planner's sketch of the code."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan."""

    summary: str
    """The model's summary, with a line for each left-out step."""
    steps: tuple[Step, ...]
    usage: Usage = field(default_factory=Usage)
    """Token counts without the sketches."""


def plan(
    reached: Connection,
    config: EditConfig,
    instruction: str,
    context: str,
    codebase: Codebase | None,
    cancel: Stop,
    sources: Sources,
) -> Plan:
    """Return a plan."""
    known = candidates.collect(instruction, context, sources, codebase, cancel.is_set)
    size = reached.context_tokens or UNKNOWN_TOKENS
    shown = _fitting_list(known, size // LIST_SHARE, reached)
    conversation = messages(instruction, context, shown)
    named = {one.key for one in known if is_named(one.path, instruction)}
    reader = _StepReader(reached, instruction, known, sources)
    read: tuple[str, list[dict[str, Any]]] | None = None
    steps, notes, usages = list[Step](), list[str](), list[Usage]()
    for temperature in (0.0, SECOND_TEMPERATURE):
        wish = SamplingParams(
            max_tokens=ANSWER_TOKENS, temperature=temperature, schema=schema(shown, named)
        )
        answer = complete(reached, conversation, wish, cancel)
        usages.append(answer.usage)
        read = parse_answer(answer.text) or read
        if read is not None:
            steps, notes = reader.steps(read[1])
            if steps or not notes:
                break
            why = f"Nothing of this can be done: {'; '.join(dict.fromkeys(notes))}. Plan again."
            conversation = [*conversation, Message("assistant", answer.text), Message("user", why)]
    if read is None:
        raise ReplyUnusable("form", "The model made no plan that can be read")
    if config.plan_model:
        steps = [_with_sketch(step, reached, instruction, sources, cancel) for step in steps]
    summary = read[0].replace("…", "").strip()
    lines = [summary, *(f"Left out: {note}" for note in dict.fromkeys(notes))]
    return Plan("\n".join(filter(None, lines)), tuple(steps), reduce(add_usage, usages))


# The prompt.


def messages(instruction: str, context: str, shown: Sequence[Sequence[str]]) -> list[Message]:
    """Return the prompt, with some lines for each candidate."""
    listed = "\n".join(line for lines in shown for line in lines) or "(no file yet)"
    parts = [
        context,
        f"What there is:\n\n{listed}",
        f"Instruction: {instruction.strip()}\n\nAnswer with the JSON of the plan alone.",
    ]
    return [Message("system", SYSTEM), Message("user", "\n\n".join(filter(None, parts)))]


def is_named(path: str, instruction: str) -> bool:
    """Return whether an instruction names a file, or a folder that contains it.

    Only named files may be deleted or moved, because small models pick others, too.
    """
    names = {*path.split("/"), path.rpartition("/")[2].partition(".")[0]}
    return any(
        len(name) >= MIN_NAME
        and re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_]|/\w)", instruction, re.I)
        for name in names
    )


def schema(shown: Sequence[Sequence[str]], named: Collection[str]) -> dict[str, Any]:
    """Return the JSON schema of an answer."""
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


def _fitting_list(
    known: Sequence[Candidate], limit_tokens: int, reached: Connection
) -> list[list[str]]:
    """Return the lines for each candidate, with fewer symbols or files if they do not fit."""

    def is_over(shown: Sequence[Sequence[str]]) -> bool:
        text = "\n".join(line for lines in shown for line in lines)
        return reached.client.count(text, may_ask=False)[0] > limit_tokens

    shown: list[list[str]] = []
    for count in (candidates.MAX_SYMBOLS, 16, 6, 0):
        shown = [one.lines(count) for one in known]
        if not is_over(shown):
            return shown
    while shown and is_over(shown):
        shown.pop()
    return shown


# The answer.


def parse_answer(text: str) -> tuple[str, list[dict[str, Any]]] | None:
    """Return the summary and the steps of an answer; None if it has none.

    The JSON may be in a fence, with text around it.
    """
    decoder = json.JSONDecoder(strict=False)
    for found in re.finditer(r"\{", text):
        try:
            value = decoder.raw_decode(text, found.start())[0]
        except (ValueError, RecursionError):
            continue
        if isinstance(value.get("steps"), list):
            rows = [row for row in value["steps"] if isinstance(row, dict)]
            return str(value.get("summary") or ""), rows
    return None


class _Impossible(Exception):
    """A step cannot be done."""


class _StepReader:
    """Reads the steps of an answer."""

    def __init__(
        self,
        reached: Connection,
        instruction: str,
        known: Sequence[Candidate],
        sources: Sources,
    ) -> None:
        self._reached, self._instruction = reached, instruction
        self._known, self._sources = known, sources
        self._limit_tokens = MAX_REGION_TOKENS * WHOLE_FILE_FACTOR

    def steps(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[Step], list[str]]:
        """Return the possible steps in order, and notes about the others."""
        steps, notes = dict[tuple[str, ...], Step](), list[str]()
        new_paths: dict[str, Step] = {}
        for row in rows[:MAX_STEPS]:
            try:
                step = self._step(row)
            except _Impossible as error:
                notes.append(str(error))
                continue
            if step.kind in ("delete", "rename") and not is_named(step.path, self._instruction):
                notes.append(f"{step.path}: name the file to have it deleted or moved")
                continue
            new_path = step.to or (step.path if step.kind == "create" else "")
            first = new_paths.setdefault(new_path, step) if new_path else step
            if (first.kind, first.path) != (step.kind, step.path):
                notes.append(f"{step.path}: another step makes {new_path}")
                continue
            same = (step.kind, step.path, step.to, step.what, str(step.first_row))
            do = steps[same].do if same in steps else ""
            if do and step.do not in do:
                do = f"{do}\n{step.do}"
            steps[same] = replace(step, do=do or step.do)
        deleted = {step.path for step in steps.values() if step.kind == "delete"}
        every = [*steps.values()]
        remaining = [each for each in every if each.kind == "delete" or each.path not in deleted]
        notes += [f"{step.path}: it is deleted" for step in every if step not in remaining]
        remaining.sort(key=lambda step: ORDER[step.kind])
        return [replace(step, key=f"s{at}") for at, step in enumerate(remaining, 1)], notes

    def _step(self, row: Mapping[str, Any]) -> Step:
        action = str(row.get("action") or "edit").strip().lower().removesuffix("_file")
        wanted, path = str(row.get("id") or "").strip(), str(row.get("path") or "").strip()
        do = " ".join(str(row.get("do") or "").split())
        if action == "create":
            return Step("", "create", self._new_path(path or wanted), do=do)
        one, entry = self._find(wanted or path)
        if action == "delete":
            return Step("", "delete", one.path, last_row=one.rows, do=do)
        if action in ("rename", "move"):
            return Step("", "rename", one.path, self._new_path(path), last_row=one.rows, do=do)
        if action != "edit":
            raise _Impossible(f"there is no action {action!r}")
        if not one.is_text:
            raise _Impossible(f"{one.path} cannot be read")
        if not entry.what and not self._is_short(one):
            words = set(re.findall(r"\w+", do))
            named = [each for each in one.entries if each.name in words]
            if len(named) != 1:
                raise _Impossible(
                    f"{one.path} is too long to be rewritten, and no part of it was named"
                )
            entry = named[0]
        return Step("", "edit", one.path, "", entry.first_row, entry.last_row, entry.what, do)

    def _is_short(self, one: Candidate) -> bool:
        text = "\n".join(self._sources.read(one.path) or ())
        return self._reached.client.count(text, may_ask=False)[0] <= self._limit_tokens

    def _find(self, wanted: str) -> tuple[Candidate, Entry]:
        """Return an entry by its id, or else by a unique path or name."""
        for one in self._known:
            for entry in (one.whole(), *one.entries):
                if entry.key == wanted:
                    return one, entry
        path, _, name = wanted.partition(":")
        by_path = [one for one in self._known if one.path == path or one.path.endswith(f"/{path}")]
        if len(by_path) == 1:
            inner = [entry for entry in by_path[0].entries if name and entry.name == name.strip()]
            return by_path[0], inner[0] if len(inner) == 1 else by_path[0].whole()
        by_name = [(one, entry) for one in self._known for entry in one.entries
                   if entry.name == wanted]  # fmt: skip
        if len(by_name) == 1:
            return by_name[0]
        sources = self._sources
        if path and path in sources.all() and (lines := sources.read(path)) is not None:
            one = candidates.candidate("f0", path, lines)
            return one, one.whole()
        raise _Impossible(f"there is no {wanted or 'thing without an id'} in the list")

    def _new_path(self, path: str) -> str:
        """Return the path of a new file in the project."""
        bare = path.replace("\\", "/").removeprefix("./")
        parts = bare.split("/")
        if not bare or bare.startswith(("/", "~")) or ".." in parts or "" in parts or "\0" in bare:
            raise _Impossible(f"{path or 'a new file without a path'} is not a path in the project")
        if any(part.lower() in VCS_FOLDERS for part in parts):
            raise _Impossible(f"{path} belongs to version control")
        if Path(self._sources.root, bare).exists():
            raise _Impossible(f"{path} already exists")
        return bare


def _with_sketch(
    step: Step, reached: Connection, instruction: str, sources: Sources, cancel: Stop
) -> Step:
    """Return a step with the planner's sketch."""
    if step.kind not in ("edit", "create"):
        return step
    lines = (sources.read(step.path) or ()) if step.kind == "edit" else ()
    region = "\n".join(lines[step.first_row : step.last_row])
    location = f"This is {step.what or 'the file'} in {step.path}:\n\n```\n{region}\n```"
    if step.kind == "create":
        location = f"The file {step.path} is new."
    text = (
        f"{location}\n\nThe whole change: {instruction.strip()}\nHere: {step.do}\n\nSay in a few "
        "lines how this part shall change, for a programmer who will write it: names, signatures, "
        "what goes where, and what to keep. Show only the few lines of code that are not obvious."
    )
    conversation = [Message("system", SKETCHING), Message("user", text)]
    answer = complete(
        reached, conversation, SamplingParams(max_tokens=SKETCH_TOKENS, temperature=0.0), cancel
    )
    return replace(step, sketch=answer.text.strip())
