"""All tricks of a project."""

from __future__ import annotations

from tests.hostile import git_config, project_files

ALL = (*git_config.TRICKS, *project_files.TRICKS)
TOGETHER = tuple(each for each in ALL if not each.is_alone)
ALONE = tuple(each for each in ALL if each.is_alone)
