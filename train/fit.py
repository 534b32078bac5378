"""Train an adapter on samples.

    python -m train.fit BASE.gguf SAMPLES.npz ADAPTER.npz [--rank R] [--limit TOKENS]

The state is saved next to the adapter every few minutes, and a new run continues from there.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from train.qwen2 import Linear, Qwen2

BATCH = 4
"""Samples of a step."""
CONTEXT, CONTEXT_SHARE = 96, 0.5
"""Random tokens of the prompt that are predicted too, and the weight of their average loss."""
TARGET_TOKENS = 12
"""A target of one line and of this length has the weight 1."""
LATER = 0.4
"""Weight of a token behind the first line, which is often accepted without the others."""
WARMUP = 0.05
SAVE_EVERY, REPORT_EVERY = 20, 20


class Samples:
    """The samples of a file."""

    def __init__(self, path: Path) -> None:
        data = np.load(path)
        self.targets, self._lines = data["targets"], data["lines"]
        self.held = int(data["held"])
        """The last samples, which are not trained on."""
        ends = np.cumsum(data["sizes"])
        self._tokens = np.split(data["tokens"], ends[:-1])

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, number: int) -> tuple[Tensor, int, int]:
        tokens = torch.from_numpy(self._tokens[number].astype(np.int64))
        return tokens, int(self.targets[number]), int(self._lines[number])


def loss(model: Qwen2, sample: tuple[Tensor, int, int], chance: torch.Generator) -> Tensor:
    """Return the loss of one sample."""
    tokens, target, line = sample
    hidden = model.hidden(tokens[:-1])
    first = len(tokens) - 1 - target
    each = F.cross_entropy(model.logits(hidden[first:]), tokens[first + 1 :], reduction="none")
    nll = each[:line].sum() + LATER * each[line:].sum()
    at = torch.randperm(max(first - 1, 1), generator=chance)[:CONTEXT]
    context = F.cross_entropy(model.logits(hidden[at]), tokens[at + 1])
    return nll / TARGET_TOKENS + CONTEXT_SHARE * context


@torch.no_grad()
def held_out(model: Qwen2, samples: Samples) -> tuple[float, float]:
    """Return nats per target token without the last one, and the share of exact greedy targets."""
    nats, count, exact = 0.0, 0, 0
    numbers = range(len(samples) - samples.held, len(samples))
    for number in numbers:
        tokens, target, _ = samples[number]
        hidden = model.hidden(tokens[:-1])[-target:]
        logits, truth = model.logits(hidden), tokens[-target:]
        nats += float(F.cross_entropy(logits[:-1], truth[:-1], reduction="sum"))
        count += target - 1
        exact += bool((logits[:-1].argmax(-1) == truth[:-1]).all())
    return nats / max(count, 1), exact / samples.held


def main(
    base: Annotated[Path, typer.Argument()],
    data: Annotated[Path, typer.Argument()],
    out: Annotated[Path, typer.Argument()],
    rank: Annotated[int, typer.Option()] = 16,
    alpha: Annotated[float, typer.Option()] = 32.0,
    rate: Annotated[float, typer.Option(help="Learning rate.")] = 4e-4,
    limit: Annotated[int, typer.Option(help="Tokens to train on; 0 for all.")] = 0,
    threads: Annotated[int, typer.Option()] = 2,
) -> None:
    """Train."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = Qwen2(base, rank, alpha)
    samples = Samples(data)
    count = len(samples) - samples.held
    if limit:
        sizes = np.cumsum([len(samples[number][0]) for number in range(count)])
        count = int(np.searchsorted(sizes, limit))
    steps = count // BATCH
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.0)
    state = out.with_suffix(".state")
    first = 0
    run = f"{_digest(base)} {_digest(data)} {rank} {alpha} {rate} {limit}"
    if state.exists():
        saved = torch.load(state)
        if saved["run"] != run:
            raise typer.BadParameter(f"{state} is of another run: remove it")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"]
        typer.echo(f"continues after step {first}")
    else:
        typer.echo("held out: {:.3f} nats, {:.0%} exact".format(*held_out(model, samples)))
    began, total, seen = time.perf_counter(), 0.0, 0
    for step in range(first, steps):
        progress = step / steps
        for group in optimizer.param_groups:
            group["lr"] = rate * min(progress / WARMUP + 1 / steps, 1.0) * (1 - progress)
        chance = torch.Generator().manual_seed(step)
        for number in range(step * BATCH, (step + 1) * BATCH):
            value = loss(model, samples[number], chance) / BATCH
            value.backward()
            total += float(value.detach())
            seen += len(samples[number][0])
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % REPORT_EVERY == 0:
            rate_s = seen / (time.perf_counter() - began)
            typer.echo(f"{step + 1}/{steps} loss {total / REPORT_EVERY:.3f} {rate_s:.0f} tokens/s")
            total = 0.0
        if (step + 1) % SAVE_EVERY == 0:
            kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**kept, "step": step + 1, "run": run}, part := state.with_suffix(".part"))
            os.replace(part, state)
    typer.echo("held out: {:.3f} nats, {:.0%} exact".format(*held_out(model, samples)))
    save(model, base, out, alpha)
    state.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def save(model: Qwen2, base: Path, out: Path, alpha: float) -> None:
    """Write the adapter in the format of `lcursor.fim.quantize`, with float16 matrices."""
    arrays: dict[str, Any] = {"base": np.array(_digest(base)), "alpha": np.array(alpha, np.float32)}
    for number, block in enumerate(model.blocks):
        for name, layer in block.items():
            assert isinstance(layer, Linear)
            for end, matrix in (("a", layer.down), ("b", layer.up)):
                values = matrix.detach().numpy().astype(np.float16)
                arrays[f"blk.{number}.{name}.{end}"] = values
    np.savez(out, **arrays)


if __name__ == "__main__":
    typer.run(main)
