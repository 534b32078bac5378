"""The messages of edits, a part of `protocol.py`, which lists and checks them.

Vocabulary: imports only the chat's. An edit is asked for with an `id`, and all that is said about
it carries that id. What comes of it is a *turn*, named by its key in the ledger: files, each with
changes of whole lines against a base that is named by its digest. Rows are of that base.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from lcursor.protocol_chat import ChatAttachment

EditScope = Literal["region", "project"]
"""One region of a buffer; or all files, after a plan."""
EditPhase = Literal["server", "context", "reading", "writing", "checking", "planning"]
"""What an edit waits for: a server that starts, what is attached, the prompt, the model's lines,
the checks of what it wrote, a plan."""
EditEnd = Literal["proposed", "same", "nothing", "stopped", "refused", "failed"]
"""Changes were proposed; the model wrote what was there; it wrote no code; the user stopped it;
what it wrote was not to be used; it broke off."""
FileKind = Literal["edit", "create", "delete", "rename"]
TurnState = Literal["open", "done", "undone"]
"""Hunks wait for the user; all are decided; the turn was taken back."""


class EditBuffer(TypedDict):
    """A file as it is in the editor, where that is not what is on disk, or is looked at."""

    path: str  # absolute
    tick: int
    text: str  # a newline between its lines, none behind the last


class EditAsk(TypedDict):
    """Ask for a change."""

    id: int
    scope: EditScope
    path: str  # absolute, of the buffer; of a folder of the project where there is none
    name: str  # relative to the project's root
    filetype: str
    tick: int  # -1 where there is no buffer
    text: str  # of the whole buffer; as in `EditBuffer`
    first_row: int  # of the selection; the cursor's row where there is none
    last_row: int  # behind it; the same as `first_row` where there is none
    instruction: str  # with its mentions
    attachments: list[ChatAttachment]
    buffers: list[EditBuffer]  # that differ from what is on disk
    model: str  # empty: the settings'
    again: int  # id of the edit that is tried again, 0 for none
    remark: str  # what was wrong with it; empty: another way of doing the same
    served: list[str]  # files about which a language server can be asked; absolute


class EditPlace(TypedDict):
    """One of many places for the same instruction."""

    path: str
    row: int
    text: str  # what the list says about it


class EditMany(TypedDict):
    """Ask for the same change at many places."""

    id: int
    path: str  # of a file or folder of the project
    places: list[EditPlace]
    instruction: str
    buffers: list[EditBuffer]
    model: str
    served: list[str]  # as in `EditAsk`


class EditApply(TypedDict):
    """Make of what a chat, or someone else, wrote a change of files."""

    id: int
    path: str  # absolute: of the buffer that is looked at, or of a folder of the project
    text: str  # one fenced block with its fences, or a whole answer
    file: str  # path that the block is said to be about; empty where nothing says it
    chat: str  # key of the chat; empty for pasted text
    message: int  # of the chat that it is in; 0 where nobody knows
    buffers: list[EditBuffer]  # that are looked at, the likeliest first


class EditChoose(TypedDict):
    """Answer to `edit.question`; -1 is none of them."""

    id: int
    choice: int


class EditCarryOut(TypedDict):
    """Carry a plan out, but for the steps that were struck out."""

    id: int
    dropped: list[str]  # keys of steps


class EditStop(TypedDict):
    """Stop edit `id` at once; its `edit.done` follows."""

    id: int


class EditProblem(TypedDict):
    """An error of a text, as a language server says it."""

    row: int
    text: str
    code: str  # empty for none


class EditServer(TypedDict):
    """What a language server says of a proposal, and of the text that it was made from."""

    name: str
    before: list[EditProblem]  # empty as well where `after` is, and nobody asked
    after: list[EditProblem]


class EditLooked(TypedDict):
    """Answer to `edit.look`; of the servers only those that said something to be relied on."""

    id: int
    look: int
    servers: list[EditServer]


class EditHunk(TypedDict):
    """A change of lines as it was made, at the row where it was made."""

    row: int
    old: list[str]
    new: list[str]
    above: list[str]  # up to three lines before it, after it was made
    below: list[str]


class EditChange(TypedDict):
    """Lines of the base that become others."""

    first_row: int
    last_row: int  # behind the last
    old: list[str]
    new: list[str]


class EditDecided(TypedDict):
    """The user took hunks of a turn in an open buffer, or refused them."""

    turn: str
    path: str
    accepted: list[EditHunk]
    rejected: list[EditChange]  # rows of the base
    open: int  # hunks of this file that still wait
    is_undone: bool  # hunks accepted before were taken back with `u`


class EditWrite(TypedDict):
    """Make changes of a turn in files that no buffer has open: all of them, or none."""

    id: int
    turn: str
    paths: list[str]
    outside: bool  # the user said yes to files outside of the project


class EditRevert(TypedDict):
    """Take a turn back, or make it again."""

    id: int
    do: Literal["undo", "redo"]
    path: str  # of the project
    turn: str  # empty: the last that can be
    buffers: list[EditBuffer]  # all loaded buffers among the turn's files


class EditTurns(TypedDict):
    """Ask what turns a project has."""

    id: int
    path: str


class EditResume(TypedDict):
    """Have the open hunks of a turn again, after the editor ended with them."""

    id: int
    turn: str
    path: str  # of the project
    buffers: list[EditBuffer]  # all loaded buffers among the turn's files


class EditCommit(TypedDict):
    """Ask for a commit message of what is staged."""

    id: int
    path: str
    model: str


class EditStarted(TypedDict):
    """The region that is written anew; it is the base's rows."""

    id: int
    path: str
    first_row: int
    last_row: int
    what: str  # for people: `function parse, 34 lines`
    attempt: int  # from 1
    tick: int  # of `edit.ask`


