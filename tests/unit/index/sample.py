"""A small piece of each language, as people write it, and what it defines."""

from __future__ import annotations

from typing import NamedTuple


class Sample(NamedTuple):
    path: str
    language: str
    text: str
    defines: str
    """`kind scope>name`, separated by commas."""
