"""What went wrong with agents in the field, see the numbers in the names of their reports."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lcursor.acp.client import session, work
from lcursor.config import AgentConfig
from tests.unit.acp.runs_of_agents import Make, processes
from tests.waiting import wait_for


def test_a_dead_child_ends_the_run_with_its_last_words(
    agent: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "OPEN_S", 4.0)
    it = agent(fault="mute")
    done = it.finish("say Done.")
    assert done["state"] == "failed"
    assert "no answer to session/new in 4 s\nfake: waits for its child" in done["message"]


def test_an_agent_that_ends_at_once_says_why(agent: Make) -> None:
    done = agent(fault="dead").finish("say Done.")
    assert "ended with status 7\nfake: cannot start its child" in done["message"]


def test_a_crash_keeps_the_changes_so_far_and_can_be_continued(agent: Make) -> None:
    it = agent()
    done = it.finish("write a.py x = 2\\n\ncrash")
    assert done["state"] == "failed"
    assert "segmentation fault" in done["message"]
    assert it.hunks(done) == {"a.py": "x = 2\n"}
    it.messages.clear()
    done = it.go_on("write b.py z = 1\\n")
    assert it.noted("again") == ["session/resume"], "by another process"
    assert it.hunks(done) == {"a.py": "x = 2\n", "b.py": "z = 1\n"}


@pytest.mark.parametrize("fault", ["", "deaf", "stray"])
@pytest.mark.parametrize("ends", ["say Done.", "crash"])
def test_no_process_is_left(agent: Make, fault: str, ends: str) -> None:
    it = agent(fault=fault)
    it.finish(f"run sleep 0\n{ends}")
    assert processes(str(it.folder)) == []


def test_no_process_is_left_when_the_service_closes(agent: Make) -> None:
    it = agent(fault="stray")
    it.start(task="run true\nstuck")
    it.wait_for_step("true", "done")
    assert processes(str(it.folder))
    it.service.close()
    wait_for(lambda: not processes(str(it.folder)), 10.0, "no process")


def test_nothing_is_left_on_disk_outside_of_the_run(agent: Make, tmp_path: Path) -> None:
    it = agent()
    before = {*Path("/tmp").iterdir()}
    it.finish("run touch /tmp/of-the-agent $HOME/x; write a.py x = 2\\n")
    new = {path.name for path in {*Path("/tmp").iterdir()} - before}
    assert "of-the-agent" not in new
    assert {path.name for path in tmp_path.iterdir()} == {"project", "agents", "edits"} & {
        path.name for path in tmp_path.iterdir()
    }


def test_a_stop_is_quick_and_open_questions_are_cancelled(agent: Make) -> None:
    it = agent(agent=AgentConfig(policy="ask"))
    it.start(task="write a.py x = 2\\n\nask curl example.org\nsay Well.")
    it.wait("agent.asks")
    began_s = time.monotonic()
    it.send("agent.stop", id=1)
    done = it.wait("agent.done")
    assert time.monotonic() - began_s < 1.0
    assert done["state"] == "stopped"
    assert it.noted("permission") == [{"outcome": "cancelled"}]
    assert it.hunks(done) == {"a.py": "x = 2\n"}


@pytest.mark.parametrize("ends", ["hang", "stuck"])
def test_a_stop_ends_an_agent_that_does_not_stop(agent: Make, ends: str) -> None:
    it = agent()
    it.start(task=f"run true\n{ends}")
    it.wait_for_step("true", "done")
    began_s = time.monotonic()
    it.send("agent.stop", id=1)
    assert it.wait("agent.done")["state"] == "stopped"
    assert time.monotonic() - began_s < (1.0 if ends == "hang" else 4.5)
    assert processes(str(it.folder)) == []


def test_a_child_session_may_ask_too(agent: Make) -> None:
    it = agent()
    it.finish("child echo hi")
    assert it.written() == "from a child"
    assert it.steps() == [("command", "echo hi", "done")]


def test_a_silent_turn_says_what_that_may_mean(
    agent: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "SILENT_S", 0.3)
    it = agent()
    it.finish("silent 1.5\nsay Done.")
    assert it.steps() == [("note", work.SILENT, "done")], "once"


def test_the_folder_of_a_session_never_changes(agent: Make) -> None:
    it = agent()
    it.finish("say One.")
    it.messages.clear()
    it.go_on("write a.py x = 2\\n")
    assert {row["cwd"] for row in it.noted("new")} == {str(it.root)}
    assert it.noted("again") == ["session/resume"]


def test_unknown_requests_are_answered_and_notifications_ignored(agent: Make) -> None:
    it = agent()
    it.finish("unknown\nsay Done.")
    assert it.noted("unknown") == [-32601]


def test_lines_that_are_no_json_are_skipped(agent: Make) -> None:
    done = agent().finish("noise\nsay Done.")
    assert (done["state"], done["message"]) == ("done", "Done.")


def test_reports_with_other_types_are_harmless(agent: Make) -> None:
    done = agent().finish("odd\nsay Done.")
    assert (done["state"], done["message"]) == ("done", "Done.")


def test_a_line_of_megabytes_is_read(agent: Make) -> None:
    done = agent().finish("huge 3000000")
    assert len(done["message"]) == 3_000_000


def test_a_flood_is_shown_at_a_limited_rate(agent: Make) -> None:
    it = agent()
    done = it.finish("flood 20000")
    assert len(done["message"]) == 5 * 20_000 - 1
    assert len(it.all("agent.delta")) < 1000


def test_a_long_history_is_not_shown_again(agent: Make) -> None:
    it = agent(fault="loads")
    it.finish("say One.")
    it.messages.clear()
    it.go_on("say Two.")
    assert it.written() == "Two."


def test_what_comes_after_the_turn_does_not_begin_it_again(agent: Make) -> None:
    it = agent()
    done = it.finish("late And so on.\nsay Done.")
    assert done["message"] == "Done."
    assert [name for name, _ in it.messages if name == "agent.done"] == ["agent.done"]
    assert it.messages[-1][0] == "agent.done"


def test_files_written_after_the_turn_are_hunks_as_well(agent: Make) -> None:
    it = agent()
    done = it.finish("late Afterwards.\nsay Done.")
    assert it.hunks(done) == {"late.txt": "Afterwards.\n"}
    assert (it.run_folder / "tree/late.txt").exists()


def test_options_are_chosen_by_their_kind(agent: Make) -> None:
    it = agent()
    it.finish("ask true")
    assert it.noted("permission") == [{"outcome": "selected", "optionId": "proceed_once"}]


@pytest.mark.parametrize(
    ("reason", "state", "words"),
    [
        ("refusal", "failed", "declined"),
        ("max_tokens", "stuck", "limit of its model"),
        ("max_turn_requests", "stuck", "limit of requests"),
        ("a_reason_of_tomorrow", "stuck", "a_reason_of_tomorrow"),
    ],
)
def test_reasons_for_an_end(agent: Make, reason: str, state: str, words: str) -> None:
    done = agent().finish(f"say I tried.\nstop {reason}")
    assert done["state"] == state
    assert done["message"].startswith("I tried.\n\n")
    assert words in done["message"]


def test_an_error_as_text_and_one_of_the_protocol_are_shown(agent: Make) -> None:
    it = agent()
    done = it.finish("say Warning: unknown model\nfail 429 too many requests")
    assert done["state"] == "failed"
    assert "429 too many requests" in done["message"]
    assert it.written() == "Warning: unknown model"


def test_its_home_is_its_own(agent: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".fake").mkdir(parents=True)
    (home / ".fake/hooks").write_text("evil")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MY_API_KEY", "12345")
    it = agent()
    it.finish(f"run cat {home}/.fake/hooks; echo $HOME; env")
    text = it.text_of(1)
    assert "12345" not in text
    assert "evil" not in text
    assert text.startswith(str(it.run_folder / "home"))


def test_two_runs_at_a_time_have_homes_and_ports_of_their_own(agent: Make) -> None:
    it = agent()
    it.start(1, task="think One.\nsilent 1\nmodel")
    it.start(2, task="think Two.\nsilent 1\nmodel")
    assert it.wait("agent.done", 1)["message"] == "from the model"
    assert it.wait("agent.done", 2)["message"] == "from the model"


def test_an_agent_without_a_known_mode_does_not_run(agent: Make) -> None:
    done = agent(fault="modeless").finish("write a.py x = 2\\n")
    assert done["state"] == "failed"
    assert "Fake has no mode default" in done["message"]
    assert not done["turn"]


@pytest.mark.parametrize(
    ("fault", "words"), [("old", "speaks version 0 of ACP"), ("login", "Authentication required")]
)
def test_an_agent_that_cannot_begin(agent: Make, fault: str, words: str) -> None:
    done = agent(fault=fault).finish("say Done.")
    assert done["state"] == "failed"
    assert words in done["message"]
