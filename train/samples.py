"""Turn commits into samples: a prompt of the product, and the text that should follow it.

    python -m train.samples OUT.npz --repo CLONE --repo CLONE [--n TEXTS]

A commit's added lines are typed up to a random cut. The product's own code lays out the prompt: one
of its windows, with the last tokens removed for token healing. The target ends where a suggestion
should: before the next blank line, or where the commit's added lines end.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer

from evals.keys import insertions
from evals.keys.insertions import Insertion, load
from lcursor.catalog import manifest, store
from lcursor.config import CompletionConfig
from lcursor.errors import LcursorError
from lcursor.fim import families, llama, placement, prompt
from lcursor.fim.reader import ON_CPU
from lcursor.fim.vocabulary import Vocabulary
from lcursor.project import redaction, secrets

END = "<|endoftext|>"
MAX_LINES, MAX_TOKENS = 8, 96
"""Of a target; a longer one has no end."""
CUTS = 3
"""Of each text."""
HELD, HELD_TEXTS = 60, 40
"""Samples that are not trained on, and the number of texts that they are from."""
BLANK = re.compile(r"\n[ \t]*(?:\n|$)")
WORD = re.compile(r"\w+|[^\w\s]+|\s+")


PRIVATE = re.compile(
    r"(?:password|passwd|secret|token|api_?key|credential)\w*[\"']?\s*[:=]\s*[\"'][^\"'\s]{8,}[\"']"
    r"|(?:password|passwd|secret)\s*:\s*(?=\w*\d)\w{8,}"
    r"|(?<![\w/+.-])(?=[\w+/-]*\d)(?=[\w+/-]*[a-z])[\w+/-]{32,}(?![\w/+.-])"
    r"|[\w.+-]+@[\w-]+\.[a-z]{2,}\b",
    re.IGNORECASE,
)
"""Passwords, long values such as digests and keys, and addresses; some matches are harmless."""


FOREIGN_PATH = re.compile(
    r"(?:^|/)(?:vendor|third_party|node_modules|dist|generated|fixtures)/|\.min\."
)
GENERATED = re.compile(r"(?i)\b(?:generated (?:by|from|code|file)|do not edit|auto-?generated)\b")
HEAD_CHARS = 600
"""Of a file, where it says that it was generated."""


class Sample(NamedTuple):
    """Tokens of a prompt and its target.

    Attributes:
        target: the last tokens, which are the target.
        line: the first of these, up to the end of the first line that is not blank.
    """

    tokens: list[int]
    target: int
    line: int
    language: str


def target(text: str, at: int) -> str:
    """Return what a suggestion at a position should be: the rest of the lines up to a blank one."""
    rest = text[at:]
    body = rest.lstrip("\n")
    blank = BLANK.search(body)
    return (rest[: len(rest) - len(body)] + body[: blank.start() if blank else None]).rstrip()


def cuts(insertion: Insertion, chance: random.Random) -> Iterator[tuple[int, str]]:
    """Yield positions in a text and their targets: a line's start, after a word, inside of one."""
    text = insertion.text
    starts = [0, *(m.end() for m in re.finditer(r"\n[ \t]*", text))]
    words = [m for m in WORD.finditer(text) if m.group().strip()]
    for _ in range(CUTS):
        kind = chance.random()
        if kind < 0.3:
            at = chance.choice(starts)
        elif kind < 0.65:
            found = chance.choice(words)
            at = found.start() if chance.random() < 0.5 else found.end()
        else:
            found = chance.choice(words)
            at = chance.randint(found.start(), found.end())
        wanted = target(text, at)
        if len(wanted.strip()) >= 3:
            yield at, wanted


