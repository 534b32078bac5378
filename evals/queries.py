"""`eval queries`: how often the search finds the answers to questions written by hand.

The questions are about this project, about four packages of Python's standard library, and about
other repositories, if there are clones. Each is indexed in a temporary folder; vectors are kept in
the user's cache. Tests and documents are indexed too, the questions are not.
"""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bench.report import Json, emit, head, progress, run_facts, table
from evals import run
from evals.indexing import temporary_index
from evals.search import MODES, scores
from lcursor.drive.editor import ROOT
from lcursor.errors import LcursorError
from lcursor.index import chunk
from lcursor.index.embed import DEFAULT, Embedder, find
from lcursor.index.records import FileState, Hit, Mode, Parsed
from lcursor.index.search import Searcher
from lcursor.project import filetypes

Kind = Literal["symbols", "sentences"]
KINDS: tuple[Kind, ...] = ("symbols", "sentences")

DATA = ROOT / "evals/data/queries"
LIMIT = 20
FOLDERS = ("bench", "doc", "evals", "lcursor", "lua", "plugin", "rplugin", "scripts", "tests")
SKIPPED = ("bench/results/", "evals/data/")
ENDINGS = frozenset(
    {".py", ".go", ".lua", ".rs", ".ts", ".md", ".txt", ".toml", ".lock"},
)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A folder that is searched; `name`.txt has the questions about it."""

    name: str
    root: Path
    folders: tuple[str, ...]


CORPORA = (
    Corpus("lcursor", ROOT, FOLDERS),
    Corpus(
        "stdlib",
        Path(sysconfig.get_path("stdlib")),
        ("asyncio", "concurrent", "email", "http"),
    ),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A right answer: a definition, or any place in a file."""

    path: str
    name: str = ""
    """`name`, or `Class.name`; "" for the whole file."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query and its right answers."""

    corpus: str
    kind: Kind
    text: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A question and the rank of its answer."""

    question: Question
    mode: Mode
    rank: int
    """Of the first right hit, from 1; 0 if there is none."""
    first: str
    """Path and line of the first hit."""


def command(
    modes: Annotated[
        str, typer.Option(help="lexical, vector, hybrid; several separated by commas.")
    ] = "lexical",
    embedder: run.Embedder = "",
    threads: run.Threads = 2,
    misses: Annotated[
        bool, typer.Option("--misses", help="Show the questions whose answer is not first.")
    ] = False,
    data: Annotated[Path, typer.Option(help="Folder of the questions.", show_default=False)] = DATA,
    clones: Annotated[
        Path | None, typer.Option(help="Folder with clones of the other repositories.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask questions written by hand about this project and the standard library.

    Names of definitions and plain sentences: how often the right place comes first, and its rank.
    Lexical search needs no model.
    """
    wanted = run.chosen(modes, MODES, "modes")
    made = None
    if {*wanted} - {"lexical"}:
        made = Embedder(find(embedder or DEFAULT), threads=threads)
    facts = run_facts(embedder=made.name if made else "none")
    corpora = [*CORPORA]
    if clones is not None:
        names = (path.stem for path in sorted(data.glob("*.txt")))
        corpora += [
            Corpus(each, clones / each, (".",)) for each in names if (clones / each).is_dir()
        ]
    document = as_dict(measure(wanted, made, data, corpora, progress), facts)
    emit(document, as_markdown(document, has_misses=misses), as_json)


def load(corpus: str, folder: Path = DATA) -> list[Question]:
    """Read the questions about a corpus.

    Raises:
        LcursorError: there is no such file, or a line of it is malformed.
    """
    path = folder / f"{corpus}.txt"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LcursorError(
            f"{path} cannot be read ({error})", f"Give the folder that has it: --data {DATA}"
        ) from error
    found: list[Question] = []
    kind: Kind | None = None
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line.startswith("#"):
            continue
        section = next((one for one in KINDS if line == f"[{one}]"), None)
        text, arrow, answers = line.partition(" => ")
        if section:
            kind = section
        elif kind and arrow and text.strip() and answers.strip():
            found.append(Question(corpus, kind, text.strip(), _answers(answers)))
        else:
            raise LcursorError(
                f"{path}:{number} is not a question",
                "Write [symbols] or [sentences] above, then: question => path::name | path",
            )
    return found


def _answers(text: str) -> tuple[Answer, ...]:
    parts = (one.strip().partition("::") for one in text.split("|"))
    return tuple(Answer(path, name) for path, _, name in parts)


def files(corpus: Corpus) -> Iterator[tuple[str, FileState, Parsed]]:
    """Yield the files of a corpus, chunked."""
    for folder in corpus.folders:
        for path in sorted((corpus.root / folder).rglob("*")):
            name = path.relative_to(corpus.root).as_posix()
            if name.startswith(SKIPPED):
                continue
            if path.suffix not in ENDINGS or "__pycache__" in path.parts or not path.is_file():
                continue
            data = path.read_bytes()
            if filetypes.by_name(name, len(data)) or filetypes.by_content(data):
                continue
            state = FileState(len(data), 0, hashlib.sha256(data).digest()[:16])
            yield name, state, chunk.read(name, filetypes.decode(data))


