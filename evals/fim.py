"""`eval fim`: complete HumanEval infilling as typing does, and judge by the true text and tests.

Runs the engine in this process and on this thread. Each cut is typed key by key; each request but
the last is interrupted by the next key, as in the editor.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bench.report import Json, emit, head, ms_since, percent, run_facts, table
from evals import sandbox
from evals.data import DATA, KINDS, Cut, cuts, source_cuts
from evals.rates import Answer, first_line, groups, margin, rates
from evals.run import Cases, Model, collect
from lcursor.catalog import manifest, store
from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled
from lcursor.fim.engine import Engine
from lcursor.fim.prompt import Source

TYPED = 3
"""Keys typed before the one that is judged."""
BUDGET_MS = 60_000
"""Time for an answer: none is cut short because the machine is busy."""


def command(
    n: Annotated[int, typer.Option("--n", min=1, help="Number of cuts of each kind.")] = 200,
    cut: Annotated[str, typer.Option(help="char, word, span, or all.")] = "all",
    model: Model = "",
    seed: Annotated[int, typer.Option(help="Seed for the choice of tasks and places.")] = 1,
    typed: Annotated[
        int, typer.Option(min=0, help="Keys typed before the one that counts.")
    ] = TYPED,
    no_heal: Annotated[bool, typer.Option("--no-heal", help="Without token healing.")] = False,
    no_splice: Annotated[
        bool, typer.Option("--no-splice", help="Evaluate the suffix again at each key.")
    ] = False,
    short: Annotated[bool, typer.Option("--short", help="Use only the short window.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder of the benchmark.")] = None,
    source: Annotated[
        Path | None,
        typer.Option(help="Cut lines of this file instead, without tests.", dir_okay=False),
    ] = None,
    cases: Cases = None,
    as_json: Json = False,
) -> None:
    """Complete HumanEval infilling at random places: exact match and pass@1.

    The programs run in a sandbox without network, files or processes of their own.
    """
    known = [kind for kind in KINDS if source is None or kind != "span"]
    kinds = [kind for kind in known if cut in (kind, "all")]
    if not kinds:
        raise typer.BadParameter(f"unknown cut: {cut}; one of {', '.join(known)}, all")
    chosen = [
        each  # cuts of the same program share the engine's cache
        for kind in kinds
        for each in sorted(
            source_cuts(source, kind, n, seed) if source else cuts(data or DATA, kind, n, seed),
            key=lambda each: each.task.name,
        )
    ]
    window: Literal["full", "short"] = "short" if short else "full"
    facts = run_facts(
        seed=seed,
        typed=typed,
        heals=not no_heal,
        splices=not no_splice,
        window=window,
        source=source.name if source else "",
    )
    engine = load(model, heals=not no_heal, splices=not no_splice, window=window)
    try:
        facts["model"] = f"{engine.model.path.name} ({engine.model.description})"
        found = collect(answers(engine, chosen, typed), len(chosen), _describe, cases)
    finally:
        engine.close()
    document = as_dict(found, facts)
    emit(document, as_markdown(document), as_json)


def load(
    model: str,
    *,
    heals: bool = True,
    splices: bool = True,
    window: Literal["full", "short"] = "full",
) -> Engine:
    """Load a model and wait until it is ready.

    Args:
        model: a name of the manifest or the path of a GGUF file; "" for the default.
        heals: whether the token under the cursor is healed.
        splices: whether the suffix stays in the cache while the prefix grows.
        window: the prompt window that every request uses.
    """
    config = CompletionConfig(budget_ms=BUDGET_MS, min_confidence=0.0)
    config = replace(config, model=model or config.model)
    path = store.resolve(config.model, "completion")
    engine = Engine(path, manifest.family_of(path), config, lambda fraction: True)
    engine.reader.heals, engine.reader.splices = heals, splices
    engine.reader.window = window
    while engine.idle():  # healing needs the vocabulary, which is read in idle time
        pass
    return engine


def keys(prefix: str, typed: int) -> list[str]:
    """Return the prefixes after each of the last keys, oldest first; all in the cursor's line."""
    typed = min(typed, len(prefix.rpartition("\n")[2]))
    return [prefix[: len(prefix) - left] for left in range(typed, -1, -1)]


