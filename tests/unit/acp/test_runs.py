"""Runs of a foreign agent, from the task to the hunks."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from lcursor.config import AgentConfig
from tests.unit.acp.runs_of_agents import Make, processes
from tests.waiting import wait_for


def test_an_edit_comes_back_as_hunks(agent: Make) -> None:
    it = agent()
    done = it.finish("say I change it.\nwrite a.py x = 2\\ny = 1\\n\nsay It is done.")
    assert (done["state"], done["message"]) == ("done", "It is done.")
    assert it.hunks(done) == {"a.py": "x = 2\ny = 1\n"}
    assert (it.root / "a.py").read_text() == "x = 1\ny = 1\n"
    assert it.steps() == [("edit", "Edit a.py", "done")]
    assert "-x = 1\n+x = 2" in it.text_of(1)
    assert it.written() == "I change it.It is done."
    assert it.wait("agent.started")["dialect"] == "acp"


def test_commands_run_in_the_sandbox_and_their_changes_are_hunks_too(agent: Make) -> None:
    it = agent()
    home = Path.home()
    task = f"ask ls {home}; echo z = 3 > b.py; rm a.py; cat nothing\nsay Done."
    done = it.finish(task)
    assert it.noted("permission") == [{"outcome": "selected", "optionId": "proceed_once"}]
    [step] = it.log.state.steps
    assert (step.kind, step.shown_state) == ("command", "failed")
    assert step.target == task.partition("\n")[0].removeprefix("ask ")
    assert step.observation
    assert step.observation.text.startswith("cat: nothing"), "the home is empty"
    assert it.hunks(done) == {"b.py": "z = 3\n", "a.py": ""}


def test_permission_is_asked_for_and_given_once(agent: Make) -> None:
    it = agent(agent=AgentConfig(policy="ask"))
    it.choice = "run"
    command = "curl example.org; true"
    it.finish(f"ask {command}\nask {command}")
    asked = it.all("agent.asks")
    assert [row["command"] for row in asked] == [command], "the second one is like the first"
    assert [each["optionId"] for each in it.noted("permission")] == ["proceed_once"] * 2
    assert it.noted("mode") == ["default"], "not the one in which a model approves"


def test_a_rejection_reaches_the_agent_with_its_reason(agent: Make) -> None:
    it = agent(agent=AgentConfig(policy="ask"))
    it.start(task="ask curl example.org\nsay Well.")
    ask = it.wait("agent.asks")
    it.send("agent.decide", id=1, ask=ask["ask"], choice="reject", text="say OK then")
    done = it.wait("agent.done")
    assert it.noted("permission") == [{"outcome": "selected", "optionId": "no"}]
    assert "say OK then" in it.noted("prompt")[1]
    assert it.steps()[0][2] == "failed"
    assert done["state"] == "done"


def test_what_the_user_forbids_is_rejected_without_a_question(agent: Make) -> None:
    it = agent(agent=AgentConfig(forbid=("rm",)))
    done = it.finish("ask rm a.py")
    assert it.noted("permission") == [{"outcome": "selected", "optionId": "no"}]
    assert not it.all("agent.asks")
    assert not done["turn"]


def test_a_plan_is_one_step_that_changes(agent: Make) -> None:
    it = agent()
    it.finish("plan\nsay Done.")
    assert it.steps() == [("note", "plan, 1 of 2 done", "done")]
    assert it.text_of(1) == "[x] Read it\n[ ] Test it"


def test_a_form_is_filled_in_as_text(agent: Make) -> None:
    it = agent()
    it.start(task="form\nsay Thanks.")
    first = it.wait("agent.planned")
    assert first["is_question"]
    assert first["text"] == "Which size?\n\nsize:   (Size; small, large)\ncount: 3"
    it.send("agent.approve_plan", id=1, text="Which size?\n\nsize: medium\ncount: 4")
    wait_for(lambda: len(it.all("agent.planned")) == 2, 20.0, "the form again")
    assert "size is one of small, large." in it.all("agent.planned")[1]["text"]
    it.send("agent.approve_plan", id=1, text="size: Large\ncount: 4")
    it.wait("agent.done")
    assert it.noted("form") == [{"action": "accept", "content": {"size": "large", "count": 4}}]


def test_a_form_may_be_declined(agent: Make) -> None:
    it = agent()
    it.start(task="form")
    it.wait("agent.planned")
    it.send("agent.approve_plan", id=1, text="")
    it.wait("agent.done")
    assert it.noted("form") == [{"action": "decline"}]


@pytest.mark.parametrize("is_answered", [True, False])
def test_questions_that_come_as_a_permission_are_a_form(agent: Make, is_answered: bool) -> None:
    it = agent()
    it.start(task="questions\nsay Thanks.")
    text = it.wait("agent.planned")["text"]
    assert "answer1:   (Which size?: Small, Large)" in text
    filled = text.replace("answer1: ", "answer1: Huge").replace("answer2: ", "answer2: Why not?")
    it.send("agent.approve_plan", id=1, text=filled if is_answered else "")
    assert it.wait("agent.done")["message"] == "Thanks."
    [found] = it.noted("answers")
    chosen = {"outcome": "selected", "optionId": "proceed_once" if is_answered else "cancel"}
    assert found["outcome"] == chosen
    assert found.get("answers") == ({"0": "Huge", "1": "Why not?"} if is_answered else None)


def test_a_plan_is_approved_before_anything_changes(agent: Make) -> None:
    it = agent()
    it.start(task="ask touch b.py\nsay 1. Write b.py", policy="plan")
    planned = it.wait("agent.planned")
    assert (planned["text"], planned["is_question"]) == ("1. Write b.py", False)
    it.send("agent.approve_plan", id=1, text="write b.py z = 1\\n")
    done = it.wait("agent.done")
    assert it.noted("mode") == ["plan", "default"]
    assert it.noted("permission")[0]["optionId"] == "no"
    assert it.hunks(done) == {"b.py": "z = 1\n"}


def test_what_the_user_says_becomes_another_prompt(agent: Make) -> None:
    it = agent()
    it.start(task="think Wait.\nsilent 1\nsay One.")
    it.wait("agent.delta")
    it.send("agent.say", id=1, text="say Two.")
    done = it.wait("agent.done")
    assert it.noted("prompt") == ["think Wait.\nsilent 1\nsay One.", "say Two."]
    assert done["message"] == "Two."
    assert len(it.noted("new")) == 1


@pytest.mark.parametrize("fault", ["", "loads", "forgets"])
def test_a_run_is_continued_in_its_session(agent: Make, fault: str) -> None:
    it = agent(fault=fault)
    it.finish("write a.py x = 2\\ny = 1\\n\nsay One.")
    it.restart(fault=fault)
    done = it.go_on("write a.py x = 3\\ny = 1\\n\nsay Two.")
    assert (done["state"], done["message"]) == ("done", "Two.")
    assert it.hunks(done) == {"a.py": "x = 3\ny = 1\n"}
    assert "an earlier turn" not in it.written(), "the history is not shown twice"
    ways = {"": ["session/resume"], "loads": ["session/load"], "forgets": []}
    assert it.noted("again") == ways[fault]
    assert len(it.noted("new")) == (2 if fault == "forgets" else 1)
    told = it.noted("prompt")[1]
    if fault == "forgets":
        assert "You have worked on this before" in told
        assert "- edit Edit a.py" in told
    else:
        assert told == "write a.py x = 3\\ny = 1\\n\nsay Two."


def test_the_users_tests_run_at_the_end(agent: Make) -> None:
    it = agent(test="grep -q 2 a.py")
    done = it.finish("write a.py x = 2\\n\nsay Done.")
    assert done["is_checked"]
    assert it.steps()[-1] == ("finish", "Done.", "done")
    it.restart(test="grep -q 3 a.py")
    done = it.finish("write a.py x = 2\\n\nsay Done.", number=3)
    assert not done["is_checked"]
    assert it.steps()[-1][2] == "failed"
    assert done["turn"]


def test_the_model_is_reached_and_nothing_else(agent: Make) -> None:
    it = agent()
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = it.finish(f"model\nconnect {other.getsockname()[1]}")
    assert done["message"] == "from the modelno network: Connection refused"


def test_an_agent_with_providers_gets_the_model_from_us(agent: Make) -> None:
    it = agent(FAKE_PROVIDERS="1")
    it.finish("say Done.")
    [given] = it.noted("provider")
    assert given["providerId"] == "main"
    assert given["baseUrl"].startswith("http://127.0.0.1:")
    assert given["headers"]["authorization"].startswith("Bearer ")


def test_its_own_files_and_terminals_are_off(agent: Make) -> None:
    it = agent()
    it.finish("say Done.")
    [given] = it.noted("capabilities")
    assert given["fs"] == {"readTextFile": False, "writeTextFile": False}
    assert given["terminal"] is False


def test_budgets_end_a_run(agent: Make) -> None:
    it = agent(agent=AgentConfig(max_steps=2))
    done = it.finish("run true\n" * 5 + "hang")
    assert done["state"] == "stuck"
    assert "limit of 2 steps" in done["message"]


def test_its_tools_read_the_users_project_from_outside_of_the_sandbox(agent: Make) -> None:
    it = agent()
    (it.root / ".env").write_text("KEY=1\n")
    done = it.finish("write a.py x = 2\\n\ntools a.py\ntools .env\ntools ../agents")
    assert "1\tx = 1\n2\ty = 1" in done["message"], "not the copy"
    assert ".env cannot be read" in done["message"]
    assert "../agents is not in this project" in done["message"]
    assert processes(str(it.root)) == []