class Layout:
    """The product's prompts of one model."""

    def __init__(self, path: Path) -> None:
        self.model = llama.Model(path, 0, lambda fraction: True)
        self._family = families.resolve(manifest.family_of(path), self.model.tokenize)
        pieces = [self.model.piece(token) for token in range(self.model.n_vocab)]
        self._vocabulary = Vocabulary.build(pieces)
        (self._end,) = self.model.tokenize(END, True)
        self._config = placement.resolve(CompletionConfig(), "cpu")

    def sample(self, insertion: Insertion, repo: str, at: int, wanted: str, window: str) -> Sample:
        """Lay out the prompt at a cut, and the target behind it."""
        source = prompt.Source(
            insertion.before + insertion.text[:at], insertion.after, 0, insertion.path, repo
        )
        tokenize: Callable[..., list[int]] = self.model.tokenize
        if window == "full":
            built = prompt.build(
                source,
                self._family,
                tokenize,
                prefix_tokens=self._config.prefix_tokens,
                suffix_tokens=self._config.suffix_tokens,
                files_tokens=self._config.files_tokens,
            )
        else:
            short = ON_CPU.short
            built, _ = prompt.build_small(
                source,
                self._family,
                tokenize,
                prefix_tokens=short.prefix_tokens,
                suffix=prompt.small_suffix(source, tokenize, short),
                related=prompt.related_to(source, tokenize, short),
            )
        before, forced = self._vocabulary.back_off(built.before)
        marker = () if built.marker is None else (built.marker,)
        lines = wanted.split("\n")
        is_cut = insertion.text.count("\n") == insertions.MAX_LINES - 1
        is_at_end = insertion.text.endswith(wanted)
        is_whole = len(lines) <= MAX_LINES and not (is_cut and is_at_end)
        text = forced.decode("utf-8", "ignore") + "\n".join(lines[:MAX_LINES])
        tail = tokenize(text, False)
        if len(tail) > MAX_TOKENS:
            tail, is_whole = tail[:MAX_TOKENS], False
        if is_whole:
            tail.append(self._end)
        head = [*before, *marker, *built.after, *built.middle]
        return Sample([*head, *tail], len(tail), self._line(tail), insertion.language)

    def _line(self, tokens: Sequence[int]) -> int:
        """Return the number of tokens up to the end of the first line that is not blank."""
        text = b""
        for number, token in enumerate(tokens, 1):
            text += self.model.piece(token)
            if b"\n" in text.lstrip():
                return number
        return len(tokens)


def is_foreign(insertion: Insertion) -> bool:
    """Return whether a file is generated, or a copy of another project's."""
    head = (insertion.before + insertion.text)[:HEAD_CHARS]
    return bool(FOREIGN_PATH.search(insertion.path) or GENERATED.search(head))


def has_secret(insertion: Insertion) -> bool:
    """Return whether there is a key, a password, a digest or an address in a file."""
    text = insertion.before + insertion.text + insertion.after
    return bool(
        secrets.is_secret_path(insertion.path)
        or secrets.has_private_key(text.encode("utf-8", "surrogateescape"))
        or redaction.redact(text)[1]
        or PRIVATE.search(text)
    )


def samples(layout: Layout, texts: Sequence[tuple[str, Insertion]], seed: int) -> Iterator[Sample]:
    """Yield the samples of texts in random order."""
    chance, known = random.Random(seed), set[str]()
    for repo, insertion in texts:
        same = "".join(insertion.text.split())
        if same in known or is_foreign(insertion) or has_secret(insertion):
            continue
        known.add(same)
        for at, wanted in cuts(insertion, chance):
            window = chance.choices(("short", "full"), (2, 1))[0]
            yield layout.sample(insertion, repo, at, wanted, window)


def main(
    out: Annotated[Path, typer.Argument()],
    repo: Annotated[list[Path], typer.Option()],
    n: Annotated[int, typer.Option()] = 60,
    model: Annotated[str, typer.Option()] = "qwen2.5-coder-0.5b",
    seed: Annotated[int, typer.Option()] = 7,
    tokens: Annotated[int, typer.Option(help="At most this many.")] = 400_000,
    revision: Annotated[str, typer.Option(help="Of each clone; no newer commits.")] = "HEAD",
) -> None:
    """Write samples."""
    texts: list[tuple[str, Insertion]] = []
    for each in repo:
        try:
            texts += [(each.name, text) for text in load(each, n, seed, revision)]
        except LcursorError as error:  # for example, its largest files are missing
            typer.echo(f"{each.name} is left out: {error.message}", err=True)
    random.Random(seed).shuffle(texts)
    layout = Layout(store.path_of(manifest.find(model)))
    held = list(samples(layout, texts[:HELD_TEXTS], seed))[:HELD]
    found: list[Sample] = []
    count = 0
    for one in samples(layout, texts[HELD_TEXTS:], seed):
        found.append(one)
        count += len(one.tokens)
        if count >= tokens:
            break
    random.Random(seed).shuffle(found)
    found += held
    sizes = np.array([len(one.tokens) for one in found], np.int32)
    np.savez_compressed(
        out,
        tokens=np.concatenate([np.array(one.tokens, np.int32) for one in found]),
        sizes=sizes,
        held=np.array(len(held)),
        targets=np.array([one.target for one in found], np.int32),
        lines=np.array([one.line for one in found], np.int32),
        languages=np.array([one.language for one in found]),
    )
    by = Counter(one.language for one in found)
    wanted = sum(one.target for one in found)
    typer.echo(f"{len(found)} samples, {count} tokens, {wanted} of targets; {dict(by)}")


if __name__ == "__main__":
    typer.run(main)
