"""Write single lines of a region again, without showing the model what they were. Blocks.

A small model copies the code that it is to correct: of twelve rewrites of a function with a bug,
ten had its old text, at temperatures from 1 to 2. A line that it does not see, it writes as such
lines usually are, so a bug in that line is often gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from lcursor.changes.records import Check, Lines
from lcursor.errors import ModelUnsuitable
from lcursor.fim import families
from lcursor.llm.client import ChatClient
from lcursor.llm.records import SamplingParams, Text, TokenPrompt, Usage
from lcursor.stop import Stop
from lcursor.workspace.outputs import cut_line

ROWS_ABOVE: Final = 30
ROWS_BELOW: Final = 10
"""Rows around the region that the model sees."""
MAX_ROWS: Final = 20
"""Maximum of rows that are written again."""
SAMPLES: Final = 4
"""Number of texts for a row; the first is the most probable one."""
TEMPERATURE: Final = 1.0
MAX_TOKENS: Final = 60
MAX_NOTES: Final = 12
COMMENTS: Final = {"python": "#", "ruby": "#", "bash": "#", "lua": "--"}
"""Beginnings of comments; other languages have //."""
_FRAME: Final = re.compile(r"[=\-]|Traceback|Ran |FAILED|OK|$")
"""Matches lines of an output that say nothing about a failure."""


class LineInfill:
    """Writes lines with a model on a llama-server.

    Args:
        rank: of its requests, as in `SamplingParams`.
        is_random: whether the texts differ from those of other attempts.
        on_usage: called with the tokens of each request.
    """

    def __init__(
        self,
        client: ChatClient,
        rank: int,
        on_usage: Callable[[Usage], None],
        stopped: Stop,
        *,
        is_random: bool = False,
    ) -> None:
        self._client, self._rank, self._is_random = client, rank, is_random
        self._on_usage, self._stopped = on_usage, stopped

    def texts(
        self, lines: Lines, first_row: int, last_row: int, notes: Sequence[str]
    ) -> Iterator[Lines]:
        """Yield texts of a region in which one row differs; none if the model fills no gaps.

        Args:
            notes: comments about what fails.

        Raises:
            LcursorError: the server failed.
        """
        served = self._client.served
        family = families.family_of(served.model) if served is not None else None
        if served is None or family is None or not served.can_count:  # as only a llama-server can
            return
        try:
            found = families.resolve(family.name, self._tokenize)
        except ModelUnsuitable:
            return
        above = lines[max(first_row - ROWS_ABOVE, 0) : first_row]
        below = lines[last_row : last_row + ROWS_BELOW]
        old = lines[first_row:last_row]
        for row in _rows(old):
            blanks = old[row][: len(old[row]) - len(old[row].lstrip())]
            texts = {
                "prefix": "\n".join([*notes, *above, *old[:row], blanks]),
                "suffix": "\n".join(["", *old[row + 1 :], *below]),
            }
            prompt = list[int]()
            for kind, name in families.parts(family.single):
                prompt += [found.ids[name]] if kind == "marker" else self._tokenize(texts[name])
            known = {old[row]}
            for sample in range(SAMPLES):
                line = (blanks + self._line(prompt, sample)).rstrip()
                if line.strip() and line not in known:
                    known.add(line)
                    yield (*old[:row], line, *old[row + 1 :])

    def _tokenize(self, text: str, is_template: bool = False) -> list[int]:
        return self._client.tokenize(text, is_template=is_template)

    def _line(self, prompt: Sequence[int], sample: int) -> str:
        """Return the rest of a line."""
        sampling = SamplingParams(
            MAX_TOKENS,
            TEMPERATURE if sample or self._is_random else 0.0,
            stop=("\n",),
            seed=-1 if self._is_random else sample,
            has_counts=True,
            rank=self._rank,
        )
        stream = self._client.stream(TokenPrompt(prompt), sampling)
        with self._stopped.closing(stream.close):
            text = "".join(each.text for each in stream if isinstance(each, Text))
        self._on_usage(stream.usage())
        return text.partition("\n")[0]


def notes(results: Iterable[Check], language: str) -> list[str]:
    """Return the outputs of failed tests as comments in a language."""
    texts = "\n".join(each.text for each in results if each.name == "test" and not each.is_ok)
    lines = [line for line in texts.split("\n") if not _FRAME.match(line)]
    sign = COMMENTS.get(language, "//")
    return [f"{sign} {cut_line(line)}" for line in lines[-MAX_NOTES:]]


def _rows(lines: Lines) -> list[int]:
    """Return the rows that a bug may be in: neither blank, nor a comment, nor the first one."""
    comments = ("#", "//", "--", '"""', "*")
    code = (row for row, line in enumerate(lines) if row and not line.strip().startswith(comments))
    return [row for row in code if lines[row].strip()][:MAX_ROWS]
