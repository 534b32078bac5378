"""`bench chat`: its two clients, its steady server, and its promises."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from bench import steady
from bench.chat import PARTS, PROMISES
from bench.chat_clients import Answer, Bare, Chat
from bench.report import Report, wait
from lcursor.config import ChatConfig, ModelConfig
from lcursor.errors import LcursorError
from lcursor.llm.records import Target
from tests.fakes.chat_server import ChatServer, refuse, say

TIMINGS = {"cache_n": 30, "prompt_n": 10, "prompt_ms": 5, "predicted_n": 3, "predicted_ms": 6}
MESSAGES = [{"role": "user", "content": "Hello"}]


def chat_of(url: str, folder: Path, api: str = "llama.cpp") -> Chat:
    model = ModelConfig("fake", url=url, api=api)
    return Chat(ChatConfig(server="off", model="fake", models=(model,)), folder)


def test_both_clients_return_the_text_the_times_and_the_cost(tmp_path: Path) -> None:
    reply = say("one", " two", " three", every_s=0.05, timings=TIMINGS)
    with ChatServer([reply]) as server:
        with Bare(Target("fake", server.url)) as bare:
            answers = [bare.ask(MESSAGES, 8)]
            assert wait(lambda: not bare.call("/slots")[0]["is_processing"], 5)
        with chat_of(server.url, tmp_path) as chat:
            path = tmp_path / "a.py"
            path.touch()
            key = chat.open(path)
            answers.append(chat.ask(key, "Hello", path))
            again = chat.ask(key, "Hello again", path, after=answers[1].number)
    for answer in answers:
        assert answer.text == "one two three"
        assert (answer.prompt_tokens, answer.cached_tokens, answer.answer_tokens) == (40, 30, 3)
        assert answer.sent_s < answer.first_s < answer.last_s
        assert answer.first_ms > 95
    assert server.bodies[0]["max_tokens"] == 8
    assert [row["content"] for row in server.bodies[1]["messages"]][1:] == ["Hello"]
    assert len(server.bodies[2]["messages"]) == 4
    assert answers[1].reason == "stop"
    assert again.number > answers[1].number


def test_a_rejection_ends_the_bench(tmp_path: Path) -> None:
    with ChatServer([refuse(500, "oops")]) as server:
        with Bare(Target("fake", server.url)) as bare, pytest.raises(LcursorError, match="500"):
            bare.ask(MESSAGES, 8)
        with chat_of(server.url, tmp_path) as chat, pytest.raises(LcursorError, match="oops"):
            chat.ask(chat.open(tmp_path), "Hello", tmp_path)


def test_tokens_a_second_count_from_the_first_one() -> None:
    answer = Answer(sent_s=10.0, first_s=12.0, last_s=13.0, answer_tokens=51)
    assert answer.first_ms == pytest.approx(2000)
    assert answer.tokens_per_s == pytest.approx(50)


def test_the_steady_server_is_steady(tmp_path: Path) -> None:
    with steady.running(200, 100) as url, chat_of(url, tmp_path, "openai") as chat:
        key = chat.open(tmp_path)
        began_s = time.perf_counter()
        answer = chat.ask(key, "Hello", tmp_path)
        took_s = time.perf_counter() - began_s
    assert answer.text == "".join(steady.tokens(100))
    assert took_s >= 99 / 200


def test_its_tokens_are_all_of_its_text() -> None:
    count = len(steady.TOKEN.findall(steady.TEXT))
    assert "".join(steady.tokens(2 * count)) == 2 * steady.TEXT
    assert 3 < len(steady.TEXT) / count < 6


def test_a_report_has_figures_numbers_and_promises() -> None:
    report = Report({"model": "toy", "machine": {"cpu": "abacus"}, "command": "bench"})
    report.promises = PROMISES
    report.add("first token, slot", [3.0, 1.0])
    report.numbers |= {"ttft_ratio": 1.04, "stop_ms": 250.0}
    document = json.loads(json.dumps(report.as_dict()))
    assert (document["ttft_ratio"], document["stop_ms"], document["model"]) == (1.04, 250.0, "toy")
    assert document["kept"] == {"ttft_ratio": True, "stop_ms": False}
    shown = report.as_markdown()
    assert "| first token, slot | 2 | 2.00 ms | 3.00 ms | 3.00 ms |  |  |" in shown
    assert "| time to first token, slot : bare server | 1.04 | ≤ 1.05 | yes |" in shown
    assert "| stop while writing, to an idle server, ms | 250 | ≤ 200 | **no** |" in shown
    assert not report.holds


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
