"""Write the generated part of the apply corpus: replies in all forms, with the right results.

`python -m evals.make_apply_corpus OUT_FOLDER` writes `bases.jsonl` and `made.jsonl`. The changes
come from this repository's history; each is written as a reply, which is then mangled as models
mangle their replies. The right result follows from the commit and from the mangling, never from the
code under test: nothing of `lcursor.edit` is used here.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evals.mangle import MANGLES, Sides

ROOT = Path(__file__).resolve().parent.parent
MIN_ROWS, MAX_ROWS, MAX_HUNKS, MAX_CHANGED = 18, 150, 5, 50
EACH = 9
"""Replies of each form with each way of mangling."""
SEED = 6
Span = tuple[int, int, int, int]


@dataclass
class Change:
    """One file of one commit."""

    commit: str
    path: str
    old: list[str]
    new: list[str]
    spans: list[Span] = field(default_factory=list)

    def __post_init__(self) -> None:
        matcher = difflib.SequenceMatcher(None, self.old, self.new, autojunk=False)
        self.spans = [tuple(op[1:]) for op in matcher.get_opcodes() if op[0] != "equal"]  # type: ignore[misc]


@dataclass
class Case:
    """One reply and its right result."""

    form: str
    mangled: str
    path: str
    base: list[str]
    reply: str
    right: list[str] | None
    """None: nothing may be changed without asking."""
    is_unique: bool = True
    """There is exactly one right result; otherwise asking is as good."""
    file: str = ""


def git(*words: str) -> str:
    """Return what git prints."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def changes() -> list[Change]:
    """Return small changes of single files, in random order."""
    found = []
    for commit in git("rev-list", "--no-merges", "592d4a7").split():
        if not git("rev-list", "--parents", "-1", commit).split()[1:]:
            continue
        for line in git("diff-tree", "-r", "--name-status", commit).splitlines():
            state, _, path = line.partition("\t")
            if state != "M" or not path.endswith((".py", ".lua")):
                continue
            old = git("show", f"{commit}~1:{path}").removesuffix("\n").split("\n")
            new = git("show", f"{commit}:{path}").removesuffix("\n").split("\n")
            one = Change(commit[:7], path, old, new)
            size = sum(s[1] - s[0] + s[3] - s[2] for s in one.spans)
            is_fit = MIN_ROWS <= len(old) <= MAX_ROWS and size <= MAX_CHANGED
            if is_fit and 0 < len(one.spans) <= MAX_HUNKS:
                found.append(one)
    random.Random(SEED).shuffle(found)
    return found


def pieces(one: Change, context: int) -> list[tuple[list[str], list[str], Span]]:
    """Return the old and new lines of each hunk with context lines; join hunks that touch."""
    joined: list[list[int]] = []
    for a, b, c, d in one.spans:
        if joined and a - joined[-1][1] <= 2 * context:
            joined[-1][1], joined[-1][3] = b, d
        else:
            joined.append([a, b, c, d])
    found = []
    for a, b, c, d in joined:
        up = min(context, a)
        down = min(context, len(one.old) - b)
        span = (a - up, b + down, c - up, d + down)
        found.append((one.old[span[0] : span[1]], one.new[span[2] : span[3]], span))
    return found


def times(base: list[str], block: list[str]) -> int:
    """Return how often a block occurs in a file, ignoring indentation."""
    want = [line.strip() for line in block]
    rows = [line.strip() for line in base]
    return sum(rows[at : at + len(want)] == want for at in range(len(rows) - len(want) + 1))


def says_enough(block: list[str]) -> bool:
    """Whether a block has enough letters to be recognized."""
    return sum(map(str.isalnum, "".join(block))) >= 6


def heading(path: str, rng: random.Random) -> str:
    """Return a line that names a file, in one of the ways models do."""
    return rng.choice(
        (path, f"`{path}`", f"**{path}**", f"### {path}", f"File: {path}", f"{path}:", f"./{path}")
    )


