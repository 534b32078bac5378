"""Count how much training text a model repeats.

    python -m train.leaks MODEL.gguf SAMPLES.npz [--n SAMPLES]

Each prompt is completed with the likeliest tokens; a target counts if at least `REPEATED` tokens in
a row of it are written. Only the samples that were trained on and are long enough can count.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from lcursor.config import CompletionConfig
from lcursor.fim import llama
from lcursor.fim.slots import context_size

REPEATED = 50


def main(
    model: Annotated[Path, typer.Argument()],
    data: Annotated[Path, typer.Argument()],
    n: Annotated[int, typer.Option(help="The first samples, which `fit` uses first.")] = 1000,
) -> None:
    """Count repeated training text."""
    loaded = np.load(data)
    ends = np.cumsum(loaded["sizes"])
    samples = np.split(loaded["tokens"], ends[:-1])[:n]
    size = context_size(CompletionConfig(context_tokens=2048), False, 0)
    repeated, longest, asked = 0, 0, 0
    with (
        closing(llama.Model(model, 0, lambda fraction: True)) as opened,
        closing(llama.Context(opened, size)) as context,
    ):
        for tokens, target in zip(samples, loaded["targets"], strict=False):
            if target < REPEATED:
                continue
            asked += 1
            truth = tokens[-target:].tolist()
            written = complete(context, tokens[:-target].tolist(), len(truth))
            run = longest_run(written, truth)
            longest, repeated = max(longest, run), repeated + (run >= REPEATED)
            if run >= REPEATED:
                text = b"".join(map(opened.piece, truth)).decode(errors="replace")
                typer.echo(f"{run} tokens of {text!r}")
    typer.echo(
        f"{repeated} of {len(samples)} samples repeated ({asked} have {REPEATED} tokens or more; "
        f"the longest repetition has {longest})"
    )


def complete(context: llama.Context, prompt: Sequence[int], count: int) -> list[int]:
    """Return the likeliest tokens behind a prompt."""
    context.remove(0, 0)
    written: list[int] = []
    new = list(prompt)
    while len(written) < count:
        for start in range(0, len(new), context.batch_tokens):
            context.decode(new[start : start + context.batch_tokens], context.length())
        new = [int(context.logits().argmax())]
        written += new
    return written


def longest_run(written: Sequence[int], truth: Sequence[int]) -> int:
    """Return the length of the longest sequence that both have."""
    best, row = 0, [0] * (len(truth) + 1)
    for token in written:
        row = [0, *(row[at] + 1 if token == each else 0 for at, each in enumerate(truth))]
        best = max(best, *row)
    return best


if __name__ == "__main__":
    typer.run(main)