def judge(searcher: Searcher, questions: Sequence[Question], mode: Mode) -> Iterator[Judged]:
    """Ask the questions and find the rank of the first right hit.

    Raises:
        LcursorError: an answer is not in the index, so the question is out of date.
    """
    for question in questions:
        right = [range_ for answer in question.answers for range_ in places(searcher, answer)]
        if not right:
            raise LcursorError(
                f"nothing in {question.corpus} answers '{question.text}'",
                f"Correct its answers in {DATA / question.corpus}.txt",
            )
        hits = searcher.search(question.text, limit=LIMIT, mode=mode)
        ranks = (
            rank
            for rank, hit in enumerate(hits, start=1)
            if any(is_right(hit, question.kind, *place) for place in right)
        )
        first = f"{hits[0].path}:{hits[0].first_row + 1}" if hits else ""
        yield Judged(question, mode, next(ranks, 0), first)


def places(searcher: Searcher, answer: Answer) -> list[tuple[str, int, int]]:
    """Return path and rows of the definitions that an answer names."""
    if not answer.name:
        rows = [each.end_row for each in searcher.reader.chunks_of(answer.path)]
        return [(answer.path, 0, max(rows))] if rows else []
    *scope, name = answer.name.split(".")
    return [
        (one.path, one.first_row, one.end_row)
        for one in searcher.reader.symbols_in(answer.path)
        if one.name == name and (not scope or one.scope.split(" > ")[-len(scope) :] == scope)
    ]


def is_right(hit: Hit, kind: Kind, path: str, first_row: int, end_row: int) -> bool:
    """Whether a hit is the definition, or for a sentence a part of it."""
    if hit.path != path:
        return False
    if kind == "symbols":
        return hit.first_row <= first_row < hit.end_row
    return hit.first_row < end_row and first_row < hit.end_row


def measure(
    modes: Sequence[Mode],
    embedder: Embedder | None = None,
    data: Path = DATA,
    corpora: Sequence[Corpus] | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> list[Judged]:
    """Ask all questions in all modes.

    Args:
        modes: those with vectors need an embedder.
        embedder: None for lexical search alone.
        data: the folder of the questions.
        corpora: `CORPORA` by default.
        report: called with progress lines.
    """
    found: list[Judged] = []
    for corpus in CORPORA if corpora is None else corpora:
        questions = load(corpus.name, data)

        def on_progress(made: int, wanted: int, name: str = corpus.name) -> None:
            report(f"{name}: {made:,} of {wanted:,} new chunks embedded")

        with temporary_index(files(corpus), embedder, on_progress) as searcher:
            for mode in modes:
                report(f"{corpus.name}, {mode}: {len(questions)} questions")
                found += judge(searcher, questions, mode)
    return found


def as_dict(found: Sequence[Judged], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report as JSON: figures by mode and kind of question, and the misses."""
    modes: dict[str, dict[str, dict[str, float]]] = {}
    for mode in dict.fromkeys(each.mode for each in found):
        rows = modes.setdefault(mode, {})
        for kind in KINDS:
            of_kind = [each for each in found if (each.mode, each.question.kind) == (mode, kind)]
            rows[kind] = _row(of_kind)
            for corpus in dict.fromkeys(each.question.corpus for each in of_kind):
                some = [each for each in of_kind if each.question.corpus == corpus]
                rows[f"{kind} of {corpus}"] = _row(some)
    misses = [
        {
            "mode": each.mode,
            "corpus": each.question.corpus,
            "question": each.question.text,
            "rank": each.rank,
            "first": each.first,
        }
        for each in found
        if each.rank != 1
    ]
    return {**facts, "modes": modes, "misses": misses}


def _row(found: Sequence[Judged]) -> dict[str, float]:
    counted = scores([each.rank for each in found])
    return {
        "questions": counted.questions,
        "mrr": counted.mrr,
        "ndcg10": counted.ndcg10,
        "first": counted.recall1,
        "recall10": counted.recall10,
    }


def as_markdown(document: Mapping[str, Any], *, has_misses: bool = False) -> list[str]:
    """Return the lines of the report."""
    rows = [
        (name, mode, row["questions"], f"{100 * row['first']:.1f} %")
        + tuple(f"{row[each]:.3f}" for each in ("mrr", "ndcg10", "recall10"))
        for mode, found in document["modes"].items()
        for name, row in found.items()
    ]
    lines = [
        *head(document, f"Embedder: {document['embedder']}"),
        *table(["questions", "mode", "n:", "right first:", "MRR:", "NDCG@10:", "recall@10:"], rows),
    ]
    if has_misses:
        missed = [
            (each["mode"], each["question"], each["rank"] or "-", each["first"])
            for each in document["misses"]
        ]
        lines += ["", *table(["mode", "question", "rank:", "came first"], missed)]
    return lines