def block(old: list[str], new: list[str], rng: random.Random) -> str:
    """Return a search/replace block."""
    size = rng.choice((5, 7, 7, 7, 9))
    parts = ["<" * size + " SEARCH", *old, "=" * size, *new, ">" * size + " REPLACE"]
    return "\n".join(parts)


def search_replace(one: Change, sides: list[Sides], rng: random.Random) -> str:
    """Return a reply of search/replace blocks."""
    info = "python" if one.path.endswith(".py") else "lua"
    if rng.random() < 0.5:
        text = "\n\n".join(block(old, new, rng) for old, new in sides)
        return f"I change this:\n\n{heading(one.path, rng)}\n```{info}\n{text}\n```\n"
    return "Here it is.\n\n" + "\n\n".join(
        f"{heading(one.path, rng)}\n```{info}\n{block(old, new, rng)}\n```" for old, new in sides
    )


def udiff(one: Change, sides: list[Sides], rng: random.Random, style: str) -> str:
    """Return a reply with a unified diff."""
    out: list[str] = []
    if style == "git":
        out += [f"diff --git a/{one.path} b/{one.path}", "index 1234567..89abcde 100644"]
    marks = ("a/", "b/") if style in {"git", "numbers"} or rng.random() < 0.5 else ("", "")
    out += [f"--- {marks[0]}{one.path}", f"+++ {marks[1]}{one.path}"]
    for number, (old, new) in enumerate(sides):
        span = pieces(one, 3)[number][2]
        by = {"wrong_numbers": 17, "wrong_counts": 0}.get(style, 0)
        counts = (len(old), len(new)) if style != "wrong_counts" else (len(old) + 2, len(new) + 5)
        head = f"@@ -{span[0] + 1 + by},{counts[0]} +{span[2] + 1 + by},{counts[1]} @@"
        out.append("@@ ... @@" if style == "no_numbers" else head)
        for line in list(difflib.ndiff(old, new)):
            if line[0] in "+-":
                out.append(line[0] + line[2:])
            elif line[0] == " ":
                bare = style == "no_marks" or (style == "bare_blanks" and not line[2:].strip())
                out.append(line[2:] if bare else " " + line[2:])
    return "```diff\n" + "\n".join(out) + "\n```\n"


def patch(one: Change, sides: list[Sides]) -> str:
    """Return a reply in the `*** Begin Patch` format."""
    out = ["*** Begin Patch", f"*** Update File: {one.path}"]
    for old, new in sides:
        out.append("@@")
        out += [x[0] + x[2:] for x in difflib.ndiff(old, new) if x[0] in "+- "]
    return "\n".join([*out, "*** End Patch"])


def spelled(one: Change, form: str, mangled: str, rng: random.Random) -> Case | None:
    """Return a reply that quotes the old lines and writes the new ones."""
    parts = pieces(one, 3)
    sides: list[Sides] = []
    for old, new, _ in parts:
        made = MANGLES[mangled if mangled in MANGLES else "plain"](old, new, rng)
        if made is None and mangled in MANGLES and len(parts) > 1 and mangled != "plain":
            made = (old, new)
        if made is None:
            return None
        sides.append(made)
    is_as_it_was = all(part[:2] == made for part, made in zip(parts, sides, strict=True))
    if mangled in MANGLES and mangled != "plain" and is_as_it_was:
        return None
    is_unique = all(times(one.old, old) == 1 and says_enough(old) for old, _, _ in parts)
    if mangled == "no_marks":
        is_unique = is_unique and not any(x[:1] in {"+", "-"} for old, _, _ in parts for x in old)
    if mangled == "escaped" and any("&" in x for x in one.old):
        return None
    if form == "patch":
        reply = patch(one, sides)
    elif form == "udiff":
        reply = udiff(one, sides, rng, "git" if mangled in MANGLES else mangled)
    else:
        reply = search_replace(one, sides, rng)
    return Case(form, mangled, one.path, one.old, reply, one.new, is_unique)


