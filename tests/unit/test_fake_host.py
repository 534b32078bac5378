"""The fake host refuses what the real one would."""

from __future__ import annotations

import pytest

from lcursor.errors import MessageInvalid
from tests.fakes.control import FakeHost


@pytest.mark.parametrize(
    ("method", "params"),
    [("fim.cancel", {"id": "7"}), ("fim.cancel", {}), ("fim.cancell", {"id": 7})],
)
def test_an_invalid_message_of_neovim_fails_the_test(method: str, params: dict[str, str]) -> None:
    fake = FakeHost()
    fake._hear(1, method, params)
    with pytest.raises(AssertionError, match=method):
        fake.__exit__(None, None, None)


def test_an_invalid_message_to_neovim_is_not_sent() -> None:
    with FakeHost() as fake, pytest.raises(MessageInvalid, match="'text' is missing"):
        fake.send("fim.partial", {"id": 1, "buf": 1, "tick": 1})
