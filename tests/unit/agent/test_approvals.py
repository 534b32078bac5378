"""The decisions about calls: policies, the user's answers, tricks and random sequences."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evals import policy_escapes
from evals.policy_escapes import ATTEMPTS, Attempt
from lcursor.agent.approvals import PLAN_ONLY, Approvals, approved_plan, decide
from lcursor.agent.records import Call, Policy
from lcursor.agent.shell_rules import Rules
from lcursor.config import AgentConfig
from lcursor.process.sandbox import Level

RULES = Rules.of(AgentConfig(allow=("make test",), forbid=("curl",)))
CALLS = {
    "view": Call("str_replace_editor", {"command": "view", "path": "a"}),
    "edit": Call("str_replace_editor", {"command": "create", "path": "a", "file_text": ""}),
    "rewrite": Call("rewrite", {"path": "a", "region": "r1", "instruction": "x"}),
    "grep": Call("grep", {"pattern": "x"}),
    "finish": Call("finish", {"summary": "x"}),
    "safe": Call("bash", {"command": "ls"}),
    "ruled": Call("bash", {"command": "make test"}),
    "unknown": Call("bash", {"command": "npm i"}),
    "forbidden": Call("bash", {"command": "curl x"}),
    "escalated": Call("bash", {"command": "ls", "escalate": "network"}),
    "blank": Call("bash", {"command": "npm i", "escalate": " "}),
    "odd": Call("mcp_x", {}),
}
TABLE = {
    # columns: plan, ask, auto, full with a sandbox; then auto without
    "view": "allow allow allow allow allow",
    "edit": "forbid allow allow allow allow",
    "rewrite": "forbid allow allow allow allow",
    "grep": "allow allow allow allow allow",
    "finish": "allow allow allow allow allow",
    "safe": "allow allow allow allow allow",
    "ruled": "forbid allow allow allow allow",
    "unknown": "forbid ask allow allow ask",
    "forbidden": "forbid forbid forbid forbid forbid",
    "escalated": "forbid ask ask allow ask",
    "blank": "forbid ask ask allow ask",
    "odd": "forbid ask ask ask ask",
}
COLUMNS: tuple[tuple[Policy, Level], ...] = (
    ("plan", "bubblewrap"),
    ("ask", "landlock"),
    ("auto", "unshare"),
    ("full", "bubblewrap"),
    ("auto", "none"),
)


@pytest.mark.parametrize("name", CALLS)
def test_policies(name: str, tmp_path: Path) -> None:
    found = [decide(CALLS[name], *column, RULES, tmp_path).verdict for column in COLUMNS]
    assert found == TABLE[name].split()


def test_the_reason_for_a_question(tmp_path: Path) -> None:
    found = decide(CALLS["escalated"], "auto", "bubblewrap", RULES, tmp_path)
    assert found.why == "it leaves the sandbox: network"
    assert decide(CALLS["edit"], "plan", "bubblewrap", RULES, tmp_path).why == PLAN_ONLY
    assert approved_plan(" 1. x\n").startswith("Approved:\n\n1. x\n\n")


def test_answers(tmp_path: Path) -> None:
    call, again = (Call("bash", {"command": text}) for text in ("npm i", "npm   'i'"))
    escalated = Call("bash", {"command": "npm i", "escalate": "network"})
    answers = Approvals("ask", "bubblewrap", RULES, tmp_path)
    answers.remember(call, "once")
    assert answers.decide(call).verdict == "ask"

    answers.remember(call, "run")
    assert answers.decide(again).verdict == "allow"
    assert answers.decide(escalated).verdict == "ask"
    answers.remember(escalated, "reject", "no network\n")
    found = answers.decide(Call("bash", {"command": " npm i", "escalate": "another reason"}))
    assert (found.verdict, found.why) == ("forbid", "The user rejected this: no network.")


def test_an_approval_does_not_outweigh_a_rule_or_plan_mode(tmp_path: Path) -> None:
    answers = Approvals("plan", "bubblewrap", RULES, tmp_path)
    for name in ("forbidden", "unknown", "edit"):
        answers.remember(CALLS[name], "run")
        assert answers.decide(CALLS[name]).verdict == "forbid"
    answers.policy = "auto"
    assert answers.decide(CALLS["edit"]).verdict == "allow"
    assert answers.decide(CALLS["forbidden"]).verdict == "forbid"


@pytest.mark.parametrize("one", ATTEMPTS, ids=lambda one: one.name)
def test_a_trick(one: Attempt, tmp_path: Path) -> None:
    found = policy_escapes.attempt(one, tmp_path)
    assert found.verdict == one.verdict
    assert not found.is_escaped
    assert found.control == "works" or one.program


def test_there_are_sixteen_tricks() -> None:
    assert len(ATTEMPTS) == 16


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_nothing_runs_unapproved(seed: int, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    if not folder.exists():
        policy_escapes.make_folder(folder)
    assert list(policy_escapes.unapproved(seed, folder)) == []
