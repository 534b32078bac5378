"""Each trick of the hostile project works where nothing protects the user, and none is missing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.hostile import git_config, tricks
from tests.hostile.world import Trick, World

SUSPICIOUS = re.compile(
    r".*(cmd|command|program|helper|hook\w*|pager|editor|driver|clean|smudge|process|textconv"
    r"|external|askpass|proxy|vcs|\.update|tunnel|fsmonitor|uploadpack|receivepack|template\w*|path"
    r"|\w*file|browser|viewer|httpd|tool|filter|worktree|dir|url|insteadof|allow|cert|\w*key|\*|<cmd>)",
    re.IGNORECASE,
)
"""Names of keys that may name a program or a file."""
IDLE = ("advice.", "color.")


@pytest.mark.parametrize("trick", tricks.ALL, ids=lambda trick: trick.name)
def test_a_trick_works_without_protection(tmp_path: Path, pristine: World, trick: Trick) -> None:
    assert World.create(tmp_path / "with", pristine).build(trick).works(trick)
    assert not World.create(tmp_path / "without", pristine).works(trick)


def test_every_key_of_git_that_names_a_program_or_a_file_is_tried() -> None:
    listed = subprocess.run(
        ["git", "help", "--config"], check=True, capture_output=True, text=True
    ).stdout.split()
    harmless = " ".join(git_config.HARMLESS.values())
    known = {key for trick in tricks.ALL for key in trick.keys}
    known |= set(harmless.split())
    missing = [
        key
        for key in listed
        if SUSPICIOUS.fullmatch(key) and not key.startswith(IDLE) and key not in known
    ]
    assert missing == []
    assert len(known) > 80
