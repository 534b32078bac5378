"""The bench of the chat: what it makes of times, its bare client, its steady server."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from bench import steady
from bench.chat import PARTS, PROMISES, Findings
from bench.chat_screen import steady as running
from bench.chat_talk import Bare, Heard, Talk
from bench.report import figure
from lcursor.config import ChatConfig, ModelConfig
from lcursor.errors import LcursorError
from lcursor.llm.records import Target
from tests.fakes.chat_server import ChatServer, refuse, say

TIMINGS = {"cache_n": 30, "prompt_n": 10, "prompt_ms": 5, "predicted_n": 3, "predicted_ms": 6}
MESSAGES = [{"role": "user", "content": "Hello"}]


def talk(url: str, folder: Path, api: str = "llama.cpp") -> Talk:
    model = ModelConfig("fake", url=url, api=api)
    return Talk(ChatConfig(server="off", model="fake", models=(model,)), folder)


def test_the_bare_client_hears_what_is_said_and_what_it_cost() -> None:
    with (
        ChatServer([say("one", " two", " three", every_s=0.05, timings=TIMINGS)]) as server,
        Bare(Target("fake", server.url)) as bare,
    ):
        heard = bare.ask(MESSAGES, 8)
        deadline_s = time.monotonic() + 5
        while bare.call("/slots")[0]["is_processing"]:  # it may be at the end of its answer
            assert time.monotonic() < deadline_s
            time.sleep(0.005)
    assert heard.text == "one two three"
    assert (heard.prompt_tokens, heard.cached_tokens, heard.answer_tokens) == (40, 30, 3)
    assert heard.sent_s < heard.first_s < heard.last_s <= heard.ended_s
    assert heard.first_ms > 95
    assert server.bodies[0]["max_tokens"] == 8


def test_the_bare_client_says_that_it_was_refused() -> None:
    with (
        ChatServer([refuse(500, "oops")]) as server,
        Bare(Target("fake", server.url)) as bare,
        pytest.raises(LcursorError, match="500"),
    ):
        bare.ask(MESSAGES, 8)


def test_the_slot_is_asked_the_same_and_hears_the_same(tmp_path: Path) -> None:
    with (
        ChatServer([say("one", " two", " three", every_s=0.05, timings=TIMINGS)]) as server,
        talk(server.url, tmp_path) as slot,
    ):
        path = tmp_path / "a.py"
        path.touch()
        chat = slot.open(path)["chat"]
        heard = slot.ask(chat, "Hello", path)
        again = slot.ask(chat, "Hello again", path, after=heard.number)
    assert heard.text == "one two three"
    assert (heard.prompt_tokens, heard.cached_tokens, heard.answer_tokens) == (40, 30, 3)
    assert heard.reason == "stop"
    assert 95 < heard.first_ms < 3000
    assert "writing" in heard.phases
    assert [row["content"] for row in server.bodies[0]["messages"]][1:] == ["Hello"]
    assert len(server.bodies[1]["messages"]) == 4
    assert again.number > heard.number


def test_a_slot_that_fails_ends_the_bench(tmp_path: Path) -> None:
    with ChatServer([refuse(500, "oops")]) as server, talk(server.url, tmp_path) as slot:
        chat = slot.open(tmp_path)["chat"]
        with pytest.raises(LcursorError, match="oops"):
            slot.ask(chat, "Hello", tmp_path)


def test_tokens_a_second_are_of_the_time_after_the_first() -> None:
    heard = Heard(sent_s=10.0, first_s=12.0, last_s=13.0, ended_s=14.0, answer_tokens=51)
    assert heard.first_ms == pytest.approx(2000)
    assert heard.tokens_per_s == pytest.approx(50)


def test_the_steady_server_is_steady(tmp_path: Path) -> None:
    with running(100) as url, talk(url, tmp_path, "openai") as slot:
        chat = slot.open(tmp_path)["chat"]
        began_s = time.perf_counter()
        heard = slot.ask(chat, "Hello", tmp_path)
        took_s = time.perf_counter() - began_s
    assert heard.text == "".join(steady.tokens(100))
    assert 99 / 200 <= took_s < 5


def test_its_tokens_are_all_of_its_text() -> None:
    count = len(steady.TOKEN.findall(steady.TEXT))
    assert "".join(steady.tokens(2 * count)) == 2 * steady.TEXT
    assert 3 < len(steady.TEXT) / count < 6


def test_what_is_told_is_one_object_with_the_promised_numbers() -> None:
    found = Findings({"model": "toy", "machine": {"cpu": "abacus"}, "command": "bench"})
    found.add(([figure("first token, slot", [3.0, 1.0])], {"ttft_ratio": 1.04, "stop_ms": 250.0}))
    told = json.loads(json.dumps(found.as_dict()))
    assert (told["ttft_ratio"], told["stop_ms"], told["model"]) == (1.04, 250.0, "toy")
    assert told["kept"] == {"ttft_ratio": True, "stop_ms": False}
    shown = found.as_markdown()
    assert "| time to first token, slot : bare server | 1.04 | ≤ 1.05 | yes |" in shown
    assert "| stop while writing, to an idle server, ms | 250 | ≤ 200 | **no** |" in shown


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("ttft_ratio", 1.05, 1.06),
        ("tokens_per_s_ratio", 0.97, 0.96),
        ("second_turn_cached_share", 0.95, 0.94),
        ("main_thread_share", 0.05, 0.06),
        ("stop_ms", 200, 201),
        ("typing_p95_more_ms", 2.0, 2.1),
    ],
)
def test_the_promises(name: str, good: float, bad: float) -> None:
    assert PROMISES[name].holds(good)
    assert not PROMISES[name].holds(bad)


def test_the_parts_have_names() -> None:
    assert PARTS == ("overhead", "stop", "turns", "screen", "ghost")
