"""Edit one region, at a selection or a cursor, and propose alternatives. Blocks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lcursor.changes.records import Lines, lines_of
from lcursor.edit.run import EditOutcome, EditRun
from lcursor.edit.session import EditDeps, EditSession, language_of
from lcursor.protocol import edit as wire

SAME = "The model made no change"
SAME_AGAIN = "The model wrote the same text again"
ALTERNATIVE_TEMPERATURES = (0.7, 1.0)
"""High enough to get a different answer; the second one after an equal answer."""


@dataclass(slots=True)
class EarlierProposals:
    """The earlier proposals of one edit."""

    turns: list[str] = field(default_factory=list)
    texts: list[Lines] = field(default_factory=list)
    """Lines of their regions."""


def edit_region(
    run: EditRun, services: EditDeps, params: wire.EditAsk, earlier: EarlierProposals
) -> EditOutcome:
    """Rewrite a region, propose the result, and add it to the alternatives."""
    path, lines = params["path"], lines_of(params["text"])
    current: wire.EditBuffer = {"path": path, "tick": params["tick"], "text": params["text"]}
    buffers = [current, *(each for each in params["buffers"] if each["path"] != path)]
    session = EditSession(run, services, path, buffers, path)
    session.sources.require_public(path)
    not_run = session.allow_commands()
    connection = session.connect(params["model"])
    language = language_of(path, lines, params["filetype"])
    first, last = params["first_row"], params["last_row"]
    region = session.region(lines, language, first, last)
    old = lines[region.first_row : region.last_row]
    question = session.question(params["instruction"], params["attachments"], buffers, old)
    context, note = question.context(connection, old)
    task = session.task(
        path,
        lines,
        region,
        question.text,
        name=params["name"] or session.sources.name(path),
        language=language,
        context=context,
        selection=lines[first:last],
    )
    remark = params["remark"].strip()
    is_alternative = bool(params["again"]) and not remark
    latest = earlier.texts[-1] if earlier.texts else ()
    with session.commands:
        for temperature in ALTERNATIVE_TEMPERATURES if is_alternative else (0.0,):
            result = session.rewrite(
                task,
                tick=params["tick"],
                remark=remark,
                before=latest if remark or temperature == ALTERNATIVE_TEMPERATURES[-1] else (),
                temperature=temperature,
            )
            is_repeated = not result.is_same and result.lines in earlier.texts
            if not is_repeated:
                break
    if is_repeated:
        return EditOutcome("same", SAME_AGAIN)
    if result.is_same:
        return EditOutcome("same", result.note or SAME)
    earlier.texts.append(result.lines)
    key = session.propose(
        [replace(result.file, path=path)],
        title=params["instruction"] or remark,
        notes=(result.note, note, not_run),
        alternative=len(earlier.turns) + 1,
        ticks={path: params["tick"]},
    )
    earlier.turns.append(key)
    return EditOutcome("proposed")
