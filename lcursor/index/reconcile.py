"""What has to be read again: the files of a survey against what the index knows of them.

Pure. A file is read when its size or its time differ; what was only touched has its old digest
then, and costs a reading, not an indexing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lcursor.index.records import FileState

if TYPE_CHECKING:
    from lcursor.project.listing import Found, Survey


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do for the index to be as the disk is."""

    read: list[str]
    """New or maybe changed, the most recently changed first."""
    gone: list[str]


def difference(known: Mapping[str, FileState], survey: Survey) -> Plan:
    """Compare what is known with what there is."""
    changed = [file for file in survey.files if _may_differ(known.get(file.path), file)]
    changed.sort(key=lambda file: -file.mtime_ns)
    there = {file.path for file in survey.files}
    return Plan([file.path for file in changed], sorted(known.keys() - there))


def _may_differ(known: FileState | None, file: Found) -> bool:
    # Not "newer": a stash or an archive brings older times back.
    return known is None or (known.size_bytes, known.mtime_ns) != (file.size_bytes, file.mtime_ns)
