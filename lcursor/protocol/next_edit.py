"""The messages of next-edit prediction."""

from __future__ import annotations

from typing import Literal, TypedDict

NextEditKind = Literal["rename", "repetition", "model", "diagnostics"]


class NextEdit(TypedDict):
    """A finished edit of the user: rows, and the lines that replaced them."""

    path: str
    row: int  # when the edit was made
    old: list[str]
    new: list[str]
    is_accepted: bool  # whether it was a proposal


class NextEditFile(TypedDict):
    """A file that may need edits."""

    path: str  # absolute
    text: str  # with all edits


class NextEditPredict(TypedDict):
    """Request the edits that follow from the last ones; a newer request supersedes an older one."""

    id: int
    files: list[NextEditFile]  # the current one first
    is_wide: bool  # other files of the project may need edits, too
    edits: list[NextEdit]  # oldest first; empty to parse the current file in advance
    row: int  # of the cursor in the current file
    column: int  # in bytes


class NextEditProposal(TypedDict):
    """Rows, and the lines to replace them with."""

    kind: NextEditKind
    path: str
    row: int
    old: list[str]  # empty for an insertion
    new: list[str]
    cause: str  # "`timeout` became `deadline` in line 12"
    group: str  # those with one cause share it


class NextEditPredicted(TypedDict):
    """The answer to `next_edit.predict`; a later one, with a model's proposals, replaces it."""

    id: int
    has_names: bool  # files that are not open may have names that the edits concern
    proposals: list[NextEditProposal]  # best first
    reason: str  # why there are none; for :LCursor why


class NextEditOutcome(TypedDict):
    """The user accepted or rejected a proposal; stored on this machine only."""

    kind: NextEditKind
    filetype: str
    is_accepted: bool


class NextEditHidden(TypedDict):
    """A kind that is not shown in a filetype for a while, because it was rejected repeatedly."""

    kind: NextEditKind
    filetype: str
    until_s: float  # in seconds since 1970


class NextEditGate(TypedDict):
    """All kinds that are hidden."""

    hidden: list[NextEditHidden]


TO_PYTHON: dict[str, type] = {
    "next_edit.predict": NextEditPredict,
    "next_edit.outcome": NextEditOutcome,
}
TO_LUA: dict[str, type] = {
    "next_edit.predicted": NextEditPredicted,
    "next_edit.gate": NextEditGate,
}
