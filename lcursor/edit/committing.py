"""A commit message of what is staged, on its way to the editor. Blocks; on the edit's thread."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lcursor import protocol_edit as wire
from lcursor.edit import tools as common
from lcursor.edit.job import End, Job
from lcursor.edit.tools import Tools

if TYPE_CHECKING:
    from lcursor.llm.reach import Reached


def ask(job: Job, tools: Tools, params: wire.EditCommit) -> End:
    """Have a message written and tell it.

    Raises:
        LcursorError: nothing is staged, or the model cannot be asked.
    """
    from lcursor.edit import commit

    root = common.root_of(params["path"])
    reached = common.reach(job, tools, params["model"])
    job.progress("writing")
    rules = rules_of(root, tools)

    def write(model: Reached) -> tuple[str, str]:
        return commit.message(model, root, job.cancel, rules=rules, secrets=tools.secrets)

    text, note = common.surely(job, tools, reached, write)
    job.check()
    job.say("edit.message", text=common.clean(text), note=common.clean(note))
    return End("proposed")


def rules_of(root: Path, tools: Tools) -> str:
    """Return the project's files of rules, as far as they are read at all."""
    if not tools.models.config.rules:
        return ""
    from lcursor.context import layout, rules
    from lcursor.context.reading import Reader

    found = rules.found(root, [str(root)], reader=Reader(root, tools.secrets))
    return common.clean(layout.write([each for each in found if not each.is_left_out]))
