"""The messages of edits.

Each request has an `id`; all its answers repeat it. The result of an edit is a *turn*, named by its
key in the history: files, each with changes of whole lines. Rows are those of the base, the text
that the changes were made for, which is named by its digest.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from lcursor.protocol.chat import ChatAttachment

EditPhase = Literal["server", "context", "queue", "reading", "writing", "checking"]
"""The step that an edit waits for: the start of a server, the context, other requests to the local
server, reading the prompt, the model's lines, their checks."""
EditEnd = Literal["proposed", "same", "nothing", "stopped", "rejected", "failed"]
"""Changes are proposed; the model repeated the old lines; it wrote no code; the user stopped it;
its reply cannot be used; an error."""
FileKind = Literal["edit", "create", "delete", "rename"]
TurnState = Literal["open", "done", "undone"]
"""Hunks are open; all are accepted or rejected; the turn was undone."""


class EditBuffer(TypedDict):
    """The text of a file in the editor: it is unsaved, or shown."""

    path: str  # absolute
    tick: int
    text: str  # without a final newline


class EditAsk(TypedDict):
    """Request a change."""

    id: int
    path: str  # absolute, of the buffer; of a folder of the project if there is none
    name: str  # relative to the project's root
    filetype: str
    tick: int  # -1 if there is no buffer
    text: str  # of the whole buffer; as in `EditBuffer`
    first_row: int  # of the selection; the cursor's row if there is none
    last_row: int  # after the last; the same as `first_row` if there is none
    instruction: str  # with its mentions
    attachments: list[ChatAttachment]
    buffers: list[EditBuffer]  # unsaved ones
    model: str  # empty: the settings'
    again: int  # id of the edit to retry, 0 for none
    remark: str  # its problem; empty for an alternative


class EditLocation(TypedDict):
    """A place for an instruction."""

    path: str
    row: int
    text: str  # of its entry in the list


class EditMany(TypedDict):
    """Request the same change at many places."""

    id: int
    path: str  # of a file or folder of the project
    locations: list[EditLocation]
    instruction: str
    buffers: list[EditBuffer]
    model: str


class EditApply(TypedDict):
    """Turn a code block or a whole reply into changes of files."""

    id: int
    path: str  # absolute: of the current buffer, or of a folder of the project
    text: str  # a code block with its fences, or a whole reply
    file: str  # path named by the block; empty if there is none
    chat: str  # key of the chat; empty for pasted text
    message: int  # number of its message; 0 if unknown
    buffers: list[EditBuffer]  # shown ones, likeliest first


class EditChange(TypedDict):
    """Lines of the base, and those that replace them."""

    first_row: int
    last_row: int  # after the last
    old: list[str]
    new: list[str]


class EditChanges(TypedDict):
    """Changes of a file."""

    path: str
    changes: list[EditChange]


class EditPropose(TypedDict):
    """Propose known changes, without a model."""

    id: int
    path: str  # absolute: of the current buffer
    title: str
    files: list[EditChanges]
    buffers: list[EditBuffer]  # all loaded ones among the files


class EditChoose(TypedDict):
    """Answer `edit.question`; -1 for none of the choices."""

    id: int
    choice: int


class EditStop(TypedDict):
    """Stop edit `id`; its `edit.done` follows."""

    id: int


class EditHunk(TypedDict):
    """A hunk that was accepted in a buffer, at the row where it was applied."""

    row: int
    old: list[str]
    new: list[str]
    above: list[str]  # up to three lines before it, once it was applied
    below: list[str]


class EditDecided(TypedDict):
    """The user accepted or rejected hunks in a buffer, or undid accepted ones."""

    turn: str
    path: str
    accepted: list[EditHunk]
    rejected: list[EditChange]  # rows of the base
    open: int  # number of open hunks of this file
    is_undone: bool  # accepted hunks were undone with `u`


class EditRenamed(TypedDict):
    """The buffer in which hunks of a turn are, or were, got another name."""

    turn: str
    path: str
    to: str


class EditWrite(TypedDict):
    """Write changes of a turn to files that are not loaded: all of them, or none."""

    id: int
    turn: str
    paths: list[str]
    outside: bool  # the user has allowed files outside the project


class EditRevert(TypedDict):
    """Undo or redo a turn."""

    id: int
    do: Literal["undo", "redo"]
    path: str  # of the project
    turn: str  # empty for the last one
    buffers: list[EditBuffer]  # all loaded buffers among the turn's files


class EditTurns(TypedDict):
    """List the turns of a project."""

    id: int
    path: str


class EditResume(TypedDict):
    """Propose the open hunks of a turn again, after a restart."""

    id: int
    turn: str
    path: str  # of the project
    buffers: list[EditBuffer]  # all loaded buffers among the turn's files


