"""Parse the code in a reply: the single fence of a rewrite, or the blocks of any reply. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal

from lcursor.changes import fences
from lcursor.changes.apply import elision, patches, splice
from lcursor.changes.apply.blocks import Block
from lcursor.changes.lines import has_text, trim
from lcursor.changes.records import Lines
from lcursor.code import grammars, languages
from lcursor.errors import ReplyUnusable
from lcursor.llm.records import Text
from lcursor.llm.streaming import TAGS, ReasoningSplitter

BARE: Final = frozenset(
    ["python", "lua", "javascript", "typescript", "tsx", "go", "rust", "java", "c", "cpp", "csharp"]
)
"""Languages in which English sentences do not parse, so that unfenced code is recognized."""
BOM: Final = "\ufeff"
NEAR_LINES: Final = 3
"""Number of lines above a fence that may contain its path."""


class RegionReader:
    """Reads the single fence of a reply as it streams.

    Lines of the base, the region, never count as elision markers; markers are replaced by them.
    """

    def __init__(self, language: str, base: Sequence[str] = ()) -> None:
        self._language = language
        self._base = tuple(base)
        self._rest = ""
        self._fence: fences.Fence | None = None
        self._state: Literal["before", "inside", "after"] = "before"
        self._is_thinking = False
        self._prose: list[str] = []
        self._found: list[list[str]] = []
        self._infos: list[str] = []

    @property
    def is_closed(self) -> bool:
        """Whether the fence has ended, so that the rest of the reply is not needed."""
        return self._state == "after"

    @property
    def note(self) -> str:
        """The text outside of the code."""
        return "\n".join(self._prose).strip()

    def feed(self, text: str) -> Lines:
        """Return the lines of code that the next part of the reply completes."""
        *whole, self._rest = (self._rest + text).split("\n")
        return tuple(
            made for line in whole if (made := self._line(line.removesuffix("\r"))) is not None
        )

    def finish(self, is_cut: bool = False) -> Lines:
        """Return all lines of code, or raise `ReplyUnusable`; `is_cut`: the reply hit its limit."""
        if self._rest:
            self._line(self._rest.removesuffix("\r"))
            self._rest = ""
        if not self._found:
            return self._without_fence(is_cut)
        if self._state == "inside":
            last = self._found[-1]
            if not is_cut and last and last[-1].rstrip().endswith(("```", "~~~")):
                last[-1] = last[-1].rstrip().rstrip("`~")
                self._state = "after"
            else:
                raise ReplyUnusable("cut", "The answer was cut off before its code ended")
        first = tuple(self._found[0])
        if any(tuple(other) != first for other in self._found[1:]):
            raise ReplyUnusable(
                "fences", f"The answer has {len(self._found)} pieces of code that differ, not one"
            )
        self._require_plain_code()
        if not any(line.strip() for line in first) and any(line.strip() for line in self._base):
            raise ReplyUnusable("empty", "The code of the answer is empty")
        return self._filled(first)

    def _line(self, line: str) -> str | None:
        """Read a line; return it if it belongs to the first block of code."""
        if self._fence is not None:
            if self._fence.is_end(line):
                self._fence, self._state = None, "after"
                return None
            bare = self._fence.unindent(line)
            self._found[-1].append(bare)
            return bare if len(self._found) == 1 else None
        if self._is_reasoning(line):
            return None
        self._fence = fences.opening(line)
        if self._fence:
            self._state = "inside"
            self._found.append([])
            self._infos.append(self._fence.info)
        else:
            self._prose.append(line)
        return None

    def _is_reasoning(self, line: str) -> bool:
        """Return whether a line outside of code is part of the model's reasoning."""
        bare = line.strip()
        if self._is_thinking:
            self._is_thinking = not any(end in line for _, end in TAGS)
            return True
        if any(bare.startswith(start) for start, _ in TAGS):
            self._is_thinking = not any(end in bare for _, end in TAGS)
            return True
        if any(bare == end for _, end in TAGS) and not self._found:
            self._prose.clear()  # the reasoning started in the prompt
            return True
        return False

    def _without_fence(self, is_cut: bool) -> Lines:
        """Return unfenced code, if it is recognizable."""
        first, last = trim(self._prose, 0, len(self._prose))
        lines = tuple(self._prose[first:last])
        if not lines:
            raise ReplyUnusable("empty", "The answer is empty")
        if is_cut:
            raise ReplyUnusable("cut", "The answer was cut off before its code began")
        if self._language not in BARE or not _is_program(self._language, lines):
            raise ReplyUnusable("prose", "The answer has no code in a fence")
        self._prose.clear()
        return self._filled(lines)

    def _require_plain_code(self) -> None:
        info = self._infos[0]
        named, _, _ = fences.from_info(info)
        first = tuple(self._found[0])
        if named == "diff" != self._language or (
            patches.read(first) is not None and patches.read(self._base) is None
        ):
            raise ReplyUnusable("form", "The answer is a diff, not the new text")
        if not fences.are_related(named, self._language):
            raise ReplyUnusable(
                "language", f"The answer is {named}, and the file is {self._language}"
            )

    def _filled(self, lines: Lines) -> Lines:
        if not elision.markers(lines, self._language, self._base):
            return lines
        merged = splice.merge_elided(self._base, lines, self._language) if self._base else None
        if merged is None:
            raise ReplyUnusable("lazy", "The answer leaves out a part of the code")
        return merged


