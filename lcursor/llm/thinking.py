"""Tells what a model thinks from what it answers, where the server leaves both in one text. Pure.

Only at the beginning: a tag further down is part of the answer, which may well be about tags.
"""

from __future__ import annotations

from typing import Literal

from lcursor.llm.records import Reasoning, Text

TAGS = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]"))


class Thinking:
    """Splits a text that comes in pieces, whose tags may be cut anywhere."""

    def __init__(self) -> None:
        self._state: Literal["start", "inside", "gap", "answer"] = "start"
        self._held = ""
        self._end = ""

    def skip(self) -> None:
        """The server has told what the model thinks by itself; what follows is the answer."""
        if self._state == "start":
            self._state = "gap"

    def feed(self, text: str) -> list[Text | Reasoning]:
        """Return what is certain with one more piece."""
        if self._state == "answer":
            return [Text(text)] if text else []
        self._held += text
        found: list[Text | Reasoning] = []
        if self._state == "start" and not self._begin():
            return found
        if self._state == "inside" and not self._inside(found):
            return found
        if self._state == "gap":  # the empty lines between the two belong to neither
            self._held = self._held.lstrip()
            if not self._held:
                return found
            self._state = "answer"
        found.append(Text(self._held))
        self._held = ""
        return found

    def finish(self) -> list[Text | Reasoning]:
        """Return what was held back."""
        rest, self._held = self._held, ""
        if not rest or self._state == "gap":
            return []
        return [Reasoning(rest) if self._state == "inside" else Text(rest)]

    def _begin(self) -> bool:
        """Decide whether the text begins with a tag; return whether that can be told."""
        bare = self._held.lstrip()
        for start, end in TAGS:
            if bare.startswith(start):
                self._state, self._end = "inside", end
                self._held = bare[len(start) :]
                return True
        if any(start.startswith(bare) for start, _ in TAGS):
            return False
        self._state = "answer"
        return True

    def _inside(self, found: list[Text | Reasoning]) -> bool:
        """Take what the model thinks; return whether that is over."""
        thought, end, rest = self._held.partition(self._end)
        if not end:  # the end may begin in the last letters
            most = min(len(thought), len(self._end) - 1)
            kept = next(
                (size for size in range(most, 0, -1) if self._end.startswith(thought[-size:])), 0
            )
            thought, rest = thought[: len(thought) - kept], thought[len(thought) - kept :]
        if thought:
            found.append(Reasoning(thought))
        self._held = rest
        if end:
            self._state = "gap"
        return bool(end)
