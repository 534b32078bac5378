"""What a valid ghost is, where is typed, what is made of the times; and the peer's bad inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.bench.peer import LlamaVim
from lcursor.bench.report import percentile
from lcursor.bench.trials import (
    KEYS,
    MARGIN_ROWS,
    Flush,
    Spot,
    Trial,
    as_dict,
    as_markdown,
    ghost_times_ms,
    pick_spots,
    summary,
)
from lcursor.bench.typing import read_lines
from lcursor.drive.screen import Screen
from lcursor.errors import LcursorError
from tests.fakes.model_server import ModelServer

LINES = [f"    value_{number} = compute(first, second)" for number in range(200)]
FACTS = {
    "machine": {"cpu": "abacus"},
    "command": "bench",
    "file": "a.py",
    "seed": 1,
    "pace_ms": 120.0,
}


def flushes(*drawn: tuple[float, str, str]) -> list[Flush]:
    return [Flush(*each) for each in drawn]


def test_a_ghost_that_stays_valid_counts_when_it_is_drawn_anew() -> None:
    seen = flushes((1.002, "re", "turn x"), (2.003, "ret", "urn x"))
    assert ghost_times_ms(seen, [1.0, 2.0], 1)[0] == pytest.approx([2.0, 3.0])


def test_a_ghost_that_is_replaced_by_another_does_not_count() -> None:
    seen = flushes((1.01, "re", "mark"), (1.05, "re", ""), (1.5, "re", "turn x"))
    assert ghost_times_ms(seen, [1.0], 1)[0] == pytest.approx([500.0])


def test_the_beginning_of_the_final_suggestion_counts() -> None:
    seen = flushes(
        (1.1, "re", "turn"), (1.2, "re", "turn x\n    y"), (1.3, "re", "turn x\n    y = 1")
    )
    assert ghost_times_ms(seen, [1.0], 1)[0] == pytest.approx([100.0])


def test_more_than_the_final_suggestion_does_not_count() -> None:
    seen = flushes((1.1, "re", "turn x + 1"), (1.2, "re", "turn x"))
    assert ghost_times_ms(seen, [1.0], 1)[0] == pytest.approx([200.0])


def test_a_screen_without_the_key_does_not_answer_it() -> None:
    seen = flushes((2.001, "re", "turn"), (2.4, "ret", "urn"))
    assert ghost_times_ms(seen, [1.0, 2.0], 1)[0] == pytest.approx([1001.0, 400.0])


def test_a_key_may_be_answered_after_later_ones() -> None:
    seen = flushes((1.001, "re", ""), (2.001, "ret", ""), (2.5, "ret", "urn"))
    times, answers = ghost_times_ms(seen, [1.0, 2.0], 1)
    assert times == pytest.approx([1500.0, 500.0])
    assert answers == pytest.approx([500.0, 500.0])  # counted from the key that changed its mind


@pytest.mark.parametrize("ghost", ["", "  ", "\n"])
def test_no_ghost_in_the_end_answers_no_key(ghost: str) -> None:
    seen = flushes((1.1, "re", "turn"), (1.2, "re", ghost))
    assert ghost_times_ms(seen, [1.0], 1)[0] == [None]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["", "b", "bc", "bx", "c"])), min_size=1),
    st.integers(1, 4),
)
def test_later_keys_are_never_answered_earlier(drawn: list[tuple[int, str]], keys: int) -> None:
    seen = [Flush(at / 8, "ab" * typed, ghost) for at, (typed, ghost) in enumerate(drawn)]
    sent_s = [number / 4 for number in range(keys)]
    times, answers = ghost_times_ms(seen, sent_s, 0)
    moments = [sent + ms / 1000 for sent, ms in zip(sent_s, times, strict=True) if ms is not None]
    assert all(ms is None or ms >= 0 for ms in times)
    assert all(
        (a is None) == (b is None) and (a or 0) <= (b or 0)
        for a, b in zip(answers, times, strict=True)
    )
    assert moments == sorted(moments)
    assert [ms is None for ms in times] == sorted(ms is None for ms in times)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.integers(1, 100))
def test_a_percentile_is_the_least_sample_that_holds_so_many(
    samples: list[float], percent: int
) -> None:
    found = percentile(samples, percent)

    def share(limit: float) -> float:
        return 100 * sum(each <= limit for each in samples)

    assert found in samples
    assert share(found) >= percent * len(samples)
    assert all(share(each) < percent * len(samples) for each in samples if each < found)


@given(st.integers(0, 1000))
def test_spots_are_cuts_of_lines_of_code(seed: int) -> None:
    lines = [*LINES]
    lines[80:100] = ["# a comment of some length", "short", "", '    """Some docstring."""'] * 5
    spots = pick_spots(lines, 20, seed)
    assert len({spot.row for spot in spots}) == 20
    for spot in spots:
        assert MARGIN_ROWS < spot.row < len(lines) - MARGIN_ROWS
        assert "value_" in lines[spot.row]
        assert spot.before + spot.typed + spot.rest == lines[spot.row]
        assert len(spot.typed) == KEYS
        assert spot.before.strip()
        assert spot.rest.strip()


def test_a_seed_gives_the_same_spots_again_and_another_one_others() -> None:
    assert pick_spots(LINES, 10, 1) == pick_spots(LINES, 10, 1)
    assert pick_spots(LINES, 10, 1) != pick_spots(LINES, 10, 2)


def test_a_file_that_is_too_short_is_refused() -> None:
    with pytest.raises(LcursorError, match=r"79 lines of code to type in, 80 are needed"):
        pick_spots(LINES, 80, 1)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff\xfe")
    for path in (tmp_path / "a", tmp_path / "none"):
        with pytest.raises(LcursorError, match="cannot be read"):
            read_lines(path)


def trial(final: str, ghost_ms: list[float | None], tokens: list[int]) -> Trial:
    answers = [ms and ms / 2 for ms in ghost_ms]
    main_ms = [0.5] * len(tokens)
    return Trial(Spot(70, "  re", "turn", " x + y"), final, ghost_ms, answers, tokens, main_ms)


def test_the_summary() -> None:
    trials = [
        trial(" x + y  \nz", [10.0, 20.0], [4, 0]),
        trial(" x + z", [30.0, 40.0], [6, 2]),
        trial("", [None, None], [8, 8]),
    ]
    found = summary(trials)
    assert (found["positions"], found["shown"], found["exact"]) == (3, 2, 1)
    assert (found["keystrokes"], found["answered"]) == (6, 4)
    assert (found["p50_ms"], found["p90_ms"], found["p95_ms"]) == (25.0, 40.0, 40.0)
    assert found["answer_p95_ms"] == 20.0
    assert found["last_key_p50_ms"] == 30.0
    assert found["tokens_per_keystroke_median"] == 5
    assert found["tokens_per_keystroke_mean"] == 4.7
    assert found["main_thread_p95_ms"] == 0.5


def test_the_reports_of_two() -> None:
    own, peer = [trial(" x + y", [10.0], [2])], [trial("no", [1000.0], [90])]
    results = {"lcursor": ("a.gguf", own), "other": ("b.gguf", peer)}
    found = json.loads(json.dumps(as_dict(results, FACTS)))
    assert (found["p50_ms"], found["exact"], found["model"]) == (10.0, 1, "a.gguf")
    assert found["peer"]["p50_ms"] == 1000.0
    assert found["peer"]["name"] == "other"
    assert found["times_faster_p50"] == 100.0
    table = as_markdown(results, FACTS)
    assert "| key to first valid ghost, p50 | 10.0 ms | 1000.0 ms | 100 × |" in table
    assert "| its first line is exactly what was taken out | 1 of 1 | 0 of 1 |  |" in table


def test_the_reports_when_no_ghost_came() -> None:
    results = {"lcursor": ("a.gguf", [trial("", [None], [2])])}
    found = as_dict(results, FACTS)
    assert found["p50_ms"] is None
    assert "peer" not in found
    assert "| key to first valid ghost, p50 | none |" in as_markdown(results, FACTS)


def test_the_screen_tells_what_stands_at_the_cursor_and_calls_at_each_flush() -> None:
    screen = Screen()
    calls: list[tuple[str, str]] = []
    screen.on_flush = lambda told: calls.append(told.at_cursor("Ghost"))
    screen.feed(
        [
            ["grid_resize", [1, 12, 4]],
            ["hl_attr_define", [5, {}, {}, [{"hi_name": "Ghost"}]]],
            ["grid_line", [1, 1, 0, [["r", 0], ["e"], ["t", 5], ["x"], [" ", 5, 3]], False]],
            ["grid_line", [1, 2, 0, [[" ", 5, 2], ["y"]], False]],
            ["grid_cursor_goto", [1, 1, 2]],
            ["flush", []],
            ["grid_cursor_goto", [1, 0, 0]],
            ["flush", []],
        ]
    )
    assert calls == [("re", "tx\n  y"), ("", "\ntx\n  y")]


@pytest.fixture
def server() -> Iterator[str]:
    """Something that says it serves a model."""
    with ModelServer() as fake:
        fake.json("/v1/models", {"data": [{"id": "/models/a.gguf"}]})
        yield fake.url


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What looks like llama.vim, on a machine with curl."""
    monkeypatch.setattr("lcursor.bench.peer.shutil.which", lambda name: f"/{name}")
    (tmp_path / "plugin").mkdir()
    (tmp_path / "plugin/llama.vim").touch()
    return tmp_path


def test_the_peer_keeps_answers_under_the_text_around_the_cursor(
    checkout: Path, server: str
) -> None:
    peer = LlamaVim(checkout, server + "/infill", LINES)
    spot = Spot(150, "    val", "ue_150", " = 1")
    around = ["\n".join(LINES[22:150]), "    value\u00ce", "\n".join(LINES[151:183]), ""]
    assert peer._key(spot, "    value") == hashlib.sha256("\n".join(around).encode()).hexdigest()


def test_a_peer_that_is_not_there_is_told(checkout: Path, server: str) -> None:
    with pytest.raises(LcursorError, match=r"no checkout of llama\.vim"):
        LlamaVim(checkout / "plugin", server, LINES)
    with pytest.raises(LcursorError, match="no http:// URL"):
        LlamaVim(checkout, "127.0.0.1:8012", LINES)
    with pytest.raises(LcursorError, match="no llama-server answers"):
        LlamaVim(checkout, "http://127.0.0.1:9", LINES)
