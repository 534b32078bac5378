"""What servers cost a run: its prompt stays cached, with any number of tools."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from lcursor.config import AgentConfig
from tests.unit.agent.runs_over_http import Session, call, finish, view
from tests.unit.mcp.conftest import World, fake

SCRIPT = [
    view(),
    call("mcp_find", words="repeat a text"),
    call("mcp_call", name="it__echo", arguments={"text": "one"}),
    call("mcp_call", name="it__echo", arguments={"text": "two"}),
    call("mcp_find", words="say hello"),
    view("b.py"),
    finish(),
]


@pytest.mark.parametrize("behaviour", [(), ("many",)], ids=["3 tools", "300 tools"])
def test_a_run_with_servers_reads_only_what_is_new(
    world: World, tmp_path: Path, behaviour: tuple[str, ...]
) -> None:
    world.configure(it=fake(*behaviour))
    world.allow("it")
    session = Session(tmp_path, SCRIPT, agent=AgentConfig(), servers_of=world.servers.of)
    try:
        session.start(1)
        assert session.wait("agent.done", 1)["state"] == "done"
        assert "one" in session.texts()[2]
        sizes = [len(each) for each in session.server.ids]
        new = [after - before for before, after in itertools.pairwise(sizes)]
        fresh = session.server.fresh[1:]
        assert all(count <= added for count, added in zip(fresh, new, strict=True))
        assert sum(fresh) <= 0.03 * sum(sizes[1:])
        prompts = session.server.prompts
        assert all(each.startswith(prompts[0][: len(prompts[0]) // 2]) for each in prompts)
    finally:
        session.close()