def stale(one: Change, form: str, kind: str, rng: random.Random) -> Case | None:
    """Return a reply to a file that was modified since."""
    parts = pieces(one, 4)
    old, _, span = rng.choice(parts)
    used = {row for a, b, _, _ in one.spans for row in range(a - 1, b + 1)}
    rows = [r for r in range(span[0] + 1, span[1] - 1) if r not in used and one.old[r].strip()]
    rows = [r for r in rows if len(one.old[r].strip()) > 12 and times(one.old, [one.old[r]]) == 1]
    if kind == "stale_changed":
        rows = [r for a, b, _, _ in one.spans for r in range(a, b) if len(one.old[r].strip()) > 8]
    if not rows or len(old) < 8 or any(times(one.old, x) != 1 for x, _, _ in parts):
        return None
    row = rng.choice(rows)
    base, right = list(one.old), list(one.new)
    at = row + sum((d - c) - (b - a) for a, b, c, d in one.spans if b <= row)
    if kind == "stale_line":
        base[row] = right[at] = one.old[row].replace(
            one.old[row].strip().split()[-1], "changed_here"
        )
    elif kind == "stale_more":
        extra = " " * (len(one.old[row]) - len(one.old[row].lstrip())) + "added_since = True"
        base.insert(row, extra)
        right.insert(at, extra)
    else:
        base[row] = one.old[row].rstrip() + " and_more(17)"
    if base[row] == one.old[row]:
        return None
    sides = [(o, n) for o, n, _ in parts]
    reply = patch(one, sides) if form == "patch" else search_replace(one, sides, rng)
    if kind == "stale_changed":
        return Case(form, kind, one.path, base, reply, None)
    return Case(form, kind, one.path, base, reply, right, len(old) >= 10)


def doubled(one: Change, form: str, rng: random.Random) -> Case | None:
    """Return a reply whose quoted lines occur twice in the file."""
    old, new, _ = pieces(one, 2)[0]
    if not says_enough(old) or len(pieces(one, 2)) > 1 or times(one.old, old) != 1:
        return None
    at = rng.choice((0, len(one.old)))
    base = [*one.old[:at], *old, *one.old[at:]]
    reply = patch(one, [(old, new)]) if form == "patch" else search_replace(one, [(old, new)], rng)
    return Case(form, "doubled", one.path, base, reply, None)


def moved(one: Change, form: str, rng: random.Random) -> Case | None:
    """Return a reply to a file whose parts were reordered since."""
    heads = [
        r for r, x in enumerate(one.old) if re.match(r"(def|class|local function|function) ", x)
    ]
    sides = [(o, n) for o, n, _ in pieces(one, 3)]
    spots = [(s[0], s[1]) for _, _, s in pieces(one, 3)]
    for head in heads[1:]:
        if any(a < head < b for a, b in spots) or not all(b <= head for _, b in spots):
            continue
        tail = one.old[head:]
        by = len(one.new) - len(one.old)
        start = heads[0]
        if any(a < start for a, _ in spots):
            return None
        base = [*one.old[:start], *tail, "", *one.old[start:head]]
        right = [*one.old[:start], *tail, "", *one.new[start : head + by]]
        if any(times(base, o) != 1 for o, _ in sides):
            return None
        reply = (
            udiff(one, sides, rng, "numbers")
            if form == "udiff"
            else search_replace(one, sides, rng)
        )
        return Case(form, "moved", one.path, base, reply, right)
    return None