def _is_program(language: str, lines: Lines) -> bool:
    """Return whether lines contain only code."""
    text = "\n".join(lines)
    if not any(mark in text for mark in "([{="):
        return False
    root = grammars.parse(language, text.encode("utf-8", "surrogateescape"))
    return root is not None and not root.has_error


def blocks(text: str, file: str = "") -> tuple[Block, ...]:
    """Return the changes in a whole reply, or in one fenced block of code.

    `file` is the path for blocks without one.
    """
    lines = _visible_lines(text)
    parsed: list[Block] = []
    prose: list[str] = []
    row = 0
    before = Block("fence")  # consecutive blocks often belong to one file
    while row < len(lines):
        bare = patches.bare_at(lines, row)
        if bare:
            stop, made = bare
            parsed += (_named(one, prose, before, file) for one in made)
            before = parsed[-1] if parsed else before
            prose.clear()
            row = stop
            continue
        fence = fences.opening(lines[row])
        if fence is None:
            prose.append(lines[row])
            row += 1
            continue
        stop, body, is_closed = fence_body(lines, row, fence)
        others = _has_bare_fence(lines[stop:])
        made = _of_fence(fence, body, is_closed, is_odd=others)
        parsed += (_named(one, prose, before, file) for one in made)
        before = parsed[-1] if parsed else before
        prose.clear()
        row = stop
    return tuple(parsed)


def _visible_lines(text: str) -> list[str]:
    """Return the lines of a reply without the model's reasoning."""
    thinking = ReasoningSplitter()
    parts = [*thinking.feed(text.lstrip(BOM)), *thinking.finish()]
    reply = "".join(part.text for part in parts if isinstance(part, Text))
    for _, end in TAGS:
        head, found, rest = reply.partition(f"\n{end}\n")
        if found and head.count("```") % 2 == 0:  # the reasoning started in the prompt
            reply = rest
    return [line.removesuffix("\r") for line in reply.split("\n")]


def fence_body(lines: Sequence[str], row: int, fence: fences.Fence) -> tuple[int, list[str], bool]:
    """Return the row after a fence, its content, and whether it ended."""
    body: list[str] = []
    at = row + 1
    while at < len(lines):
        bare = fence.unindent(lines[at])
        end = patches.pair_end(lines, at) if patches.begins_pair(bare) else 0
        if end:  # quoted lines may contain fences
            body += (fence.unindent(line) for line in lines[at:end])
            at = end
            continue
        if fence.is_end(lines[at]):
            return at + 1, body, True
        body.append(bare)
        at += 1
    if body and body[-1].rstrip().endswith(fence.marks):
        body[-1] = body[-1].rstrip().removesuffix(fence.marks)
        return at, body, True
    while body and not body[-1].strip():
        body.pop()
    return at, body, False


def _has_bare_fence(lines: Sequence[str]) -> bool:
    """Return whether a fence without a language starts further down."""
    fence: fences.Fence | None = None
    for line in lines:
        if fence is not None:
            fence = None if fence.is_end(line) else fence
            continue
        fence = fences.opening(line)
        if fence is not None and not fence.info:
            return True
    return False


def _of_fence(
    fence: fences.Fence, body: list[str], is_closed: bool, *, is_odd: bool
) -> tuple[Block, ...]:
    language, path, text = fences.from_info(fence.info)
    texts = [text]
    patched = patches.read(body, language)
    if patched is not None:
        return tuple(
            replace(
                one,
                path=one.path or path,
                texts=one.texts or (() if one.path else _possible(texts)),
                is_closed=one.is_closed and is_closed,
            )
            for one in patched
        )
    heading = ""
    if body and not path:
        texts.append(fences.comment_text(body[0]))
    if body and (named := fences.path_in_comment(body[0])):
        if not path:
            path, heading = named, body[0]
        elif named == path:
            heading = body[0]
    lines = tuple(body)
    known = languages.detect(path) if path else languages.TEXT
    language = language or ("" if known == languages.TEXT else known)
    problem = ""
    if is_odd and "markdown" in (language, known) and len(fence.marks) == 3:
        problem = "its end cannot be distinguished from fences in it"
    return (
        Block(
            "fence",
            path,
            language,
            lines,
            heading=heading,
            texts=_possible(texts),
            is_elided=bool(elision.markers(lines, language)),
            is_closed=is_closed,
            problem=problem,
        ),
    )


def _named(block: Block, prose: Sequence[str], before: Block, file: str) -> Block:
    """Return a block without a path with the path that is named above it."""
    if block.path:
        return block
    near = [line for line in prose if has_text(line)][-NEAR_LINES:]
    is_pair = block.form == "search_replace"
    if is_pair and not near:
        block = replace(block, texts=block.texts or before.texts)
    headings = [path for line in reversed(near) if (path := fences.path_in_heading(line))]
    is_next = is_pair and before.path
    sure = [*headings[:1], *([before.path] if is_next and not near else []), file]
    for path in filter(None, sure):
        return replace(block, path=path) if _is_of(block, path) else block
    above = _possible(map(fences.heading_text, near[-1:]))
    block = replace(block, texts=(*block.texts, *above))
    mentioned = [path for line in reversed(near) if (path := fences.path_in_sentence(line))]
    for path in [*([before.path] if is_next else []), *mentioned[:1]]:
        return replace(block, path=path, is_path_sure=False) if _is_of(block, path) else block
    return block


def _possible(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(fences.may_be_path, texts))


def _is_of(block: Block, path: str) -> bool:
    """Return whether a block may belong to a file; shell commands do not belong to a program."""
    return fences.are_related(block.language, languages.detect(path))
