"""How often the search finds the function that a sentence asks for, on CoSQA.

Each function of the data set becomes a file of an index of its own, in a folder that is thrown
away; its vectors are kept in the user's cache, so that a second run takes seconds. Judges what a
user gets: store, words, vectors and rules are the product's.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from lcursor.errors import LcursorError
from lcursor.index.records import Chunk, FileState, Mode, Parsed, Symbol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lcursor.index.embed import Embedder
    from lcursor.index.search import Searcher

CODES = "code_idx_map.txt"
QUESTIONS = "cosqa-retrieval-dev-500.json"
MODES: tuple[Mode, ...] = get_args(Mode)
LIMIT = 100
"""Hits that are asked for; an answer further down counts as not found."""
BATCH = 64
"""Texts that are embedded between two words about how far it is."""

_DOCSTRING = re.compile(r"(:[ \t]*(?:#.*)?\n\s*)[rRuUbB]{0,2}(\"\"\"|'''|\"|')(?:.|\n)*?\2")
_NAME = re.compile(r"\b(?:def|class)\s+(\w+)")


@dataclass(frozen=True, slots=True)
class Question:
    """A sentence, and which function answers it."""

    text: str
    answer: int
    """Its number in the corpus."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is searched, and what is asked."""

    codes: tuple[str, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Scores:
    """What the ranks of the answers come to."""

    questions: int
    mrr: float
    ndcg10: float
    recall1: float
    recall10: float


def load(folder: Path, n: int = 0) -> Corpus:
    """Read the data set.

    Args:
        folder: has `code_idx_map.txt` and `cosqa-retrieval-dev-500.json`.
        n: how many questions, the first ones; 0 for all.

    Raises:
        LcursorError: a file is missing, or is something else.
    """
    try:
        numbers = json.loads((folder / CODES).read_text(encoding="utf-8"))
        asked = json.loads((folder / QUESTIONS).read_text(encoding="utf-8"))
        codes = tuple(sorted(numbers, key=numbers.__getitem__))
        questions = tuple(Question(each["doc"], each["retrieval_idx"]) for each in asked)
        if [numbers[code] for code in codes] != list(range(len(codes))) or any(
            not 0 <= each.answer < len(codes) for each in questions
        ):
            raise ValueError("its numbers do not fit together")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise LcursorError(
            f"{folder} does not hold the CoSQA data ({e})",
            f"Name with --data the folder that has {CODES} and {QUESTIONS}",
        ) from e
    return Corpus(codes, questions[: n or None])


def without_docstring(code: str) -> str:
    """Return a function without its docstring; what does not parse goes by what it looks like."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return _DOCSTRING.sub(r"\1", code, count=1)
    lines = code.encode().splitlines(keepends=True)
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            if isinstance(first.value.value, str) and first.end_lineno and first.end_col_offset:
                head = lines[first.lineno - 1][: first.col_offset]
                tail = lines[first.end_lineno - 1][first.end_col_offset :]
                lines[first.lineno - 1 : first.end_lineno] = [head + tail]
            break
    return b"".join(lines).decode()


def parsed(code: str) -> Parsed:
    """Return a function as the one chunk of a file."""
    rows = code.count("\n") + 1
    name = _NAME.search(code)
    digest = hashlib.sha256(code.encode("utf-8", "surrogatepass")).digest()[:16]
    return Parsed(
        "python",
        [Chunk(0, rows, code, "", "code", digest)],
        [Symbol(name[1], "function", 0, rows, "")] if name else [],
    )


def path_of(number: int) -> str:
    """Return the path of a function; it says nothing about what is in it."""
    return f"{number:05d}.py"


def entries(codes: Sequence[str]) -> Iterator[tuple[str, FileState, Parsed]]:
    """Yield what a store takes."""
    for number, code in enumerate(codes):
        found = parsed(code)
        yield path_of(number), FileState(len(code), number, found.chunks[0].digest), found


@contextmanager
def built(
    codes: Sequence[str],
    folder: Path,
    embedder: Embedder | None,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> Iterator[Searcher]:
    """Index the functions in a folder, as long as they are searched.

    Args:
        codes: the functions.
        folder: empty.
        embedder: None where no vectors are asked for.
        tell: called with how many of how many new vectors are there.
    """
    from lcursor.index.search import Searcher
    from lcursor.index.store import Store
    from lcursor.index.vector_index import VectorIndex

    with closing(Store(folder)) as store:
        store.put_many(entries(codes))
        with closing(store.reader()) as reader:
            if embedder is None:
                yield Searcher(reader)
                return
            found = embedded(codes, embedder, tell)
            with closing(VectorIndex(None, embedder.dim)) as vectors:
                vectors.add(reader.digests(reader.chunk_ids().tolist()), found)
                yield Searcher(reader, vectors, embedder)


def embedded(
    codes: Sequence[str], embedder: Embedder, tell: Callable[[int, int], None]
) -> dict[bytes, NDArray[np.float16]]:
    """Return the vectors of functions by digest, those that are in the user's cache from there."""
    import numpy as np

    from lcursor.index.vector_store import VectorStore

    with closing(VectorStore(None, embedder.name)) as cache:
        by_digest = {parsed(code).chunks[0].digest: code for code in codes}
        found = cache.get(by_digest)
        # By length, so that the texts of a batch have about one.
        missing = sorted(by_digest.keys() - found.keys(), key=lambda each: len(by_digest[each]))
        for at in range(0, len(missing), BATCH):
            some = missing[at : at + BATCH]
            made = embedder.texts([by_digest[digest] for digest in some]).astype(np.float16)
            pairs = list(zip(some, made, strict=True))
            cache.put(pairs)
            found.update(pairs)
            tell(min(at + BATCH, len(missing)), len(missing))
    return found


def ranks(
    searcher: Searcher,
    questions: Sequence[Question],
    mode: Mode,
    *,
    has_rules: bool = True,
) -> Iterator[int]:
    """Yield the rank of each answer, from 1; 0 where it was not found."""
    for question in questions:
        hits = searcher.search(question.text, limit=LIMIT, mode=mode, has_rules=has_rules)
        paths = [hit.path for hit in hits]
        wanted = path_of(question.answer)
        yield paths.index(wanted) + 1 if wanted in paths else 0


def scores(found: Sequence[int]) -> Scores:
    """Return what ranks come to; there is one right answer to each question."""
    count = max(1, len(found))
    return Scores(
        len(found),
        sum(1 / rank for rank in found if rank) / count,
        sum(1 / math.log2(1 + rank) for rank in found if 0 < rank <= 10) / count,
        sum(rank == 1 for rank in found) / count,
        sum(0 < rank <= 10 for rank in found) / count,
    )


def table_of(*, has_docstrings: bool, has_rules: bool) -> str:
    """Return the name of the table that a run belongs to; "modes" is what a user gets."""
    if has_docstrings:
        return "modes" if has_rules else "without_rules"
    return "without_docstrings" if has_rules else "without_both"


def measure(
    corpus: Corpus,
    modes: Sequence[Mode],
    name: str = "",
    threads: int = 1,
    *,
    everything: bool = True,
    tell: Callable[[str], None] = lambda text: None,
) -> tuple[str, dict[str, dict[str, Scores]]]:
    """Ask all questions in all ways.

    Args:
        corpus: what is searched and asked.
        modes: which legs, in this order.
        name: of the embedder; the default one where none is given.
        threads: that embed.
        everything: without docstrings and without rules too.
        tell: called with how far it is, in words.

    Returns:
        The embedder that was used, "none" where no vectors were asked for; and the scores by table
        (`search_report.TABLES`) and mode.
    """
    from lcursor.index.embed import Embedder
    from lcursor.index.embedders import DEFAULT, find

    embedder = None
    if {*modes} - {"lexical"}:
        embedder = Embedder(find(name or DEFAULT), threads=threads)
    tables: dict[str, dict[str, Scores]] = {}
    for has_docstrings in (True, False) if everything else (True,):
        codes = corpus.codes if has_docstrings else [without_docstring(c) for c in corpus.codes]

        def told(done: int, of: int, what: str = "with" if has_docstrings else "without") -> None:
            tell(f"{done:,} of {of:,} functions {what} docstrings embedded")

        with (
            tempfile.TemporaryDirectory(prefix="lcursor-eval-") as folder,
            built(codes, Path(folder), embedder, told) as searcher,
        ):
            for has_rules in (True, False) if everything else (True,):
                table = table_of(has_docstrings=has_docstrings, has_rules=has_rules)
                for mode in modes:
                    found = list(ranks(searcher, corpus.questions, mode, has_rules=has_rules))
                    tables.setdefault(table, {})[mode] = scores(found)
                    tell(f"{table}, {mode}: MRR {tables[table][mode].mrr:.3f}")
    return embedder.name if embedder else "none", tables
