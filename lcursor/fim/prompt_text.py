"""A prompt as text, for a server that tokenizes it itself.

The layout is the same as in `prompt.build`, with characters as tokens and the spellings of markers
instead of their ids. Budgets are estimated, because there is no tokenizer. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from lcursor.code import estimate
from lcursor.fim.families import Family, Resolved
from lcursor.fim.prompt import File, Source, build

_CHAT_MARKER = r"<[|｜][^<>|｜\s]{1,40}[|｜]>"
"""The form of special tokens in most vocabularies, not only of markers."""


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """The text to send, and the data for the rules of the answer.

    Attributes:
        pieces: the prompt as texts and markers; True marks a marker.
        stops: texts that end the answer, the most important first.
        prefix: the text before the cursor that is in the prompt, unmodified.
        suffix: the text after the cursor that is in the prompt.
    """

    pieces: tuple[tuple[str, bool], ...]
    stops: tuple[str, ...]
    prefix: str
    suffix: str

    @property
    def text(self) -> str:
        """The text to send."""
        return "".join(text for text, _ in self.pieces)


def text(
    source: Source,
    family: Family,
    *,
    prefix_tokens: int,
    suffix_tokens: int,
    single_line: bool = False,
    files: Sequence[File] = (),
    files_tokens: int = 0,
) -> TextPrompt:
    """Lay out a prompt in the family's order; see `prompt.build`.

    Args:
        source: text around the cursor.
        family: its template and markers.
        prefix_tokens, suffix_tokens, files, files_tokens: see `prompt.build`; budgets are
            estimated.
        single_line: end at a newline.
    """
    marks = _marks(family)
    spellings = {-1 - number: text for number, text in enumerate(family.markers.values())}
    ids = dict(zip(family.markers, spellings, strict=True))
    before, after = estimate.chars(prefix_tokens), estimate.chars(suffix_tokens)
    built = build(
        source,
        Resolved(family, ids, frozenset()),
        lambda text, _: [ord(char) for char in _plain(text, marks)],
        prefix_tokens=before,
        suffix_tokens=after,
        files=files,
        files_tokens=estimate.chars(files_tokens),
    )
    pieces: list[tuple[str, bool]] = []
    for is_marker, group in groupby(built.tokens, lambda token: token < 0):
        if is_marker:
            pieces += [(spellings[token], True) for token in group]
        else:
            pieces.append(("".join(map(chr, group)), False))
    line = ("\n",) if single_line else ()
    stops = dict.fromkeys([*line, *family.stops, *reversed(tuple(family.markers.values()))])
    # A line that is longer than its budget was truncated.
    prefix, suffix = built.prefix[max(len(built.prefix) - before, 0) :], built.suffix[:after]
    return TextPrompt(tuple(pieces), tuple(stops), prefix, suffix)


def before_stop(written: str, stops: Sequence[str], *, is_done: bool) -> tuple[str, bool]:
    """Cut an answer at the first stop text in it, for servers that do not.

    Args:
        written: the answer so far.
        stops: see `TextPrompt.stops`.
        is_done: whether it is complete; otherwise a possible start of a marker is held back.

    Returns:
        The text before the stop text, and whether there was one.
    """
    found = [at for at in map(written.find, stops) if at >= 0]
    if found:
        return written[: min(found)], True
    if not is_done:
        longest = max(map(len, stops), default=0)
        for size in range(min(longest, len(written)), 0, -1):
            if any(stop.startswith(written[-size:]) for stop in stops):
                return written[:-size], False
    return written, False


def _marks(family: Family) -> re.Pattern[str]:
    known = sorted({*family.markers.values(), *family.stops}, key=len, reverse=True)
    return re.compile("|".join([*map(re.escape, known), _CHAT_MARKER]))


def _plain(text: str, marks: re.Pattern[str]) -> str:
    """Replace the markers in a text by a harmless spelling.

    The server would tokenize them as markers, and there is no way to escape them: a file about FIM
    models would end its own prompt. The characters around the name occur in no marker, so that no
    new marker can form with adjacent text.
    """
    return marks.sub(lambda found: "‹" + re.sub(r"^\W+|\W+$", "", found[0]) + "›", text)