class EditProgress(TypedDict):
    """What an edit waits for."""

    id: int
    phase: EditPhase
    detail: str
    done: int  # tokens of the prompt, or lines of the region
    total: int
    seconds_left: float  # -1 where there is no estimate
    attempt: int


class EditDelta(TypedDict):
    """More whole lines of the region's new text."""

    id: int
    attempt: int
    lines: list[str]


class EditStep(TypedDict):
    """One step of a plan."""

    key: str
    kind: FileKind
    path: str
    name: str
    to: str  # of a rename
    first_row: int
    last_row: int
    what: str  # the symbol or region
    do: str  # what shall be done there


class EditPlanned(TypedDict):
    """A plan, for the user to look at; `edit.carry_out` goes on."""

    id: int
    summary: str
    steps: list[EditStep]


class EditChoice(TypedDict):
    """One place where a block could go, or one answer to a question about something else."""

    path: str  # empty where it is no place; its lines then say what the user should know
    name: str
    first_row: int
    last_row: int
    lines: list[str]
    why: str


class EditQuestion(TypedDict):
    """A question to the user: which place is meant, or may commands run; `edit.choose` answers."""

    id: int
    text: str
    choices: list[EditChoice]


class EditLook(TypedDict):
    """Ask the language servers of a file about a text; `edit.looked` answers, in three seconds."""

    id: int
    look: int  # which question of this edit
    path: str
    before: str  # the text that was there, with the end of its last line
    after: str


class EditCheck(TypedDict):
    """What was found out about a change before it was shown."""

    name: str  # `parses`, `indent`, `symbols`, `size`, `format`, `test`, `lint`, `diagnostics`
    is_ok: bool
    text: str


class EditFile(TypedDict):
    """What a turn does to one file."""

    path: str
    name: str
    kind: FileKind
    to: str  # absolute; of a rename
    base: str  # digest of the text that the rows are of; empty for a file that is created
    tick: int  # of the buffer it was read from; -1 for the disk
    changes: list[EditChange]
    checks: list[EditCheck]
    is_outside: bool  # of the project: asked for before it is touched


class EditProposed(TypedDict):
    """A turn: nothing of it is done yet."""

    id: int
    turn: str
    title: str  # the instruction's beginning, for lists
    alternative: int  # which of those for the same edit, from 1
    files: list[EditFile]
    note: str  # what the model said besides, or what was left out and why
    attempts: int  # at the place that took the most
    chat: str  # where it came from a chat


class EditDone(TypedDict):
    """An edit ended."""

    id: int
    reason: EditEnd
    message: str  # what to say; empty where `edit.proposed` says all
    prompt_tokens: int
    cached_tokens: int
    answer_tokens: int
    passes: int  # forward passes of the model for the answer; 0 where the server does not say
    seconds: float
    attempts: int


class EditWritten(TypedDict):
    """The files of `edit.write` are written, or none is."""

    id: int
    turn: str
    paths: list[str]
    problem: str  # why nothing was written; empty where it was


class EditReverted(TypedDict):
    """A turn was taken back or made again on disk; the buffers' part is still to be done."""

    id: int
    turn: str
    title: str
    do: Literal["undo", "redo"]
    files: list[EditFile]  # changes for buffers that have `tick`
    paths: list[str]  # written
    problems: list[str]  # what could not be, and why


class EditTurnRow(TypedDict):
    """One turn of the ledger."""

    turn: str
    title: str
    state: TurnState
    at_s: float
    paths: list[str]
    open: int


class EditTurned(TypedDict):
    """The turns of a project, the newest first; answers `edit.turns`."""

    id: int
    turns: list[EditTurnRow]
    undo: str  # the turn that an undo takes back; empty for none
    redo: str


class EditMessage(TypedDict):
    """A commit message; answers `edit.commit`."""

    id: int
    text: str
    note: str  # what of the diff the model did not see


TO_PYTHON: dict[str, type] = {
    "edit.ask": EditAsk,
    "edit.many": EditMany,
    "edit.apply": EditApply,
    "edit.choose": EditChoose,
    "edit.carry_out": EditCarryOut,
    "edit.looked": EditLooked,
    "edit.stop": EditStop,
    "edit.decided": EditDecided,
    "edit.write": EditWrite,
    "edit.revert": EditRevert,
    "edit.turns": EditTurns,
    "edit.resume": EditResume,
    "edit.commit": EditCommit,
}
TO_LUA: dict[str, type] = {
    "edit.started": EditStarted,
    "edit.progress": EditProgress,
    "edit.delta": EditDelta,
    "edit.planned": EditPlanned,
    "edit.question": EditQuestion,
    "edit.look": EditLook,
    "edit.proposed": EditProposed,
    "edit.done": EditDone,
    "edit.written": EditWritten,
    "edit.reverted": EditReverted,
    "edit.turned": EditTurned,
    "edit.message": EditMessage,
}
