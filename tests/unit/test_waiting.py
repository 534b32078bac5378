"""The harness's own wait."""

from __future__ import annotations

import pytest

from tests.waiting import wait_for


def test_the_first_true_value_is_returned() -> None:
    values = iter([None, 0, "", "there"])
    assert wait_for(lambda: next(values)) == "there"


def test_what_was_waited_for_is_in_the_failure() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"not within 0\.01 s: the file is written"):
        wait_for(lambda: False, 0.01, "the file is written")


def test_a_condition_that_holds_needs_no_time() -> None:
    assert wait_for(lambda: 7, timeout_s=-1) == 7
