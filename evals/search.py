"""`eval search`: how often the search finds the function that a sentence asks for, on CoSQA.

Each function of the data set becomes a file in a temporary index. Its vectors are kept in the
user's cache, so that a second run takes seconds. Store, search and ranking are the product's.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from bench.report import Json, emit, head, progress, run_facts, table
from evals import run
from evals.indexing import temporary_index
from lcursor.errors import LcursorError
from lcursor.index.embed import DEFAULT, Embedder, find
from lcursor.index.records import Chunk, FileState, Mode, Parsed, Symbol
from lcursor.index.search import Searcher

CODES = "code_idx_map.txt"
QUESTIONS = "cosqa-retrieval-dev-500.json"
MODES: tuple[Mode, ...] = get_args(Mode)
LIMIT = 100
"""Hits requested; an answer further down counts as not found."""

TABLES = {
    "modes": "docstrings and rules",
    "without_rules": "docstrings, no rules",
    "without_docstrings": "no docstrings, rules",
    "without_both": "neither",
}

_DOCSTRING = re.compile(r"(:[ \t]*(?:#.*)?\n\s*)[rRuUbB]{0,2}(\"\"\"|'''|\"|')(?:.|\n)*?\2")
_NAME = re.compile(r"\b(?:def|class)\s+(\w+)")


@dataclass(frozen=True, slots=True)
class Question:
    """A sentence and the function that answers it."""

    text: str
    answer: int
    """Its number in the corpus."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """The functions searched and the questions asked."""

    codes: tuple[str, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Scores:
    """Quality figures of some ranks."""

    questions: int
    mrr: float
    ndcg10: float
    recall1: float
    recall10: float


def command(
    data: Annotated[Path, typer.Option(help="The folder of CoSQA.", show_default=False)],
    n: Annotated[int, typer.Option("--n", min=0, help="Questions; 0 for all.")] = 0,
    modes: Annotated[
        str, typer.Option(help="lexical, vector, hybrid; several separated by commas.")
    ] = ",".join(MODES),
    embedder: run.Embedder = "",
    threads: run.Threads = 2,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only with docstrings and ranking rules.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find the function that a sentence asks for, among 6,000 of CoSQA: MRR, NDCG, recall.

    With docstrings and without, with the ranking rules and without. The first run embeds for some
    minutes; the vectors stay in the user's cache.
    """
    wanted = run.chosen(modes, MODES, "modes")
    corpus = load(data, n)
    facts = run_facts(functions=len(corpus.codes))
    facts["embedder"], tables = measure(
        corpus, wanted, embedder, threads, everything=not quick, report=progress
    )
    document = as_dict(tables, facts)
    emit(document, as_markdown(document), as_json)


def load(folder: Path, n: int = 0) -> Corpus:
    """Read the data set.

    Args:
        folder: has `code_idx_map.txt` and `cosqa-retrieval-dev-500.json`.
        n: the number of questions; 0 for all.

    Raises:
        LcursorError: a file is missing or malformed.
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
    """Return a function without its docstring; uses a regular expression if it does not parse."""
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
    """Return the path of a function, which tells nothing about its content."""
    return f"{number:05d}.py"


def entries(codes: Sequence[str]) -> Iterator[tuple[str, FileState, Parsed]]:
    """Yield the functions as files for a store."""
    for number, code in enumerate(codes):
        found = parsed(code)
        yield path_of(number), FileState(len(code), number, found.chunks[0].digest), found


def ranks(
    searcher: Searcher,
    questions: Sequence[Question],
    mode: Mode,
    *,
    has_rules: bool = True,
) -> Iterator[int]:
    """Yield the rank of each answer, from 1; 0 if it was not found."""
    for question in questions:
        hits = searcher.search(question.text, limit=LIMIT, mode=mode, has_rules=has_rules)
        paths = [hit.path for hit in hits]
        wanted = path_of(question.answer)
        yield paths.index(wanted) + 1 if wanted in paths else 0


def scores(found: Sequence[int]) -> Scores:
    """Return the figures of ranks; each question has one right answer."""
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
    report: Callable[[str], None] = lambda text: None,
) -> tuple[str, dict[str, dict[str, Scores]]]:
    """Ask all questions in all modes.

    Args:
        corpus: functions and questions.
        modes: in this order.
        name: of the embedder; "" for the default one.
        threads: that embed.
        everything: also without docstrings and without ranking rules.
        report: called with progress lines.

    Returns:
        The name of the embedder, "none" for lexical search alone; and the scores by table (see
        `TABLES`) and mode.
    """
    embedder = None
    if {*modes} - {"lexical"}:
        embedder = Embedder(find(name or DEFAULT), threads=threads)
    tables: dict[str, dict[str, Scores]] = {}
    for has_docstrings in (True, False) if everything else (True,):
        codes = corpus.codes if has_docstrings else [without_docstring(c) for c in corpus.codes]

        def on_progress(made: int, wanted: int, with_: bool = has_docstrings) -> None:
            what = "with" if with_ else "without"
            report(f"{made:,} of {wanted:,} functions {what} docstrings embedded")

        index = temporary_index(entries(codes), embedder, on_progress, lambda _, one: one.text)
        with index as searcher:
            for has_rules in (True, False) if everything else (True,):
                table = table_of(has_docstrings=has_docstrings, has_rules=has_rules)
                for mode in modes:
                    found = list(ranks(searcher, corpus.questions, mode, has_rules=has_rules))
                    tables.setdefault(table, {})[mode] = scores(found)
                    report(f"{table}, {mode}: MRR {tables[table][mode].mrr:.3f}")
    return embedder.name if embedder else "none", tables


def as_dict(found: Mapping[str, Mapping[str, Scores]], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report as JSON: scores by table and mode."""
    rows = {
        name: {mode: asdict(each) for mode, each in modes.items()} for name, modes in found.items()
    }
    return {**facts, **rows}


def as_markdown(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of the report."""
    title = f"Embedder: {document['embedder']}; {document['functions']:,} functions"
    rows = [
        (
            label,
            mode,
            row["questions"],
            *(f"{row[each]:.3f}" for each in ("mrr", "ndcg10", "recall1", "recall10")),
        )
        for name, label in TABLES.items()
        for mode, row in document.get(name, {}).items()
    ]
    columns = ["", "mode", "n:", "MRR:", "NDCG@10:", "recall@1:", "recall@10:"]
    return [*head(document, title), *table(columns, rows)]
