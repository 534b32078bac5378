"""What a chat, or someone else, wrote becomes a change of files; where it is not sure, one asks.

No model is asked here. Blocks, also while the user chooses; on the edit's thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from lcursor import protocol_edit as wire
from lcursor.context.items import Seen
from lcursor.edit import tools as common
from lcursor.edit.apply import parse, resolve
from lcursor.edit.apply.blocks import Block
from lcursor.edit.apply.place import Choice
from lcursor.edit.apply.resolve import Attached
from lcursor.edit.job import End, Job
from lcursor.edit.records import FileChange
from lcursor.edit.sources import Sources
from lcursor.edit.tools import Tools

MAX_QUESTIONS = 20
"""Of one reply: a block that is not found even then is not asked for again."""
FROM_CHAT, PASTED = "from the chat", "pasted"


def apply(job: Job, tools: Tools, params: wire.EditApply) -> End:
    """Find where blocks of a reply belong, and propose that.

    Raises:
        LcursorError: a file cannot be read.
    """
    path, buffers = params["path"], params["buffers"]
    here = "" if os.path.isdir(path) else path
    here = here or next((each["path"] for each in buffers), "")
    texts = common.sources(tools, path or here, buffers, here)
    job.progress("checking")
    blocks = parse.blocks(params["text"], params["file"])
    if not blocks and not params["chat"] and params["text"].strip():
        blocks = parse.blocks(_fenced(params["text"]), params["file"])  # pasted code, as it is
    if not blocks:
        return End("nothing", "There is no block of code in it")
    attached = _attached(tools, texts, params) if params["chat"] else lambda _: ()
    found = resolve.resolve(blocks, texts, None, attached)
    for _ in range(MAX_QUESTIONS):
        job.check()
        if not isinstance(found, resolve.Ask):
            break
        choice = job.ask(found.text, [_choice(each, texts) for each in found.choices])
        if choice < 0:
            return End("stopped")
        found = resolve.resolve(blocks, texts, found.chosen(choice), attached)
    if isinstance(found, resolve.Ask):
        return End("refused", "There are too many places where it could go")
    if isinstance(found, resolve.Refused):
        return End("refused", _unread(blocks, texts) or found.reason)
    hidden = [each.path for each in found.files if each.kind == "create" and _is_there(each.path)]
    if hidden:
        names = ", ".join(texts.name(each) for each in hidden)
        return End("refused", f"{names} is there already, and is none that may be read")
    files: list[FileChange] = [common.checked(texts, each) for each in found.files]
    if not any(each.changes or each.kind != "edit" for each in files):
        return End("same", "It is there already")
    names = ", ".join(texts.name(each.path) for each in files)
    title = f"{FROM_CHAT if params['chat'] else PASTED}: {names}"
    chat = params["chat"]
    common.propose(job, tools, texts, files, title=title, note=found.note, chat=chat)
    return End("proposed")


def _attached(tools: Tools, texts: Sources, params: wire.EditApply) -> Attached:
    """Return what tells which rows of a file the model had read when it wrote a block."""
    known: dict[str, list[Seen]] = {}
    for each in tools.seen(params["chat"], params["message"]):
        if each.path:
            known.setdefault(os.path.realpath(each.path), []).append(each)
    return lambda path: known.get(os.path.realpath(texts.absolute(path)), [])


def _fenced(text: str) -> str:
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`{3,}", text)), 0)
    return f"{fence}\n{text.rstrip()}\n{fence}\n"


def _unread(blocks: Sequence[Block], texts: Sources) -> str:
    """Return what is to be said of a file that a reply names and that may not be read for that."""
    for each in blocks:
        whole = texts.absolute(each.path) if each.path else ""
        if whole and texts.is_outside(whole) and os.path.lexists(whole) and not texts.read(whole):
            return f"{whole} is outside of the project. Open it first"
    return ""


def _is_there(path: str) -> bool:
    """Return whether there is something that was not read: a secret, or no text."""
    return os.path.lexists(path)


def _choice(choice: Choice, texts: Sources) -> wire.EditChoice:
    path = texts.absolute(choice.path)
    return {
        "path": path,
        "name": texts.name(path),
        "first_row": choice.first_row,
        "last_row": choice.last_row,
        "lines": [common.clean(line) for line in choice.lines],
        "why": common.clean(choice.why),
    }
