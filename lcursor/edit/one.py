"""An edit of one region: what is asked at a selection or a cursor, and its alternatives.

Blocks; on the edit's thread. What is written is proposed; nothing is changed here.
"""

from __future__ import annotations

from dataclasses import replace

from lcursor import protocol_edit as wire
from lcursor.edit import tools as common
from lcursor.edit.job import End, Job, Teller
from lcursor.edit.records import lines_of
from lcursor.edit.rewriting.task import Task
from lcursor.edit.rewriting.trial import Trial
from lcursor.edit.tools import Alternatives, Tools

SAME = "The model wrote what was there already"
OTHER_TEMPERATURE = 0.7
"""At which another way of doing the same is likely to be another one."""


def ask(job: Job, tools: Tools, params: wire.EditAsk, earlier: Alternatives) -> End:
    """Have a region written anew, and propose it.

    Args:
        job: that does it.
        tools: as they are.
        params: what was asked.
        earlier: what was proposed for the same before; this is added.

    Raises:
        LcursorError: it cannot be done.
    """
    path, lines = params["path"], lines_of(params["text"])
    here: wire.EditBuffer = {"path": path, "tick": params["tick"], "text": params["text"]}
    buffers = [here, *(each for each in params["buffers"] if each["path"] != path)]
    texts = common.sources(tools, path, buffers, path)
    texts.refuse(path)
    commands, not_run = tools.permissions.allowed(job, texts.root, tools.config)
    model = params["model"]
    reached = common.reach(job, tools, model)
    language = common.language_of(path, lines, params["filetype"])
    first, last = params["first_row"], params["last_row"]
    region = common.region_of(tools, reached, lines, language, first, last)
    old = lines[region.first_row : region.last_row]
    limit = common.room(reached, old)
    question = common.asked(
        job, tools, texts, params["instruction"], params["attachments"], buffers, limit
    )
    context, note = question.context(limit, common.counter(reached))
    task = Task(
        path=path,
        name=params["name"] or texts.name(path),
        language=language,
        lines=lines,
        region=region,
        instruction=question.text,
        context=context,
        format=common.format_of(tools, old),
        selection=lines[first:last],
    )
    remark = params["remark"].strip()
    is_other = bool(params["again"]) and not remark
    with Trial(texts.root, commands, texts.unsaved()) as trial:
        made = common.written(
            job,
            tools,
            reached,
            texts,
            task,
            Teller(job, path, params["tick"]),
            trial,
            remark,
            earlier.lines if remark else (),
            OTHER_TEMPERATURE if is_other else None,
        )
    if made.is_same:
        return End("same", made.note or SAME)
    earlier.lines = made.lines
    files = [replace(made.file, path=path)]
    key = common.propose(
        job,
        tools,
        texts,
        files,
        title=params["instruction"] or remark,
        note="\n".join(filter(None, (made.note, note, not_run))),
        alternative=len(earlier.turns) + 1,
        ticks={path: params["tick"]},
    )
    earlier.turns.append(key)
    return End("proposed")
