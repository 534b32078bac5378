"""Resources and prompts of servers in the context of a question, with a real helper process."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lcursor.context import complete, gather, prompts
from lcursor.context.codebase import GrepSearch
from lcursor.context.items import Item
from lcursor.errors import McpFailed
from lcursor.mcp.client.texts import ProjectTexts, arguments_of
from tests.unit.mcp.conftest import World, fake
from tests.waiting import wait_for


@pytest.fixture
def texts(world: World) -> ProjectTexts:
    """Give the texts of an allowed server `it` that runs, and of `new`, which is not allowed."""
    texts = ProjectTexts(world.configure(it=fake("texts"), new=fake("texts")))
    world.allow("it")
    return texts


def gathered(world: World, texts: ProjectTexts | None, question: str, **more: Any) -> list[Item]:
    return gather.gather(question, root=world.root, servers=texts, **more)


def words(world: World, texts: ProjectTexts, typed: str) -> list[str]:
    found = complete.complete(world.root, typed, GrepSearch(world.root), texts)
    return [each["word"] for each in found]


def test_a_resource_is_attached_as_text(world: World, texts: ProjectTexts) -> None:
    (world.root / "a.py").write_text("a = 1\n")
    (item,) = gathered(world, texts, "When? @mcp:it/note:///plan.")
    assert (item.key, item.kind, item.is_left_out) == ("mcp:it/note:///plan", "mcp", False)
    assert item.text == "Ship on Friday. @file:a.py"  # and no a.py beside it
    (item,) = gathered(world, texts, '@mcp:"it/note:///two words"')
    assert item.text == "two"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("it/note:///none", "it: "),
        (
            "it/note:///picture",
            "it: it is not text: [image/png note:///picture, 5 bytes, left out]",
        ),
        ("it/note:///huge", "it has 1.0 MB"),
        ("it/note:///key", "private key"),
        ("it", "write the server and the address: @mcp:SERVER/ADDRESS"),
        ("other/note:///plan", "there is no server other"),
        ("new/note:///plan", "new: the user has not allowed this; it is in :LCursor mcp"),
    ],
)
def test_a_resource_is_left_out_with_the_reason(
    world: World, texts: ProjectTexts, name: str, why: str
) -> None:
    (item,) = gathered(world, texts, f"@mcp:{name}")
    assert (item.kind, item.name, item.text, item.is_left_out) == ("mcp", name, "", True)
    assert why in item.note
    assert world.starts("new") == 0


def test_without_servers_and_in_prompts_of_the_project_none_is_read(
    world: World, texts: ProjectTexts
) -> None:
    (item,) = gathered(world, None, "@mcp:it/note:///plan")
    assert item.note == gather.NO_SERVERS
    (world.root / ".lcursor/prompts").mkdir(parents=True)
    (world.root / ".lcursor/prompts/leak.md").write_text("Tell me. @mcp:it/note:///plan")
    (item,) = gathered(world, texts, "/leak")
    assert item.note == gather.NOT_NAMED


def test_resources_are_completed_and_their_server_starts_meanwhile(
    world: World, texts: ProjectTexts
) -> None:
    world.project.stop("it")
    words(world, texts, "@mcp:")  # does not wait
    wait_for(lambda: words(world, texts, "@mcp:") != [])
    assert words(world, texts, "@mcp:PLAN") == ["@mcp:it/note:///plan"]
    assert words(world, texts, '@mcp:"it/note:///two') == ['@mcp:"it/note:///two words"']
    assert words(world, texts, "@mcp:odd") == []
    assert (world.starts("it"), world.starts("new")) == (2, 0)
    assert complete.complete(world.root, "@mcp:", GrepSearch(world.root)) == []


def test_a_server_that_does_not_start_is_not_started_with_each_key(world: World) -> None:
    texts = ProjectTexts(world.configure(it=fake("dies")))
    world.allow("it")
    before = world.starts("it")
    for _ in range(5):
        words(world, texts, "@mcp:")
    assert world.starts("it") == before


def test_prompts_are_completed_for_servers_that_run(world: World, texts: ProjectTexts) -> None:
    assert words(world, texts, "/it") == ["/it:greet", "/it:plain", "/commit"]
    assert "/it:greet" in words(world, texts, "/gre")
    found = complete.complete(world.root, "/it:gr", GrepSearch(world.root), texts)
    assert found[0]["info"] == "who [tone]: Greet someone."
    world.project.stop("it")
    assert words(world, texts, "/it") == ["/commit"]
    assert world.starts("it") == 1


def test_a_prompt_becomes_the_question(world: World, texts: ProjectTexts) -> None:
    (world.root / "a.py").write_text("a = 1\n")
    (world.root / "b.py").write_text("b = 1\n")
    question = "/it:greet Ada Lovelace tone=warm @file:b.py"
    expanded = prompts.expand(question, world.root, texts)
    given = '{"tone": "warm", "who": "Ada Lovelace @file:b.py"}'
    assert expanded.text == f"Write greet with {given}. See @file:a.py"
    items = gathered(world, texts, question, expanded=expanded)
    assert [item.key for item in items] == ["file:b.py"]  # what the user mentions, not the server


def test_a_prompt_file_has_priority(world: World, texts: ProjectTexts) -> None:
    (world.root / ".lcursor/prompts/it").mkdir(parents=True)
    (world.root / ".lcursor/prompts/it/greet.md").write_text("Mine.")
    assert prompts.expand("/it:greet", world.root, texts).text == "Mine."
    assert words(world, texts, "/it:greet") == ["/it:greet"]
    assert prompts.mistyped("/it:plan", world.root, texts) is None
    assert prompts.mistyped("/explian", world.root, texts) == ("explian", "explain")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("/it:greet", "/it:greet needs who=…"),
        ("/it:greet tone=warm", "/it:greet needs who=…"),
        ("/it:plain some words", "/it:plain has no argument for: some words"),
        ("/it:none", "has no prompt none; its prompts: greet, plain, cannot be typed"),
        ("/new:greet Ada", "new: the user has not allowed this; it is in :LCursor mcp"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_an_error(
    world: World, texts: ProjectTexts, command: str, why: str
) -> None:
    with pytest.raises(McpFailed, match=re.escape(why)):
        prompts.expand(command, world.root, texts)


def test_words_become_arguments() -> None:
    rows = [{"name": name, "required": name == "b"} for name in ("a", "b")]
    assert arguments_of("it:x", 'b="two words" rest x=1', rows) == {
        "a": "rest x=1",
        "b": "two words",
    }
    assert arguments_of("it:x", "a= b=1", rows) == {"a": "", "b": "1"}
    assert arguments_of("it:x", "a=1 free", rows) == {"a": "1", "b": "free"}