class EditCommit(TypedDict):
    """Request a commit message for the staged changes."""

    id: int
    path: str
    model: str
    file: str  # absolute: the commit's message, if it is the current buffer; else empty
    index: str  # GIT_INDEX_FILE, if git has started Neovim with that file; else empty
    written: str  # the message that the buffer has already


class EditStarted(TypedDict):
    """The region that is being rewritten."""

    id: int
    path: str
    first_row: int
    last_row: int
    what: str  # for display: `function parse, 34 lines`
    attempt: int  # from 1
    tick: int  # of `edit.ask`


class EditProgress(TypedDict):
    """The step that an edit waits for."""

    id: int
    phase: EditPhase
    detail: str
    done: int  # tokens of the prompt, or lines of the region
    total: int
    seconds_left: float  # -1 if unknown
    attempt: int


class EditDelta(TypedDict):
    """The next lines of the region's new text."""

    id: int
    attempt: int
    lines: list[str]


class EditChoice(TypedDict):
    """A possible place of a block, or another possible answer to a question."""

    path: str  # empty if it is not a place; its lines are an explanation then
    name: str
    first_row: int
    last_row: int
    lines: list[str]
    why: str


class EditQuestion(TypedDict):
    """Ask the user which place is meant, or whether commands may run; see `edit.choose`."""

    id: int
    text: str
    choices: list[EditChoice]


class EditCheck(TypedDict):
    """The result of a check of a proposed change."""

    name: str  # `parses`, `indent`, `symbols`, `size`, `format`, `test`, `lint`
    is_ok: bool
    text: str


class EditFile(TypedDict):
    """The changes of a turn in a file."""

    path: str
    name: str
    kind: FileKind
    to: str  # absolute; of a rename
    base: str  # digest of the base; empty for a new file
    tick: int  # of the buffer that the base is from; -1 for the disk
    changes: list[EditChange]
    checks: list[EditCheck]
    is_outside: bool  # outside the project: confirmed before it is written
    is_guarded: bool  # runs code by itself: not accepted together with other files
    unneeded: list[int]  # indexes of changes without which the tests pass, too


class EditProposed(TypedDict):
    """The proposed changes of an edit."""

    id: int
    turn: str
    title: str  # for lists: the beginning of the instruction
    alternative: int  # its number among those of the edit, from 1
    files: list[EditFile]
    note: str  # the model's text outside the code, or omissions and their reasons
    attempts: int  # maximum over all places
    chat: str  # key of the chat that it came from


class EditDone(TypedDict):
    """An edit has ended."""

    id: int
    reason: EditEnd
    message: str  # for the user; empty after `edit.proposed`
    prompt_tokens: int
    cached_tokens: int
    answer_tokens: int
    passes: int  # forward passes of the model for the answer; 0 if unknown
    seconds: float
    attempts: int


class EditWritten(TypedDict):
    """The answer to `edit.write`."""

    id: int
    turn: str
    paths: list[str]
    problem: str  # why nothing was written; empty for success


class EditReverted(TypedDict):
    """A turn was undone or redone on disk; the editor changes its buffers."""

    id: int
    turn: str
    title: str
    do: Literal["undo", "redo"]
    files: list[EditFile]  # changes of buffers, which have a `tick`
    paths: list[str]  # written
    problems: list[str]  # failures and their reasons


class EditTurnRow(TypedDict):
    """A turn in a list."""

    turn: str
    title: str
    state: TurnState
    at_s: float
    paths: list[str]
    open: int


class EditTurned(TypedDict):
    """The turns of a project, newest first; the answer to `edit.turns`."""

    id: int
    turns: list[EditTurnRow]
    undo: str  # the turn that undo would revert; empty for none
    redo: str


class EditMessage(TypedDict):
    """A commit message; the answer to `edit.commit`."""

    id: int
    text: str
    note: str  # parts of the diff that the model did not read
    is_amend: bool  # whether the buffer has the message of the last commit, which this replaces


TO_PYTHON: dict[str, type] = {
    "edit.ask": EditAsk,
    "edit.many": EditMany,
    "edit.apply": EditApply,
    "edit.propose": EditPropose,
    "edit.choose": EditChoose,
    "edit.stop": EditStop,
    "edit.decided": EditDecided,
    "edit.renamed": EditRenamed,
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
    "edit.question": EditQuestion,
    "edit.proposed": EditProposed,
    "edit.done": EditDone,
    "edit.written": EditWritten,
    "edit.reverted": EditReverted,
    "edit.turned": EditTurned,
    "edit.message": EditMessage,
}
