"""What a valid suggestion is, where is typed, what is made of the times; and bad inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from bench import typing as bench
from bench.peer import LlamaVim
from bench.report import percentile
from bench.trials import (
    APART_ROWS,
    KEYS,
    MARGIN_ROWS,
    Drawn,
    Flush,
    Jump,
    Spot,
    Trial,
    apart,
    find_stay,
    ghost_times_ms,
    is_beginning,
    is_exact,
    pick_spots,
    read_lines,
    spread,
)
from bench.typing_report import Results, as_dict, as_markdown, jump_summary, summary
from bench.typing_run import Plan
from lcursor.__main__ import app
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


def test_a_seed_gives_the_same_spots_again_and_another_one_others() -> None:
    assert pick_spots(LINES, 10, 1) == pick_spots(LINES, 10, 1)
    assert pick_spots(LINES, 10, 1) != pick_spots(LINES, 10, 2)


def test_a_file_that_is_too_short_is_rejected() -> None:
    with pytest.raises(LcursorError, match=r"79 lines of code to type in, 80 are needed"):
        pick_spots(LINES, 80, 1)


def test_a_file_that_is_no_text_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff\xfe")
    for path in (tmp_path / "a", tmp_path / "none"):
        with pytest.raises(LcursorError, match="cannot be read"):
            read_lines(path)


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


def test_only_the_last_keys_of_a_spot_are_left_to_type() -> None:
    spot = Spot(7, "  ab", "cdefgh", "ij", "a.py")
    assert spot.with_keys(3) == Spot(7, "  abcde", "fgh", "ij", "a.py")


@given(st.integers(1, 500), st.integers(1, 9))
def test_positions_are_spread_evenly(total: int, parts: int) -> None:
    found = spread(total, parts)
    assert sum(found) == total
    assert max(found) - min(found) <= 1


@given(st.lists(st.integers(0, 600), max_size=30, unique=True))
def test_jumps_are_far_where_the_file_allows(rows: list[int]) -> None:
    ordered = [spot.row for spot in apart([Spot(row, "", "", "") for row in rows])]
    assert sorted(ordered) == sorted(rows)
    for at, (row, after) in enumerate(zip([0, *ordered], ordered, strict=False)):
        farthest = max(abs(left - row) for left in ordered[at:])
        assert abs(after - row) >= min(APART_ROWS, farthest)


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


def test_what_was_not_measured_is_none() -> None:
    found = summary([trial(" x", [10.0], [0])])
    assert found["exact"] is found["precision_gate_off"] is None
    assert found["passes_per_changing_keystroke"] is None


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


def test_the_reports_of_two() -> None:
    own, peer = [trial(" x + y", [10.0], [2])], [trial("no", [1000.0], [90])]
    results = {"lcursor": Results("a.gguf", own), "other": Results("b.gguf", peer)}
    found = json.loads(json.dumps(as_dict(results, FACTS)))
    assert (found["p50_ms"], found["exact_gate_on"], found["model"]) == (10.0, 1, "a.gguf")
    assert found["peer"]["p50_ms"] == 1000.0
    assert found["peer"]["name"] == "other"
    assert found["times_faster_p50"] == 100.0
    assert "cold_p50_ms" not in found
    table = "\n".join(as_markdown(results, FACTS))
    assert "| key to first valid suggestion, p50 | 10.0 ms | 1000.0 ms | 100 × |" in table
    assert "| the same, gate on | 1 of 1 | 0 of 1 |  |" in table
    assert "cold" not in table


def test_files_are_pooled_and_listed_one_by_one() -> None:
    own = Results("a.gguf", [], [jump(" x + y", 100), jump("", 0, file="b.lua")])
    peer = Results("a.gguf", [], [jump(" no", 3000), jump(" x", 900, file="b.lua")])
    plugins = {"lcursor": own, "other": peer}
    found = as_dict(plugins, FACTS)
    assert (found["cold_shown"], found["peer"]["cold_shown"]) == (1, 2)
    assert [each["file"] for each in found["files"]] == ["a.py", "b.lua"]
    assert [each["cold_shown"] for each in found["files"]] == [1, 0]
    assert [each["peer"]["cold_p50_ms"] for each in found["files"]] == [3000, 900]
    assert "| b.lua | 0 of 1 / 1 of 1 | none / 900.0 ms |" in "\n".join(as_markdown(plugins, FACTS))


def test_the_reports_when_no_suggestion_came() -> None:
    results = {"lcursor": Results("a.gguf", [trial("", [None], [2])])}
    found = as_dict(results, FACTS)
    assert found["p50_ms"] is None
    assert "peer" not in found
    assert "| key to first valid suggestion, p50 | none |" in "\n".join(as_markdown(results, FACTS))


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


@pytest.fixture
def server() -> Iterator[str]:
    """Something that says it serves a model."""
    with ModelServer() as fake:
        fake.json("/v1/models", {"data": [{"id": "/models/a.gguf"}]})
        yield fake.url


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What looks like llama.vim, on a machine with curl."""
    monkeypatch.setattr("bench.peer.shutil.which", lambda name: f"/{name}")
    (tmp_path / "plugin").mkdir()
    (tmp_path / "plugin/llama.vim").touch()
    return tmp_path


