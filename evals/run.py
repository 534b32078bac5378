"""What the eval commands share: common options, and collecting results with progress lines."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from bench.report import progress
from lcursor.errors import LcursorError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Found = TypeVar("Found", bound=DataclassInstance)

Model = Annotated[str, typer.Option(help="A name of `models list`, or a path.")]
Embedder = Annotated[str, typer.Option(help="A name of `models list`.")]
Threads = Annotated[int, typer.Option(min=1, help="Threads that embed.")]
Cases = Annotated[Path | None, typer.Option(help="Write each result to it, as JSON Lines.")]

PROGRESS_EVERY_S = 5.0


def collect(
    results: Iterable[Found],
    count: int,
    describe: Callable[[Sequence[Found]], str],
    cases: Path | None = None,
) -> list[Found]:
    """Collect results, write each to a file as it comes, and print the progress now and then.

    Args:
        results: as they come; dataclasses.
        count: how many will come.
        describe: returns words about the results so far.
        cases: the file; an interrupted run leaves there what it had.
    """
    found: list[Found] = []
    began_s = printed_s = time.monotonic()
    try:
        file = cases.open("w", encoding="utf-8", buffering=1) if cases else None
    except OSError as error:
        raise LcursorError(f"{cases} cannot be written ({error.strerror})") from error
    with file or nullcontext():
        for each in results:
            found.append(each)
            if file:
                file.write(json.dumps(asdict(each)) + "\n")
            now_s = time.monotonic()
            if now_s - printed_s >= PROGRESS_EVERY_S or len(found) == count:
                printed_s = now_s
                left_s = (now_s - began_s) / len(found) * (count - len(found))
                progress(f"{len(found)} of {count}, {describe(found)}, {left_s:.0f} s left")
    return found


def chosen(names: str, known: Sequence[Any], what: str) -> list[Any]:
    """Return those of the known names that a comma-separated option has, in their order.

    Raises:
        BadParameter: one of the names is unknown.
    """
    asked = {each for each in names.split(",") if each}
    if asked - {*known}:
        raise typer.BadParameter(f"unknown {what}: {names}; of {', '.join(known)}")
    return [each for each in known if each in asked]
