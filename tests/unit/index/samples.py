"""A small piece of each language, as people write it, and what it defines: see `samples.txt`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class Sample(NamedTuple):
    language: str
    path: str
    text: str
    defines: str
    """`kind scope>name`, separated by commas."""


BLOCK = re.compile(r"^==== (\S+) (.+)\n((?:.*\n)*?)---- ?(.*)\n", re.M)
SAMPLES = [
    Sample(*block)
    for block in BLOCK.findall(Path(__file__).with_name("samples.txt").read_text("utf-8"))
]
