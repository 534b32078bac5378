"""Predict the next edits: run all predictors, apply common guards, and rank the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from lcursor.code import languages
from lcursor.next_edit import history, rename, repetition, trees
from lcursor.next_edit.records import Edit, Lines, Proposal, Texts
from lcursor.next_edit.tokens import changes, is_cause, tokenize

Predictor = Callable[[Texts, Sequence[Edit]], Sequence[Proposal]]
PREDICTORS: Final[tuple[Predictor, ...]] = (rename.proposals, repetition.proposals)
"""More certain ones first: of two proposals for a row, the first one counts."""
MAX_EDITS: Final = 16
"""Last edits that are considered."""
MAX_PROPOSALS: Final = 50
MAX_CHECKED: Final = 8
"""Proposals of a file that are checked one by one if they add a syntax error together."""


def predict(texts: Texts, edits: Sequence[Edit]) -> list[Proposal]:
    """Return the proposals worth showing, best first.

    Args:
        texts: the current lines of the known files, with all edits.
        edits: the last edits of the user, oldest first.
    """
    if not edits:
        return []
    edits = edits[-MAX_EDITS:]
    proposals = [one for predictor in PREDICTORS for one in predictor(texts, edits)]
    return checked(texts, edits, proposals)


def checked(texts: Texts, edits: Sequence[Edit], proposals: Iterable[Proposal]) -> list[Proposal]:
    """Return the proposals that pass the common guards, best first.

    Args:
        proposals: of two for a row, the first one counts.
    """
    undone = {(edit.path, edit.new, edit.old) for edit in edits}
    by_row: dict[tuple[str, int], Proposal] = {}
    for one in proposals:
        if (one.path, one.old, one.new) not in undone and one.old != one.new:
            by_row.setdefault((one.path, one.row), one)
    last = edits[-1]
    ranked = sorted(
        by_row.values(),
        key=lambda one: (-one.confidence, one.path != last.path, abs(one.row - last.row), one.row),
    )
    return _without_errors(texts, ranked[:MAX_PROPOSALS])


def replaced_names(edits: Sequence[Edit]) -> list[str]:
    """Return the names that the last edits replaced by others, newest first."""
    found = [
        change.names[0]
        for edit in reversed(history.without_undone(edits[-MAX_EDITS:]))
        if is_cause(edit)
        for change in changes(edit)
        if change.names
    ]
    return list(dict.fromkeys(found))


def why_nothing(texts: Texts, edits: Sequence[Edit]) -> str:
    """Return why nothing follows from the last edit, as the end of a sentence for the user."""
    last = edits[-1]
    if not is_cause(last):
        return "the last change is only white space, or has too many lines"
    names = next((one.names for one in changes(last) if one.names), None)
    if names is None:
        return "no other line fits; the same change on two or three similar lines may be needed"
    old = names[0]
    lines = texts.get(last.path, ())
    count = sum(token.text == old for line in lines if old in line for token in tokenize(line))
    if not count:
        return f"there is no other `{old}` in the file"
    if count > rename.MAX_USES:
        return f"there are more than {rename.MAX_USES} other uses of `{old}`"
    if sum(one.names == names for edit in edits if is_cause(edit) for one in changes(edit)) > 1:
        return f"no other line with `{old}` is near enough, or like the changed ones"
    return f"no other `{old}` is surely the same name; change a second one to go on"


def _without_errors(texts: Texts, ranked: Sequence[Proposal]) -> list[Proposal]:
    """Return the proposals that add no syntax error, alone or together with those of their file."""
    wrong: list[Proposal] = []
    for path in dict.fromkeys(one.path for one in ranked):
        own = [one for one in ranked if one.path == path]
        if _adds_error(texts[path], path, own[:1]) or _adds_error(texts[path], path, own):
            wrong += own[MAX_CHECKED:]
            wrong += [one for one in own[:MAX_CHECKED] if _adds_error(texts[path], path, [one])]
    return [one for one in ranked if one not in wrong]


def _adds_error(lines: Lines, path: str, proposals: Sequence[Proposal]) -> bool:
    """Return whether applying some proposals adds a syntax error to a file."""
    language = languages.detect(path)
    changed = lines
    for one in sorted(proposals, key=lambda each: -each.row):
        changed = (*changed[: one.row], *one.new, *changed[one.end_row :])
    return trees.errors(language, changed) > trees.errors(language, lines)
