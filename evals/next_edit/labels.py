"""Label the steps of a commit after the fact: rename, signature, repetition, companion, other.

Looks only at the tokens of the whole commit, with its own patterns: shares no code with the
predictors. A label is for a step that is explained completely; a step that also changes something
else is `other`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, get_args

from evals.next_edit.commits import Commit, Step, tokens

Label = Literal["rename", "signature", "repetition", "companion", "other"]
LABELS: tuple[Label, ...] = get_args(Label)

NAME = re.compile(r"[^\W\d]\w*")
WORDS = frozenset({
    "and", "as", "assert", "async", "await", "break", "case", "class", "const", "continue",
    "def", "default", "del", "do", "elif", "else", "end", "except", "false", "False",
    "finally", "fn", "for", "from", "func", "function", "global", "if", "impl", "import", "in",
    "is", "lambda", "let", "local", "match", "mut", "new", "nil", "None", "nonlocal", "not",
    "null", "or", "package", "pass", "pub", "raise", "return", "self", "static", "struct",
    "super", "switch", "then", "this", "throw", "true", "True", "try", "type", "until", "var",
    "void", "while", "with", "yield",
})  # fmt: skip
HEAD = re.compile(r"\b(?:def|func|fn|function|class|struct|interface|type|trait|enum)\b")
FUNCTION = re.compile(r"\b(?:def|func|fn|function)\b(?:\s*\([^)]*\))?\s*(?:\w+[.:])*(\w+)\s*[(<]")
IMPORT = re.compile(
    r"\s*(?:import\b|from\b.*\bimport\b|use\b|#include\b|(?:const|local)\b.*\brequire\b|__all__)"
)
LIST_ITEM = re.compile(r"\s*[\w.\"'/*]+(?: as \w+)?,?\s*$")


@dataclass(frozen=True, slots=True)
class Labelled:
    """The label of a step; steps with a common cause share the group."""

    label: Label
    group: str
    declares: bool = False
    """Whether it changes the declaration that the others follow from."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A part of a step: tokens that were replaced."""

    old: tuple[str, ...]
    new: tuple[str, ...]


def label(commit: Commit) -> list[Labelled]:
    """Return the label of each step of a commit."""
    changes = [_changes(step) for step in commit.steps]
    renames = _renames(commit, changes)
    signatures = _signatures(commit.steps)
    shapes = Counter(shape for shape in map(_shape, commit.steps) if shape)
    edits = Counter(key for key in map(_edit_key, changes) if key)
    found = []
    for step, parts in zip(commit.steps, changes, strict=True):
        shape, key = _shape(step), _edit_key(parts)
        pairs = {(one.old[0], one.new[0]) for one in parts if _is_substitution(one)}
        if parts and all(_is_substitution(one) for one in parts) and pairs <= renames:
            group = " ".join(sorted(f"{a}>{b}" for a, b in pairs))
            declares = any(_declares(step.old, a) and _declares(step.new, b) for a, b in pairs)
            found.append(Labelled("rename", group, declares))
        elif name := _signature_of(step, signatures):
            found.append(Labelled("signature", name, bool(FUNCTION.search(" ".join(step.old)))))
        elif key and edits[key] > 1:
            found.append(Labelled("repetition", key))
        elif shape and shapes[shape] > 1:
            found.append(Labelled("repetition", shape))
        elif used := _companion(step, commit.steps):
            found.append(Labelled("companion", used))
        else:
            found.append(Labelled("other", ""))
    return found


def _changes(step: Step) -> list[_Change]:
    old, new = tokens("\n".join(step.old)), tokens("\n".join(step.new))
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    found = []
    for tag, one, two, three, four in matcher.get_opcodes():
        removed, added = old[one:two], new[three:four]
        if tag == "replace" and len(removed) == len(added):
            pairs = zip(removed, added, strict=True)
            found += [_Change((a,), (b,)) for a, b in pairs if a != b]
        elif tag != "equal":
            found.append(_Change(tuple(removed), tuple(added)))
    return found


def _is_substitution(change: _Change) -> bool:
    """Return whether one name became another."""
    if len(change.old) != 1 or len(change.new) != 1:
        return False
    old, new = change.old[0], change.new[0]
    return bool(NAME.fullmatch(old) and NAME.fullmatch(new)) and not {old, new} & WORDS