def answers(engine: Engine, chosen: Iterable[Cut], typed: int = TYPED) -> Iterator[Answer]:
    """Complete at each cut and judge.

    Args:
        engine: with a threshold of 0.
        chosen: the cuts.
        typed: keys typed before the one that is judged.
    """
    return (_answer(engine, cut, typed) for cut in chosen)


def _answer(engine: Engine, cut: Cut, typed: int) -> Answer:
    *earlier, last = [
        Source(prefix, cut.suffix, 0, cut.task.file, cut.task.project)
        for prefix in keys(cut.prefix, typed)
    ]
    for source in earlier:
        _interrupted(engine, source, cut.single_line)
    came_ms: list[float] = []
    began = time.perf_counter()
    result = engine.complete(
        last, lambda text: came_ms.append(ms_since(began)), single_line=cut.single_line
    )
    total_ms = ms_since(began)
    text = result.text
    return Answer(
        kind=cut.kind,
        task=cut.task.name,
        text=text,
        rest=cut.rest,
        is_exact=bool(text) and text.rstrip() == cut.rest.rstrip(),
        is_line_exact=bool(text) and first_line(text) == first_line(cut.rest),
        has_passed=bool(text and cut.task.test) and sandbox.run(cut.program(text)) == "passed",
        confidence=result.confidence,
        logprobs=[round(value, 3) for value in result.logprobs],
        reason=result.reason,
        read_tokens=result.read_tokens,
        generated_tokens=result.generated_tokens,
        first_ms=came_ms[0] if came_ms else 0.0,
        total_ms=total_ms,
    )


def _interrupted(engine: Engine, source: Source, single_line: bool) -> None:
    """Complete until the first text comes; then the next key interrupts."""
    try:
        engine.complete(source, lambda text: engine.abort.set(), single_line=single_line)
    except Cancelled:
        pass
    finally:
        engine.abort.clear()


def _describe(found: Sequence[Answer]) -> str:
    exact = sum(each.is_exact for each in found) / len(found)
    passed = sum(each.has_passed for each in found) / len(found)
    return f"{found[-1].kind}, exact {percent(exact)}, passed {percent(passed)}"


def as_dict(found: Sequence[Answer], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report as JSON.

    Args:
        found: the answers of one run.
        facts: machine, model, command, options.
    """
    rows = {}
    for name, group in groups(found).items():
        counted = rates(group)
        confidences = [each.confidence for each in group if each.text]
        rows[name] = {
            **asdict(counted),
            "exact_margin": margin(counted.exact, counted.cuts),
            "confidence": statistics.fmean(confidences) if confidences else 0.0,
            "read_tokens_p50": _median(group, lambda each: each.read_tokens),
            "generated_tokens_p50": _median(group, lambda each: each.generated_tokens),
            "first_ms_p50": _median([e for e in group if e.first_ms], lambda each: each.first_ms),
            "total_ms_p50": _median(group, lambda each: each.total_ms),
        }
    return {**facts, "cuts": rows}


def _median(found: Sequence[Answer], of: Callable[[Answer], float]) -> float:
    return float(statistics.median(map(of, found))) if found else 0.0


def as_markdown(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of the report."""
    on = {True: "on", False: "off"}
    title = (
        f"Model: {document['model']}; {document['window']} window, healing "
        f"{on[document['heals']]}, splice {on[document['splices']]}, {document['typed']} keys "
        f"typed before, seed {document['seed']}"
    )
    return [
        *head(document, title),
        *table(
            ["cut", "n:", "exact:", "pass@1:", "shown:", "first line:"]
            + ["confidence:", "read:", "written:", "first text:", "all text:"],
            [
                (
                    name,
                    row["cuts"],
                    f"{percent(row['exact'])} ± {100 * row['exact_margin']:.0f}",
                    "–" if document.get("source") else percent(row["passed"]),
                    percent(row["show"]),
                    percent(row["line_precision"]),
                    f"{row['confidence']:.2f}",
                    f"{row['read_tokens_p50']:g}",
                    f"{row['generated_tokens_p50']:g}",
                    f"{row['first_ms_p50']:.0f} ms",
                    f"{row['total_ms_p50']:.0f} ms",
                )
                for name, row in document["cuts"].items()
            ],
        ),
    ]
