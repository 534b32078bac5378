"""The runs of a service: their messages, questions, stops and ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lcursor.errors import Cancelled, ChatMissing, LcursorError
from lcursor.run.run import Run, Runs
from lcursor.stop import Stop
from tests.waiting import wait_for


class Example(Run[str]):
    """A run that does what a test passes."""

    thread_name = "lcursor-example"
    failure = "the example failed"

    def __init__(
        self,
        service: Service,
        number: int,
        work: Callable[[Example], str],
        store: Callable[[], Any],
    ) -> None:
        super().__init__(number, service.send, service.runs)
        self._do, self._store = work, store

    def _work(self) -> str:
        with self.using_model():
            return self._do(self)

    def _ended_by(self, error: LcursorError) -> str:
        return "stopped" if isinstance(error, Cancelled) else "failed"

    def _store_end(self, outcome: str) -> None:
        self._store()

    def _send_end(self, outcome: str) -> None:
        self._send("done", {"id": self.number, "outcome": outcome})


class Service:
    """Starts runs, and keeps what they send."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []
        self.busy: list[bool] = []
        self.runs: Runs[Example] = Runs(self.busy.append)

    def send(self, method: str, fields: Mapping[str, Any]) -> None:
        """Receive a message."""
        self.sent.append((method, fields.get("outcome", fields.get("message", ""))))

    def start(
        self, work: Callable[[Example], str], number: int = 1, store: Callable[[], Any] = list
    ) -> Example:
        """Start a run."""
        run = Example(self, number, work, store)
        self.runs.start(run)
        return run

    def wait(self, count: int = 1) -> list[tuple[str, Any]]:
        """Wait for the ends of some runs; return all messages."""
        wait_for(lambda: [name for name, _ in self.sent].count("done") == count)
        return self.sent


@pytest.fixture
def service() -> Service:
    """Return a service."""
    return Service()


def test_a_run_ends_once(service: Service) -> None:
    def send_step(run: Example) -> str:
        run.send("step")
        return "good"

    run = service.start(send_step)
    assert service.wait() == [("step", ""), ("done", "good")]
    assert service.busy == [True, False]
    assert service.runs.find(1) is None
    run.send("too late")
    run.stop()
    run.leave(0)
    assert service.sent == [("step", ""), ("done", "good")]


def test_a_failure_is_reported_before_the_end(service: Service) -> None:
    def fail(run: Example) -> str:
        raise ChatMissing("there is none")

    service.start(fail)
    assert service.wait() == [("error", "there is none"), ("done", "failed")]


def test_an_unexpected_failure_is_logged(service: Service) -> None:
    def fail(run: Example) -> str:
        raise KeyError("x")

    service.start(fail)
    log, error, done = service.wait()
    assert log[0] == "log"
    assert "KeyError" in log[1]
    assert (error, done) == (("error", "the example failed"), ("done", "failed"))


def test_a_failure_after_a_stop_is_not_reported(service: Service) -> None:
    def work(run: Example) -> str:
        run.stopped.wait(30)
        raise ChatMissing("the connection was closed")

    service.start(work)
    service.runs.stop(1, 30)
    assert service.wait() == [("done", "stopped")]


def test_an_end_that_cannot_be_stored_is_sent(service: Service) -> None:
    def fail() -> None:
        raise KeyError("x")

    service.start(lambda run: "good", store=fail)
    assert [name for name, _ in service.wait()] == ["log", "done"]


def test_a_thread_that_hangs_does_not_delay_the_end(service: Service) -> None:
    may_end = threading.Event()

    def hang(run: Example) -> str:
        may_end.wait(30)
        run.send("too late")
        return "good"

    run = service.start(hang)
    service.runs.close(0.05)
    assert service.sent == [("done", "stopped")]
    may_end.set()
    run._thread.join(30)
    assert service.sent == [("done", "stopped")]


def test_a_question_gets_its_own_answer(service: Service) -> None:
    def work(run: Example) -> str:
        run.answer("too early")
        return str(run.wait_for_answer("which") + run.wait_for_answer("and"))

    run = service.start(work)
    wait_for(lambda: service.sent == [("which", "")])
    assert service.busy == [True, False], "it does not use the model meanwhile"
    run.answer("a", 1)
    wait_for(lambda: len(service.sent) == 2)
    run.answer("for the first question", 1)
    run.answer("b")
    assert service.wait()[-1] == ("done", "ab")


def test_a_stop_ends_a_question(service: Service) -> None:
    run = service.start(lambda run: str(run.wait_for_answer("which")))
    wait_for(lambda: service.sent)
    run.stop()
    assert service.wait() == [("which", ""), ("done", "stopped")]


def test_the_service_is_busy_until_the_last_run_stops(service: Service) -> None:
    first, second = threading.Event(), threading.Event()
    service.start(lambda run: str(first.wait(30)), 1)
    service.start(lambda run: str(second.wait(30)), 2)
    wait_for(lambda: len(service.runs.all()) == 2)
    first.set()
    service.wait(1)
    assert service.busy == [True]
    second.set()
    service.wait(2)
    assert service.busy == [True, False]


def test_stop_closes_what_blocks() -> None:
    stop, closed = Stop(), list[int]()
    with pytest.raises(Cancelled), stop.closing(lambda: closed.append(1)):
        threading.Timer(0.05, stop.set).start()
        wait_for(lambda: closed)
    with pytest.raises(Cancelled), stop.closing(lambda: closed.append(2)):
        assert closed == [1, 2], "at once, as it is set already"


def test_stop_closes_nothing_after_the_block() -> None:
    stop, closed = Stop(), list[int]()
    with stop.closing(lambda: closed.append(1)):
        pass
    stop.set()
    assert not closed
