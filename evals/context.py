"""Whether other files in the prompt help: calls of what another file defines, with it and without.

Runs the engine in this process, on this thread. The context is what the product would have when the
person had looked at the definition: the ring, filled as the editor fills it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from evals.calls import Call, Kind, Module
from evals.fim import first_line
from lcursor.code.headers import header_lines
from lcursor.fim.chunks import Chunk
from lcursor.fim.context_ring import AROUND_LINES, ContextRing, Query
from lcursor.fim.prompt import File, Source

if TYPE_CHECKING:
    from lcursor.fim.engine import Result

FilesOf = Callable[[Call, int, Callable[[str], int]], tuple[File, ...]]
"""Returns the slots for a cut, within so many tokens, by a count of them."""
MAX_IMPORTS = 8
"""Imported files whose headers the editor sends."""


class Tokenizes(Protocol):
    """The part of a model that counts."""

    def tokenize(self, text: str) -> list[int]:
        """Return the tokens of a text."""


class Shows(Protocol):
    """What lays out prompts.

    Attributes:
        files: the slots of its next prompts.
        files_tokens: most tokens of them and of the file's own top.
    """

    files: tuple[File, ...]
    files_tokens: int


class Sees(Protocol):
    """An engine that is shown other files."""

    @property
    def reader(self) -> Shows:
        """What lays out its prompts."""

    @property
    def model(self) -> Tokenizes:
        """Its model."""

    def complete(
        self,
        source: Source,
        on_text: Callable[[str], None],
        *,
        single_line: bool = False,
        bypass_cache: bool = False,
    ) -> Result:
        """Complete, as `lcursor.fim.engine.Engine` does."""


@dataclass(frozen=True, slots=True)
class Pair:
    """What was written at one cut without other files, and with them."""

    kind: Kind
    path: str
    callee: str
    rest: str
    without: str
    with_files: str
    without_exact: bool
    with_exact: bool
    without_word: bool
    """The first word is right: the rest of the callee's name, or how the first argument begins."""
    with_word: bool
    has_callee: bool
    """Whether the name of the callee, and so its signature, was among the files shown."""
    read_tokens: int
    """With the files, what of the prompt was not in the cache."""


def pairs(
    engine: Sees,
    modules: Mapping[str, Module],
    calls: Sequence[Call],
    repo: str,
    tokens: int,
    files_of: FilesOf | None = None,
) -> Iterator[Pair]:
    """Complete at each cut twice: without other files, then with them.

    Args:
        engine: what completes.
        modules: the repository.
        calls: the cuts.
        repo: name of the repository, as the model shall see it.
        tokens: most tokens of other files, for the second time.
        files_of: chooses those files; `files_for` by default.
    """
    chosen = files_of or partial(files_for, modules)
    for call in calls:
        engine.reader.files, engine.reader.files_tokens = (), 0
        plain, _ = _text(engine, call, repo)
        engine.reader.files_tokens = tokens
        engine.reader.files = chosen(call, tokens, lambda text: len(engine.model.tokenize(text)))
        text, read_tokens = _text(engine, call, repo)
        yield Pair(
            kind=call.kind,
            path=call.path,
            callee=call.callee,
            rest=call.rest,
            without=plain,
            with_files=text,
            without_exact=_is_exact(plain, call),
            with_exact=_is_exact(text, call),
            without_word=_first_word(plain) == _first_word(call.rest),
            with_word=_first_word(text) == _first_word(call.rest),
            has_callee=any(f" {call.callee}" in file.text for file in engine.reader.files),
            read_tokens=read_tokens,
        )


def files_for(
    modules: Mapping[str, Module], call: Call, tokens: int, count: Callable[[str], int]
) -> tuple[File, ...]:
    """Return the slots of someone who has looked at the definition, and then came back here."""
    ring = ContextRing()
    ring.add(_visited(modules[call.defined_in], call.callee))
    for path, symbols in list(modules[call.path].imports.items())[:MAX_IMPORTS]:
        ring.add(Chunk(path, 0, header_lines(path, modules[path].text, symbols), "import"))
    while ring.admit():
        pass
    return ring.layout(Query(call.path, call.prefix, call.suffix), tokens, count)


def _visited(module: Module, name: str) -> Chunk:
    """Return what the editor sends when the cursor is at a definition."""
    lines = module.text.split("\n")
    first = max(0, module.rows[name] - AROUND_LINES)
    text = "\n".join(lines[first : first + 2 * AROUND_LINES])
    return Chunk(module.path, first, text, "visited")


def _text(engine: Sees, call: Call, repo: str) -> tuple[str, int]:
    source = Source(call.prefix, call.suffix, 0, call.path, repo)
    result = engine.complete(source, lambda text: None, single_line=True, bypass_cache=True)
    return result.text, result.read_tokens


def _first_word(text: str) -> str:
    match = re.match(r"\W*\w+", text)
    return match[0].lstrip() if match else ""


def _is_exact(text: str, call: Call) -> bool:
    return bool(text) and first_line(text) == first_line(call.rest)
