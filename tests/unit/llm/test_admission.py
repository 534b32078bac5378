"""Which requests a server gets at once, and in which order."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.errors import ServerUnreachable
from lcursor.llm.admission import ANSWER_TOKENS, Admission, Admitted
from lcursor.llm.client import ChatClient
from lcursor.llm.records import Event, Message, Queued, SamplingParams, ServedModel, Text
from tests.fakes.chat_server import ChatServer, say
from tests.waiting import wait_for


def running(*requests: Admitted) -> list[bool]:
    return [each.is_running.is_set() for each in requests]


def test_without_limits_all_run() -> None:
    admission = Admission()
    assert running(*(admission.enter(10**6, 0, 0) for _ in range(9))) == [True] * 9


def test_a_request_waits_for_a_slot() -> None:
    admission = Admission()
    admission.resize(2, 0)
    one, two, three = (admission.enter(1, 1, 0) for _ in range(3))
    assert running(one, two, three) == [True, True, False]
    one.leave()
    one.leave()
    assert running(three) == [True]


def test_prompts_and_expected_answers_fit_the_context() -> None:
    admission = Admission()
    admission.resize(9, 4 * ANSWER_TOKENS)
    one = admission.enter(2 * ANSWER_TOKENS, 0, 0)
    short, long = admission.enter(100, 100, 0), admission.enter(100, 10 * ANSWER_TOKENS, 0)
    assert running(one, short, long) == [True, True, False]
    short.leave()
    assert running(long) == [False]
    one.leave()
    assert running(long) == [True]


def test_one_that_is_too_large_runs_alone() -> None:
    admission = Admission()
    admission.resize(9, 1000)
    assert running(admission.enter(5000, 0, 0)) == [True]


def test_a_lower_rank_comes_first_and_none_overtakes() -> None:
    admission = Admission()
    admission.resize(9, 10_000)
    one = admission.enter(9000, 1, 0)
    large, small, chat = (
        admission.enter(9000, 1, 5),
        admission.enter(10, 1, 7),
        admission.enter(5000, 1, 0),
    )
    assert running(large, small, chat) == [False] * 3
    one.leave()
    assert running(large, small, chat) == [False, False, True]
    chat.leave()
    assert running(large, small) == [True, True]


def test_one_that_leaves_before_its_turn_is_forgotten() -> None:
    admission = Admission()
    admission.resize(1, 0)
    one, two, three = (admission.enter(1, 1, 0) for _ in range(3))
    two.leave()
    one.leave()
    assert running(two, three) == [False, True]


@given(
    st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 3), st.booleans()), max_size=40),
    st.integers(1, 9),
)
def test_the_limits_hold_and_all_run_in_the_end(
    wanted: list[tuple[int, int, bool]], slots: int
) -> None:
    admission = Admission()
    admission.resize(slots, 6000)
    entered = list[Admitted]()
    left = set[Admitted]()

    def check() -> list[Admitted]:
        now = [each for each in entered if each not in left and each.is_running.is_set()]
        assert len(now) <= slots
        assert len(now) <= 1 or sum(each.tokens for each in now) <= 6000
        return now

    for tokens, rank, ends_one in wanted:
        entered.append(admission.enter(tokens, 10, rank))
        now = check()
        if ends_one and now:
            now[0].leave()
            left.add(now[0])
            check()
    while now := check():
        now[0].leave()
        left.add(now[0])
    assert left == {*entered}


def test_a_stream_says_that_it_waits_and_can_be_closed_meanwhile() -> None:
    with ChatServer([say("a", "b"), say("c")]) as server:
        client = ChatClient(ServedModel("m", server.url))
        client.probe()  # of a llama-server with one slot
        words, sampling = [Message("user", "hi")], SamplingParams(9)
        first = iter(client.stream(words, sampling))
        assert next(each for each in first if isinstance(each, Text)).text == "a"
        second, third = client.stream(words, sampling), client.stream(words, sampling)
        seen = list[Event]()

        def read() -> None:
            seen.extend(second)

        thread = threading.Thread(target=read)
        thread.start()
        waiting = iter(third)
        assert next(waiting) == Queued(is_waiting=True)
        third.close()
        wait_for(lambda: Queued(is_waiting=True) in seen or seen, what="it waits")
        assert not [each for each in seen if isinstance(each, Text)]
        list(first)
        thread.join(10)
        client.close()
    assert seen[:2] == [Queued(is_waiting=True), Queued(is_waiting=False)]
    assert [each.text for each in seen if isinstance(each, Text)] == ["c"]


def test_a_stream_whose_client_others_closed_is_a_lost_request() -> None:
    """A run then asks again over the next connection, instead of ending as stopped."""
    with ChatServer([say("a", "b", every_s=1.0)]) as server:
        client = ChatClient(ServedModel("m", server.url))
        client.probe()
        words = [Message("user", "hi")]
        first, second = iter(client.stream(words)), iter(client.stream(words))
        next(each for each in first if isinstance(each, Text))
        assert next(second) == Queued(is_waiting=True)
        client.close()
        for stream in (first, second):
            with pytest.raises(ServerUnreachable):
                list(stream)
