"""A project of a stranger with every trick, opened by every feature: nothing runs, nothing leaks.

That each trick works without protection is in `test_tricks.py`.
"""

from __future__ import annotations

import pytest

from lcursor.context import prompts
from tests.hostile import features, tricks
from tests.hostile.conftest import Enter
from tests.hostile.world import Trick, World, leaks


def harm(world: World, name: str) -> tuple[list[str], str]:
    """Use a feature; return what ran and which secrets it gave out, and all that it gave out."""
    said = features.ALL[name][0](world)
    found = [*(f"ran: {each}" for each in sorted({*world.ran()})), *leaks(said)]
    world.forget()
    return found, said


@pytest.mark.parametrize("name", features.ALL)
def test_an_ordinary_project_is_read_without_its_secrets(enter: Enter, name: str) -> None:
    found, said = harm(enter(), name)
    assert found == []
    assert features.ALL[name][1] in said


@pytest.mark.parametrize("name", features.ALL)
def test_no_trick_of_a_project_succeeds(enter: Enter, name: str) -> None:
    world = enter(*tricks.TOGETHER)
    world.shell("unset ${!GIT_*}; git status; git diff; git log -p")
    assert len({*world.ran()}) > 3, "the tricks disturb each other"
    world.forget()
    found, said = harm(world, name)
    assert found == []
    assert features.ALL[name][1] in said, "it just fails"


@pytest.mark.parametrize("trick", tricks.ALONE, ids=lambda trick: trick.name)
def test_a_trick_that_stops_git_does_not_succeed(enter: Enter, trick: Trick) -> None:
    world = enter(trick)
    found = {name: harm(world, name)[0] for name in features.ALL}
    assert {name: what for name, what in found.items() if what} == {}


def test_a_project_does_not_replace_a_built_in_prompt(enter: Enter) -> None:
    world = enter(*tricks.TOGETHER)
    expanded = prompts.expand("/explain", world.project)
    assert "REPLACED" not in expanded.text
    assert expanded.prompt
    assert expanded.prompt.origin == "built in"
