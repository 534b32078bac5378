"""`bench chat`: its two clients, its steady server, and its promises."""

from __future__ import annotations

import json
import time
from pathlib import Path

from bench import steady
from bench.chat import PROMISES
from bench.chat_clients import Bare, Chat
from bench.report import Report, wait
from lcursor.config import ChatConfig, ModelConfig
from lcursor.llm.records import ServedModel
from tests.fakes.chat_server import ChatServer, say

TIMINGS = {"cache_n": 30, "prompt_n": 10, "prompt_ms": 5, "predicted_n": 3, "predicted_ms": 6}
MESSAGES = [{"role": "user", "content": "Hello"}]


def chat_of(url: str, folder: Path, api: str = "llama.cpp") -> Chat:
    model = ModelConfig("fake", url=url, api=api)
    return Chat(ChatConfig(server="off", model="fake", models=(model,)), folder)


def test_both_clients_return_the_text_the_times_and_the_cost(tmp_path: Path) -> None:
    reply = say("one", " two", " three", every_s=0.05, timings=TIMINGS)
    with ChatServer([reply]) as server:
        with Bare(ServedModel("fake", server.url)) as bare:
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


def test_the_steady_server_is_steady(tmp_path: Path) -> None:
    with steady.running(200, 100) as url, chat_of(url, tmp_path, "openai") as chat:
        key = chat.open(tmp_path)
        began_s = time.perf_counter()
        answer = chat.ask(key, "Hello", tmp_path)
        took_s = time.perf_counter() - began_s
    assert answer.text == "".join(steady.tokens(100))
    assert took_s >= 99 / 200


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