def test_the_peer_keeps_answers_under_the_text_around_the_cursor(
    checkout: Path, server: str
) -> None:
    peer = LlamaVim(checkout, server + "/infill")
    peer._lines = LINES
    spot = Spot(150, "    val", "ue_150", " = 1")
    around = ["\n".join(LINES[22:150]), "    value\u00ce", "\n".join(LINES[151:183]), ""]
    assert peer._key(spot, "    value") == hashlib.sha256("\n".join(around).encode()).hexdigest()


def test_a_peer_that_is_not_there_is_reported(checkout: Path, server: str) -> None:
    with pytest.raises(LcursorError, match=r"no checkout of llama\.vim"):
        LlamaVim(checkout / "plugin", server)
    for url in ("127.0.0.1:8012", "http://127.0.0.1:9"):
        with pytest.raises(LcursorError, match="no llama-server answers"):
            LlamaVim(checkout, url)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[Spot], Plan]]:
    """What the command would have typed: each file, the spots in it, and the plan."""
    calls: list[tuple[str, list[Spot], Plan]] = []

    def measure(
        typists: object,
        neovim: Path,
        file: Path,
        spots: list[Spot],
        plan: Plan,
        results: dict[str, Results],
    ) -> None:
        calls.append((file.name, spots, plan))
        if file.name == "broken.py":
            raise TimeoutError("nothing was typed")
        results["lcursor"].cold.append(jump(" x", 5, file=spots[0].file))

    monkeypatch.setattr(bench, "measure", measure)
    monkeypatch.setattr(bench, "find_neovim", lambda: Path("nvim"))
    return calls


def write(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / name).write_text("\n".join(LINES))
    return [str(folder / name) for name in names]


def test_the_command_spreads_the_positions_and_does_what_is_chosen(
    measured: list[tuple[str, list[Spot], Plan]], tmp_path: Path
) -> None:
    paths = write(tmp_path, "a.py", "b.lua")
    options = ["--positions", "5", "--cold", "--rested", "--no-warm", "--no-gate-off", "--json"]
    done = CliRunner().invoke(app, ["bench", "typing", *paths, *options])
    assert done.exit_code == 0, done.output
    assert [(name, len(spots)) for name, spots, _ in measured] == [("a.py", 3), ("b.lua", 2)]
    assert measured[0][2] == Plan(warm=False, cold=True, rested=True, gate_off=False)
    found = json.loads(done.stdout)
    assert [each["file"] for each in found["files"]] == [
        f"{tmp_path.name}/a.py",
        f"{tmp_path.name}/b.lua",
    ]


def test_the_command_needs_something_to_do(
    measured: list[tuple[str, list[Spot], Plan]],
) -> None:
    done = CliRunner().invoke(app, ["bench", "typing", "--no-warm"])
    assert done.exit_code == 2
    assert not measured


def test_no_further_file_is_begun_when_time_is_up(
    measured: list[tuple[str, list[Spot], Plan]], tmp_path: Path
) -> None:
    paths = write(tmp_path, "a.py", "b.py")
    CliRunner().invoke(app, ["bench", "typing", *paths, "--limit-minutes", "1e-9"])
    assert [name for name, *_ in measured] == ["a.py"]