def _renames(commit: Commit, changes: Sequence[Sequence[_Change]]) -> set[tuple[str, str]]:
    """Return the pairs of names that are renames: twice or more, with a declaration among them."""
    places: dict[tuple[str, str], list[Step]] = defaultdict(list)
    for step, parts in zip(commit.steps, changes, strict=True):
        for one in parts:
            if _is_substitution(one):
                places[one.old[0], one.new[0]].append(step)
    found = set()
    for (old, new), steps in places.items():
        is_declared = any(_declares(step.old, old) and _declares(step.new, new) for step in steps)
        if len({id(step) for step in steps}) > 1 and is_declared:
            found.add((old, new))
    return found


def _declares(lines: Sequence[str], name: str) -> bool:
    word = rf"\b{re.escape(name)}\b"
    patterns = (
        rf"\b(?:def|func|fn|function|class|struct|interface|type|trait|enum|let|mut|var|const|local"
        rf"|static|import|as|define)\s+(?:\w+[.:])?{word}",
        rf"\b(?:def|func|fn|function)\b.*\(.*{word}",
        rf"^\s*(?:local |self\.|this\.|[\w, ]*,\s*)?{word}(?:\s*,[\w, ]*)?\s*(?::[^=]*)?:?=[^=]",
        rf"^\s*{word}\s*:|\bfor\b.*{word}.*\bin\b|\bimport\b.*{word}|\|.*{word}.*\|",
    )
    return any(re.search(pattern, line) for line in lines for pattern in patterns)


def _signatures(steps: Sequence[Step]) -> set[str]:
    """Return the functions whose parameters change and whose name stays."""
    found = set()
    for step in steps:
        old, new = " ".join(step.old), " ".join(step.new)
        before, after = FUNCTION.search(old), FUNCTION.search(new)
        if before is None or after is None or before[1] != after[1]:
            continue
        if tokens(old[before.end() :]) != tokens(new[after.end() :]):
            found.add(before[1])
    return found


def _signature_of(step: Step, names: set[str]) -> str:
    """Return the function with another signature that a step defines or calls differently."""
    old, new = " ".join(step.old), " ".join(step.new)
    for name in sorted(names):
        call = re.compile(rf"\b{re.escape(name)}\s*\(")
        before, after = call.search(old), call.search(new)
        if before and after and tokens(old[: before.end()]) == tokens(new[: after.end()]):
            return name
    return ""


def _edit_key(changes: Sequence[_Change]) -> str:
    """Return the replaced tokens as text; "" if they are too common to be the same edit."""
    if not changes:
        return ""
    words = [token for one in changes for token in one.old + one.new]
    if not any(NAME.fullmatch(token) or token.isdigit() for token in words):
        return ""
    return " ; ".join(f"{' '.join(one.old)} > {' '.join(one.new)}" for one in changes)


def _shape(step: Step) -> str:
    """Return the text of a replaced line with numbered names, equal for the same kind of edit."""
    if not step.old or not step.new or len(step.old) != len(step.new):
        return ""
    numbers: dict[str, str] = {}
    words = []
    for token in tokens("\n".join(step.old)) + ["=>"] + tokens("\n".join(step.new)):
        is_name = token not in WORDS and bool(re.fullmatch(r"\w+", token))
        words.append(numbers.setdefault(token, f"#{len(numbers)}") if is_name else token)
    return " ".join(words) if len(numbers) > 1 else ""


def _companion(step: Step, steps: Sequence[Step]) -> str:
    """Return a name that a step imports or exports, or no longer does, and another step uses."""
    lines = [*step.old, *step.new]
    is_import = any(IMPORT.match(line) for line in lines)
    if not is_import and not all(LIST_ITEM.match(line) for line in lines):
        return ""
    names = set(_names(step.old)) ^ set(_names(step.new))
    for other in steps:
        if other is not step:
            common = names & (set(_names(other.old)) ^ set(_names(other.new)))
            if common:
                return min(common)
    return ""


def _names(lines: Sequence[str]) -> list[str]:
    return [name for name in NAME.findall(" ".join(lines)) if name not in WORDS]


def is_head(step: Step) -> bool:
    """Return whether a step changes the head of a definition."""
    return any(HEAD.search(line) for line in (*step.old, *step.new))
