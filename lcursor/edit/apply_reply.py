"""Apply code from a chat, or pasted code, to files; ask the user if its position is uncertain.

Incomplete code that rules cannot complete goes to the rewriter as a sketch; otherwise no model is
used. Blocks, also while the user chooses.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from lcursor.changes import diff
from lcursor.changes.apply import elision, parse
from lcursor.changes.apply.apply_block import Choice
from lcursor.changes.apply.resolve import Ask, Resolved, Unresolved, resolve
from lcursor.changes.records import FileChange, Lines, Region, digest
from lcursor.changes.sources import Sources
from lcursor.code import symbols
from lcursor.context.items import Seen
from lcursor.edit.rewriting.prompt import fence_of
from lcursor.edit.rewriting.region import MAX_REGION_TOKENS
from lcursor.edit.run import EditOutcome, EditRun
from lcursor.edit.session import EditDeps, EditSession, counter, language_of
from lcursor.errors import Cancelled, LcursorError
from lcursor.project.redaction import encodable
from lcursor.protocol import edit as wire

FROM_CHAT, PASTED = "from the chat", "pasted"
MAX_SKETCH_REGIONS = 2
"""Maximum size of a sketch, in multiples of a region's tokens."""
SKETCH_TASK = (
    "Make the change that was planned. Comments in the plan such as `... existing code ...` stand "
    "for lines of the part that stay as they are: write these lines out."
)
FILLED_IN = "The code was incomplete, and the model completed it: review it carefully"


def apply(run: EditRun, services: EditDeps, params: wire.EditApply) -> EditOutcome:
    """Resolve the blocks of a reply, and propose the changes."""
    path, buffers, chat = params["path"], params["buffers"], params["chat"]
    current = "" if os.path.isdir(path) else path
    current = current or next((each["path"] for each in buffers), "")
    run.progress("checking")
    blocks = parse.blocks(params["text"], params["file"])
    if not blocks and not chat and params["text"].strip():
        blocks = parse.blocks(
            _fenced(params["text"]), params["file"]
        )  # pasted code without a fence
    if not blocks:
        return EditOutcome("nothing", "It contains no block of code")
    # The paths in a chat are relative to its project, whatever file is current.
    root = services.chat_root(chat) if chat and any(each.path for each in blocks) else ""
    session = EditSession(run, services, root or path or current, buffers, current)
    sources = session.sources
    seen = _seen_rows(services, sources, params) if chat else lambda _: ()
    resolved = resolve(blocks, sources, None, seen)
    while isinstance(resolved, Ask):
        choice = run.ask(resolved.text, [_to_wire(each, sources) for each in resolved.choices])
        if choice < 0:
            return EditOutcome("stopped")
        resolved = resolve(blocks, sources, resolved.chosen(choice), seen)
    if isinstance(resolved, Unresolved):
        filled_in = _fill_in(session, resolved) if resolved.sketches else None
        if filled_in is None:
            named = [each.path for each in blocks if each.path]
            return EditOutcome("rejected", _unreadable(named, sources) or resolved.reason)
        resolved = filled_in
    created = [each.path for each in resolved.files if each.kind == "create"]
    if why_not := _unreadable(created, sources):
        return EditOutcome("rejected", why_not)
    files = [session.checked(each) if not each.checks else each for each in resolved.files]
    if not any(each.changes or each.kind != "edit" for each in files):
        return EditOutcome("same", "The file already contains it")
    names = ", ".join(sources.name(each.path) for each in files)
    title = f"{FROM_CHAT if chat else PASTED}: {names}"
    session.propose(files, title=title, notes=(resolved.note,), chat=chat)
    return EditOutcome("proposed")


def _fill_in(session: EditSession, unresolved: Unresolved) -> Resolved | None:
    """Let a model write the sketched changes; None if that is impossible."""
    try:
        session.connect("")
    except Cancelled:
        raise
    except LcursorError:
        return None
    files = {each.path: each for each in unresolved.files}
    notes = [FILLED_IN, unresolved.note]
    not_run = session.allow_commands()
    session.is_whole_edit = len(unresolved.sketches) == 1 and not {*files} - {
        unresolved.sketches[0][0]
    }
    with session.commands:
        for path, sketch in unresolved.sketches:
            base = session.sources.read(path)
            if base is None:
                return None  # an incomplete new file
            change = files.get(path, FileChange(path, base=digest(base)))
            lines = diff.apply(base, change.changes)
            region = _sketched_region(sketch, lines, language_of(path, lines))
            limit = MAX_REGION_TOKENS * MAX_SKETCH_REGIONS
            if (
                counter(session.connection)("\n".join(lines[region.first_row : region.last_row]))
                > limit
            ):
                return None
            fence = fence_of(sketch)
            shown = "\n".join([fence, *sketch, fence])
            result = session.rewrite(session.task(path, lines, region, SKETCH_TASK, sketch=shown))
            changes = diff.changes(base, diff.apply(lines, result.file.changes))
            kind, to, checks = change.kind, change.to, result.file.checks
            files[path] = FileChange(path, kind, to, digest(base), changes, checks)
            notes.append(result.note)
        made_files, late = [*files.values()], ""
        if not session.is_whole_edit:
            made_files, late = session.check_together(made_files)
    return Resolved((*made_files,), "\n".join(filter(None, (*notes, not_run, late))))


def _sketched_region(sketch: Lines, lines: Lines, language: str) -> Region:
    """Return the rows of the definitions that a sketch names, or the whole file."""
    rows = elision.markers(sketch, language, lines)
    named = symbols.top(elision.readable(sketch, rows, language), language, rows)
    inside = {*rows, *(row for one in named for row in range(one.first, one.last))}
    is_all = all(row in inside for row, line in enumerate(sketch) if line.strip())
    definitions = symbols.all_of(lines, language)
    matches = [[one for one in definitions if one.name == symbol.name] for symbol in named]
    if not named or not is_all or any(len(each) != 1 for each in matches):
        return Region(0, len(lines), "the whole file")
    first, last = min(one.first for (one,) in matches), max(one.last for (one,) in matches)
    return Region(first, last, ", ".join(one.name for (one,) in matches))


def _seen_rows(
    services: EditDeps, sources: Sources, params: wire.EditApply
) -> Callable[[str], Sequence[Seen]]:
    """Return a function from a file to its rows that were in the model's prompt."""
    known: dict[str, list[Seen]] = {}
    for each in services.seen(params["chat"], params["message"]):
        if each.path:
            known.setdefault(os.path.realpath(each.path), []).append(each)
    return lambda path: known.get(os.path.realpath(sources.absolute(path)), [])


def _fenced(text: str) -> str:
    fence = fence_of(tuple(text.split("\n")))
    return f"{fence}\n{text.rstrip()}\n{fence}\n"


def _unreadable(paths: Iterable[str], sources: Sources) -> str:
    """Return why an existing file was not read, such as a secret or binary one; "" for none."""
    for path in paths:
        if os.path.lexists(sources.absolute(path)):
            try:
                sources.require(path, is_own=True)
            except LcursorError as error:
                return f"{error.message}. {error.hint}"
    return ""


def _to_wire(choice: Choice, sources: Sources) -> wire.EditChoice:
    path = sources.absolute(choice.path)
    return {
        "path": path,
        "name": sources.name(path),
        "first_row": choice.first_row,
        "last_row": choice.last_row,
        "lines": [encodable(line) for line in choice.lines],
        "why": encodable(choice.why),
    }
