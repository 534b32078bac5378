"""What a valid suggestion is, where is typed, what is made of the times; and bad inputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from bench import typing as bench
from bench.report import percentile
from bench.trials import (
    KEYS,
    MARGIN_ROWS,
    Drawn,
    Flush,
    Jump,
    Spot,
    Trial,
    find_stay,
    ghost_times_ms,
    is_beginning,
    is_exact,
    pick_spots,
)
from bench.typing_report import Results, as_dict, as_markdown, jump_summary, summary
from bench.typing_run import Plan
from lcursor.__main__ import app
from lcursor.drive.screen import Screen

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


def test_a_ghost_that_stays_valid_counts_when_it_is_drawn_again() -> None:
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


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ('    """Sum up.', '    """'),
        ('    text = """', '    """'),
        ("    r'''Sum up.", "    the end.'''"),
        ("/* Sum up.", "   the end. */"),
        ("  --[[ Sum up.", "  ]]"),
    ],
)
def test_no_spot_is_in_a_comment_or_a_text_of_several_lines(start: str, end: str) -> None:
    lines = [*LINES]
    lines[80:84] = [start, "    what is not a value of any kind", "", end]
    lines[90] = '    """One line that opens and closes."""'
    spots = pick_spots(lines, 74, 1)
    assert {spot.row for spot in spots} == set(range(61, 140)) - {80, 81, 82, 83, 90}


@pytest.mark.parametrize(
    ("suggestion", "exact", "beginning"),
    [
        (" x + y", True, True),
        (" x + y  \n    return", True, True),
        (" x +", False, True),
        (" x + z", False, False),
        (" x + y + z", False, False),
        ("", False, False),
        ("\n    return", False, False),  # says that nothing was taken out of this line
    ],
)
def test_a_right_suggestion_is_what_was_taken_out_or_its_beginning(
    suggestion: str, exact: bool, beginning: bool
) -> None:
    assert is_exact(suggestion, " x + y ") == exact
    assert is_beginning(suggestion, " x + y ") == beginning


def drawn(*screens: tuple[float, int, str]) -> list[Drawn]:
    return [Drawn(*each) for each in screens]


def test_what_stays_counts_from_the_first_screen_after_the_last_key() -> None:
    seen = drawn((-100, 2, "urn x"), (4, 3, "rn x"), (300, 3, "rn x + y"))
    assert find_stay(seen, 3, 1000) == (4, "rn x + y", False)


def test_what_is_replaced_or_vanishes_before_the_end_does_not_stay() -> None:
    assert find_stay(drawn((5, 3, "rk"), (700, 3, "rn")), 3, 1000) == (700, "rn", False)
    flickers = drawn((5, 3, "rn"), (200, 3, ""), (400, 3, "rn"))
    assert find_stay(flickers, 3, 1000) == (400, "rn", False)
    assert find_stay(drawn((5, 3, "rn"), (700, 3, " ")), 3, 1000) is None


def test_what_is_replaced_after_the_end_stays_and_is_counted() -> None:
    assert find_stay(drawn((5, 3, "rk"), (1700, 3, "rn")), 3, 1000) == (5, "rk", True)
    assert find_stay(drawn((5, 3, "rn"), (1700, 3, "rn x")), 3, 1000) == (5, "rn", False)


def test_a_screen_without_the_last_key_shows_nothing_that_stays() -> None:
    assert find_stay(drawn((5, 2, "urn"), (9, 2, "urn")), 3, 1000) is None
    assert find_stay(drawn((5, 3, ""), (1500, 3, "rn")), 3, 1000) is None


def trial(
    final: str, ghost_ms: list[float | None], tokens: list[int], ungated: str | None = None
) -> Trial:
    answers = [ms and ms / 2 for ms in ghost_ms]
    main_ms = [0.5] * len(tokens)
    passes = [1 if count else None for count in tokens]
    spot = Spot(70, "  re", "turn", " x + y", "a.py")
    return Trial(spot, final, ghost_ms, answers, tokens, main_ms, passes, ungated)


def jump(final: str, ms: float, has_answer: bool = True, file: str = "a.py") -> Jump:
    screens = drawn((ms, 3, final), (ms + 2000, 3, final))
    spot = Spot(70, "  ret", "urn", " x + y", file)
    return Jump(spot, screens, ms + 1000, has_answer, [700, 0, 0])


def test_the_summary() -> None:
    trials = [
        trial(" x + y  \nz", [10.0, 20.0], [4, 0], " x + y"),
        trial(" x + z", [30.0, 40.0], [6, 2], " x + z"),
        trial("", [None, None], [8, 8], " x + y"),
        trial(" x", [10.0, 40.0], [4, 0], " x"),
    ]
    found = summary(trials)
    assert (found["positions"], found["shown"]) == (4, 3)
    assert (found["exact"], found["exact_gate_on"]) == (2, 1)
    assert (found["precision"], found["precision_gate_off"]) == (0.667, 0.75)
    assert (found["keystrokes"], found["answered"]) == (8, 6)
    assert (found["p50_ms"], found["p90_ms"], found["p95_ms"]) == (25.0, 40.0, 40.0)
    assert found["answer_p95_ms"] == 20.0
    assert found["last_key_p50_ms"] == 40.0
    assert found["tokens_per_keystroke_median"] == 4
    assert found["tokens_per_keystroke_mean"] == 4.0
    assert found["passes_per_changing_keystroke"] == 1
    assert found["main_thread_p95_ms"] == 0.5


def test_the_summary_of_jumps() -> None:
    jumps = [jump(" x + y", 200), jump(" z", 600), jump("", 0), jump("", 0, has_answer=False)]
    assert jump_summary(jumps, "cold") == {
        "cold_positions": 4,
        "cold_shown": 2,
        "cold_p50_ms": 400.0,
        "cold_p95_ms": 600.0,
        "cold_exact": 1,
        "cold_replaced_later": 0,
        "cold_unanswered": 1,
    }


def test_the_screen_shows_what_is_at_the_cursor_and_calls_at_each_flush() -> None:
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


def test_files_are_pooled_and_listed_one_by_one() -> None:
    warm = [trial(" x + y", [10.0], [2]), trial("", [None], [2])]
    results = Results("a.gguf", warm, [jump(" x + y", 100), jump("", 0, file="b.lua")])
    found = json.loads(json.dumps(as_dict(results, FACTS)))
    assert (found["p50_ms"], found["exact"], found["cold_shown"]) == (10.0, None, 1)
    assert [each["cold_shown"] for each in found["files"]] == [1, 0]
    shown = "\n".join(as_markdown(results, FACTS))
    assert "| key to first valid suggestion, p50 | 10.0 ms |" in shown
    assert "| the same, gate on | 1 of 2 |" in shown
    assert "| b.lua | none | none | none | none | none | none | none | 0 of 1 | none |" in shown
    assert "rested" not in shown


def test_the_command_spreads_the_positions_and_does_what_is_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measured: list[tuple[str, int, Plan]] = []

    def measure(
        plugin: object, neovim: Path, file: Path, spots: list[Spot], plan: Plan, results: Results
    ) -> None:
        measured.append((file.name, len(spots), plan))
        results.cold.append(jump(" x", 5, file=spots[0].file))

    monkeypatch.setattr(bench, "measure", measure)
    monkeypatch.setattr(bench, "find_neovim", lambda: Path("nvim"))
    paths = [tmp_path / "a.py", tmp_path / "b.lua"]
    for path in paths:
        path.write_text("\n".join(LINES))
    options = ["--positions", "5", "--cold", "--rested", "--no-warm", "--no-gate-off", "--json"]
    done = CliRunner().invoke(app, ["bench", "typing", *map(str, paths), *options])
    assert done.exit_code == 0, done.output
    plan = Plan(warm=False, cold=True, rested=True, gate_off=False)
    assert measured == [("a.py", 3, plan), ("b.lua", 2, plan)]
    found = json.loads(done.stdout)
    assert [each["file"] for each in found["files"]] == [
        f"{tmp_path.name}/a.py",
        f"{tmp_path.name}/b.lua",
    ]