def whole(one: Change, style: str, rng: random.Random) -> Case:
    """Return a reply that writes the whole new file."""
    info = "python" if one.path.endswith(".py") else "lua"
    sign = "#" if info == "python" else "--"
    text = "\n".join(one.new).rstrip("\n")
    base, right = one.old, one.new
    head, inside, file = heading(one.path, rng) + "\n", "", ""
    if style == "info":
        head, info = "", f"{info} {one.path}" if rng.random() < 0.5 else f"{info}:{one.path}"
    elif style == "comment":
        head, inside = "", f"{sign} {one.path}\n"
    elif style == "file":
        head, file = "The new file:\n\n", one.path
    elif style == "crlf":
        text = text.replace("\n", "\r\n")
    elif style == "think":
        head = "<think>\nPerhaps:\n```python\nprint(1)\n```\n</think>\n" + head
    elif style == "shown":
        end = f"\n```bash\npython {one.path}\n```\n"
        body = f"{head}```{info}\n{text}\n```\nThen run it:\n{end}"
        return Case("whole", style, one.path, base, body, right)
    elif style == "cut":
        rows = text.split("\n")
        text = "\n".join(rows[: len(rows) * 2 // 3])
        return Case("whole", style, one.path, base, f"{head}```{info}\n{text}\n", None)
    return Case(
        "whole", style, one.path, base, f"{head}```{info}\n{inside}{text}\n```\n", right, file=file
    )


def functions(one: Change) -> Iterator[tuple[str, int, int, int, int, bool]]:
    """Yield the functions that contain all hunks: name, old rows, new rows, and if in a class."""
    try:
        trees = [ast.parse("\n".join(lines)) for lines in (one.old, one.new)]
    except SyntaxError:
        return
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes: list[dict[str, list[tuple[int, int, bool]]]] = []
    for tree in trees:
        found: dict[str, list[tuple[int, int, bool]]] = {}
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, kinds):
                    first = min([child.lineno, *(d.lineno for d in child.decorator_list)]) - 1
                    is_in = isinstance(node, ast.ClassDef)
                    found.setdefault(child.name, []).append((first, child.end_lineno or 0, is_in))
        nodes.append(found)
    for name, places in nodes[0].items():
        others = nodes[1].get(name, [])
        if len(places) == len(others) == 1:
            (a, b, is_in), (c, d, _) = places[0], others[0]
            if all(a <= s[0] and s[1] <= b and c <= s[2] and s[3] <= d for s in one.spans):
                yield name, a, b, c, d, is_in


def function(one: Change, style: str, rng: random.Random) -> Case | None:
    """Return a reply that writes one function only."""
    for _, a, b, c, d, is_in in functions(one):
        body = one.new[c:d]
        if is_in != (style in {"method", "class"}) and style != "doubled":
            continue
        if d - c < (b - a) * 0.6:
            continue
        if style == "class":
            head = next((r for r in range(a, -1, -1) if one.old[r].startswith("class ")), -1)
            if head < 0 or not one.old[head].rstrip().endswith(":"):
                return None
            gap = "    # ... existing code ..."
            body = [one.old[head], gap, "", *body, "", gap]
        elif style == "method":
            least = len(body[0]) - len(body[0].lstrip())
            body = [x[least:] for x in body]
        base, right = one.old, one.new
        if style == "doubled":
            copy = [*one.old[a:b]]
            base, right = [*one.old, "", "", *copy], None  # type: ignore[assignment]
        text = "\n".join(body)
        reply = f"Change it so:\n\n{heading(one.path, rng)}\n```python\n{text}\n```\n"
        return Case("part", style, one.path, base, reply, right)
    return None


def lazy(one: Change, style: str, rng: random.Random) -> Case | None:
    """Return a reply that elides unchanged code with comments."""
    sign = "#" if one.path.endswith(".py") else "--"
    word = rng.choice(("existing code", "rest of the code", "existing code", "unchanged"))
    context = rng.choice((2, 3, 4))
    parts = pieces(one, context)
    out: list[str] = []
    row = 0
    is_unique = all(s[1] - s[0] <= s[3] - s[2] for s in one.spans)
    for old, new, span in parts:
        if any(not x for x in (old, new)) or not (old[0].strip() and old[-1].strip()):
            return None
        if span[0] > row:
            indent = old[0][: len(old[0]) - len(old[0].lstrip())]
            out.append(f"{indent}{sign} ... {word} ...")
            is_unique = is_unique and times(one.old, [old[0]]) == 1 and says_enough(old[:1])
        if span[1] < len(one.old):
            is_unique = is_unique and times(one.old, [old[-1]]) == 1 and says_enough(old[-1:])
        is_unique = is_unique and old[0] == new[0] and old[-1] == new[-1]
        out += new
        row = span[1]
    if row < len(one.old):
        out.append(f"{sign} ... {word} ...")
    right: list[str] | None = one.new
    if style == "unheld":  # the lines around one omission are not in the file
        marks = [r for r, x in enumerate(out) if "..." in x and 0 < r < len(out) - 1]
        if not marks:
            return None
        out[marks[0] + 1] = out[marks[0] + 1] + "_other"
        out[marks[0] - 1] = out[marks[0] - 1] + "_other"
        right = None
    text = "\n".join(out)
    info = "python" if sign == "#" else "lua"
    reply = f"{heading(one.path, rng)}\n```{info}\n{text}\n```\n"
    return Case("lazy", style, one.path, one.old, reply, right, is_unique)


def makers() -> Iterator[tuple[str, Callable[[Change, random.Random], Case | None]]]:
    """Yield every combination of form and mangling."""
    for form in ("search_replace", "udiff", "patch"):
        for name in MANGLES:
            yield f"{form} {name}", lambda one, rng, f=form, n=name: spelled(one, f, n, rng)  # type: ignore[misc]
        for kind in ("stale_line", "stale_more", "stale_changed"):
            if form != "udiff":
                yield f"{form} {kind}", lambda one, rng, f=form, k=kind: stale(one, f, k, rng)  # type: ignore[misc]
        yield f"{form} doubled", lambda one, rng, f=form: doubled(one, f, rng)  # type: ignore[misc]
        if form != "patch":
            yield f"{form} moved", lambda one, rng, f=form: moved(one, f, rng)  # type: ignore[misc]
    for style in (
        "numbers",
        "no_numbers",
        "wrong_numbers",
        "wrong_counts",
        "no_marks",
        "bare_blanks",
    ):
        yield f"udiff {style}", lambda one, rng, s=style: spelled(one, "udiff", s, rng)  # type: ignore[misc]
    for style in ("heading", "info", "comment", "file", "crlf", "think", "shown", "cut"):
        yield f"whole {style}", lambda one, rng, s=style: whole(one, s, rng)  # type: ignore[misc]
    for style in ("function", "method", "class", "doubled"):
        yield f"part {style}", lambda one, rng, s=style: function(one, s, rng)  # type: ignore[misc]
    for style in ("held", "unheld"):
        yield f"lazy {style}", lambda one, rng, s=style: lazy(one, s, rng)  # type: ignore[misc]


def edits(old: list[str], new: list[str]) -> list[list[Any]]:
    """Return the edits from old to new: first row, end row, new lines."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [[a, b, new[c:d]] for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]


def main(folder: Path) -> None:
    """Write `bases.jsonl` and `made.jsonl`."""
    known = changes()
    bases: dict[str, str] = {}
    rows: list[dict[str, Any]] = []
    for number, (name, make) in enumerate(makers()):
        rng = random.Random(f"{SEED} {name}")
        count = 0
        start = number * 7 % len(known)
        for one in [*known[start:], *known[:start]]:
            case = make(one, rng)
            if case is None or count >= EACH:
                continue
            count += 1
            key = hashlib.sha256("\n".join(case.base).encode()).hexdigest()[:12]
            bases[key] = "\n".join(case.base)
            right = None if case.right is None else {case.path: edits(case.base, case.right)}
            rows.append(
                {
                    "id": f"{case.form}-{case.mangled}-{count}",
                    "from": f"{one.commit}:{one.path}",
                    "form": case.form,
                    "mangled": case.mangled,
                    "files": {case.path: key},
                    "current": "",
                    "file": case.file,
                    "reply": case.reply,
                    "right": right,
                    "is_unique": case.is_unique,
                }
            )
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "bases.jsonl").open("w", encoding="utf-8") as file:
        for key, text in sorted(bases.items()):
            file.write(json.dumps({"key": key, "text": text}, ensure_ascii=False) + "\n")
    with (folder / "made.jsonl").open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{len(rows)} replies, {len(bases)} texts, from {len(known)} changes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
