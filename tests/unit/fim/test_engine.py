"""The engine with a model that continues the texts it knows, in a cache with llama.cpp's rules."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled, OutOfMemory
from lcursor.fim import llama
from lcursor.fim.context_ring import Chunk, ContextRing
from lcursor.fim.engine import MIN_STALE, Engine
from lcursor.fim.prompt import Source
from lcursor.fim.reader import GROW_AFTER, NAMES_TOKENS
from lcursor.fim.result import Result
from tests.fakes.llama import FakeContext, FakeModel, engines

KNOWN = {
    "return ": ["first + second", "first * second"],
    "first + second": ["\n    pass"],
    "x = ": ["1\n    pass", "2"],
    "y = ": ["1\n    pass", "1 + 2"],
    "z = ": ["combined + second"],
}
BEFORE = "def combine(first, second):\n    return "
AFTER = "\n\n\nprint(combine(1, 2))\n"
FILLER = "".join(f"value_{number} = compute({number})\n" for number in range(40))
CONFIG = CompletionConfig(min_confidence=0.0, budget_ms=60_000)
Open = Callable[..., Engine]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Open]:
    """Open engines."""
    with engines(monkeypatch, tmp_path, KNOWN) as begin:

        def start(config: CompletionConfig = CONFIG, family: str = "qwen2.5-coder") -> Engine:
            engine = begin(config, family)
            engine.reader.window = "full"
            return engine

        yield start


@pytest.fixture
def engine(start: Open) -> Engine:
    return start()


def source(before: str = BEFORE, after: str = AFTER) -> Source:
    return Source(before, after, 0, "a.py", "demo", root="/demo/")


def complete(engine: Engine, where: Source, **options: Any) -> tuple[Result, list[str]]:
    told = list[str]()
    result = engine.complete(where, told.append, single_line=True, **options)
    return result, told


def context(engine: Engine) -> FakeContext:
    return cast(FakeContext, engine._context)


def rest(engine: Engine) -> int:
    """Do all idle work; return the number of steps."""
    steps = 1
    while engine.idle():
        steps += 1
        assert steps < 50
    return steps


def test_a_text_is_generated_and_streamed(engine: Engine) -> None:
    result, told = complete(engine, source("z = "))
    assert (result.text, result.source, result.window) == ("combined + second", "model", "full")
    assert told == ["combined"]  # the next part of the line that makes sense is all of it
    assert result.prompt_tokens == result.read_tokens


def test_an_engine_that_is_open_has_evaluated_a_prompt(engine: Engine) -> None:
    """Otherwise the first request would wait for page faults."""
    assert context(engine).batches == [2]


def test_the_text_inside_a_word_is_healed(engine: Engine) -> None:
    assert complete(engine, source(BEFORE + "fir"))[0].text == "st + second"
    before, _ = complete(engine, source(BEFORE + "first + sec"))
    assert before.text == "ond"


def test_a_keystroke_reads_its_token_and_the_markers(engine: Engine) -> None:
    complete(engine, source(FILLER + BEFORE))
    result, _ = complete(engine, source(FILLER + BEFORE + "fi"), bypass_cache=True)
    assert (result.text, result.read_tokens <= 4) == ("rst + second", True)
    kept = [is_cached for _, _, is_cached in engine.last_prompt()]
    assert kept.count(False) == result.read_tokens


def test_a_known_answer_needs_no_model(engine: Engine) -> None:
    complete(engine, source())
    batches = len(context(engine).batches)
    again, told = complete(engine, source())
    typed, _ = complete(engine, source(BEFORE + "first"))
    assert (again.text, again.source, told) == ("first + second", "cache", ["first + second"])
    assert (typed.text, typed.source) == (" + second", "cache")
    assert len(context(engine).batches) == batches
    assert complete(engine, source(), bypass_cache=True)[0].source == "model"


def test_with_other_programs_idle_work_only_improves_the_answer(engine: Engine) -> None:
    engine.is_machine_busy = True
    engine.reader.window = "staged"
    better = list[Result]()
    engine.on_improved = better.append
    complete(engine, source(FILLER + BEFORE))
    rest(engine)
    assert [each.window for each in better] == ["full"]
    typed = source(FILLER + BEFORE + "first + second")
    assert complete(engine, typed)[0].source == "model", "nothing was generated ahead"
    engine.is_machine_busy = False
    complete(engine, source(FILLER + BEFORE))
    rest(engine)
    assert complete(engine, typed)[0].source in ("cache", "speculation")


def test_with_other_programs_half_of_the_threads_evaluate(engine: Engine) -> None:
    all_threads = context(engine).threads
    engine.is_machine_busy = True
    assert context(engine).threads == max(all_threads // 2, 1)
    engine.is_machine_busy = False
    assert context(engine).threads == all_threads


def test_text_behind_a_suggestion_is_generated_once(engine: Engine) -> None:
    complete(engine, source())
    rest(engine)
    complete(engine, source(BEFORE + "f"))
    batches = len(context(engine).batches)
    rest(engine)
    assert len(context(engine).batches) - batches <= 2  # what was typed


def test_the_cache_is_freed_before_the_weights(
    start: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed = list[type]()
    for kind in (FakeModel, FakeContext):
        monkeypatch.setattr(kind, "close", lambda self: freed.append(type(self)))
    start().close()
    assert freed == [FakeContext, FakeModel]


def test_prompt_and_suggestion_fit_into_the_cache(start: Open) -> None:
    small = replace(CONFIG, suffix_tokens=100, files_tokens=50, max_tokens=64)
    engine = start(replace(small, context_tokens=1024, prefix_tokens=5000))
    assert engine.reader.prefix_tokens == 1024 - 100 - 50 - 64 - NAMES_TOKENS


def test_without_layers_on_it_a_gpu_is_not_used(
    start: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama, "has_gpu", lambda: True)
    assert " on the CPU: " in start(replace(CONFIG, gpu_layers=0)).description


@pytest.mark.parametrize(("tokens", "is_possible"), [(150, True), (128, True), (127, False)])
def test_the_smallest_size_of_a_window(start: Open, tokens: int, is_possible: bool) -> None:
    reader = start(replace(CONFIG, prefix_tokens=tokens)).reader
    assert reader.shrink() is is_possible
    assert reader.prefix_tokens == (tokens // 2 if is_possible else tokens)


def test_a_window_is_doubled_after_a_number_of_requests_since_it_was_halved(start: Open) -> None:
    reader = start(replace(CONFIG, prefix_tokens=400)).reader
    reader.grow_back()
    assert reader.shrink()
    reader.grow_back()
    assert reader.shrink()
    for wide, narrow in ((200, 100), (400, 200)):
        for _ in range(GROW_AFTER - 1):
            reader.grow_back()
        assert reader.prefix_tokens == narrow
        reader.grow_back()
        assert reader.prefix_tokens == wide


def test_idle_work_refreshes_the_suffix(engine: Engine) -> None:
    for typed in range(MIN_STALE + 2):
        complete(engine, source(BEFORE + "x" * typed))
    assert engine._slots.current.shadow.stale >= MIN_STALE
    rest(engine)
    assert engine._slots.current.shadow.stale == 0


def test_a_short_window_is_improved_in_idle_time(engine: Engine) -> None:
    engine.reader.window = "staged"
    better = list[Result]()
    engine.on_improved = better.append
    result, _ = complete(engine, source(FILLER + BEFORE))
    assert (result.text, result.window) == ("first + second", "short")
    rest(engine)
    assert [(each.text, each.window) for each in better] == [("first + second", "full")]
    later, _ = complete(engine, source(FILLER + BEFORE + "f"), bypass_cache=True)
    assert (later.window, later.read_tokens <= 4) == ("full", True)


def test_a_text_that_ran_out_of_time_is_completed_in_idle_time(start: Open) -> None:
    engine = start(replace(CONFIG, budget_ms=0))
    better = list[Result]()
    engine.on_improved = better.append
    result, _ = complete(engine, source())
    assert (result.reason, result.window) == ("time", "full")
    rest(engine)
    assert [(each.text, each.reason) for each in better] == [("first + second", "end")]
    assert complete(engine, source())[0].source == "cache"


def test_a_place_that_is_warm_is_answered_from_the_full_window(start: Open) -> None:
    engine = start(replace(CONFIG, context_tokens=8192, prefix_tokens=2048, suffix_tokens=1024))
    engine.reader.window = "staged"
    where = source(5 * FILLER + BEFORE, AFTER + 2 * FILLER)
    engine.warm(where)
    result, _ = complete(engine, source(5 * FILLER + BEFORE + "f", AFTER + 2 * FILLER))
    assert (result.window, result.read_tokens <= 4) == ("full", True)


def test_an_answer_stays_where_a_larger_window_has_none(start: Open) -> None:
    engine = start()
    engine.reader.window = "staged"
    where = source(FILLER + BEFORE)
    first, _ = complete(engine, where)
    engine._generator.threshold = 1.1
    rest(engine)
    again, _ = complete(engine, where)
    assert (first.text, again.text, again.source) == ("first + second", "first + second", "cache")


@pytest.mark.parametrize("looks", [1, 40, 90])
def test_an_aborted_request_is_continued_by_the_next(engine: Engine, looks: int) -> None:
    where = source(FILLER + BEFORE)
    context(engine).abort.looks_left = looks
    with pytest.raises(Cancelled):
        engine.warm(where)
    engine.abort.clear()
    done = engine.read_tokens
    result, _ = complete(engine, where)
    assert result.text == "first + second"
    assert result.read_tokens <= result.prompt_tokens - done + 2


def test_alternatives_differ_at_the_least_certain_token(engine: Engine) -> None:
    complete(engine, source())
    assert engine.alternatives() == ["first * second"]
    assert engine.alternatives(typed="first ") == ["first * second"]
    result, _ = complete(engine, source(BEFORE + "first "))
    assert result.text == "+ second"
    complete(engine, source(BEFORE + "first + "))
    assert engine.alternatives() == []  # all others are too unlikely


@pytest.mark.parametrize(("before", "alternative"), [("x = ", "2"), ("y = ", "1 + 2")])
def test_alternatives_differ_up_to_the_end_of_the_first_line(
    engine: Engine, before: str, alternative: str
) -> None:
    assert engine.complete(source(before), lambda text: None).text == "1\n    pass"
    assert engine.alternatives() == [alternative]


def test_no_alternative_repeats_a_bracket_right_of_the_cursor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = "first_value, second) + third_value"
    unsure = [text[:at] + "#" for at in range(12, 32)]
    with engines(monkeypatch, tmp_path, {"z = call(": [text, *unsure]}) as begin:
        engine = begin(replace(CONFIG, min_confidence=0.95))
        where = source("z = call(", ")\n")
        for _ in range(2):  # the second answer comes from the cache
            assert complete(engine, where)[0].text == "first_value"
            assert engine.alternatives() == ["first_value,"]


def test_a_saved_cache_spares_the_next_start_the_prompt(start: Open) -> None:
    first = start()
    where = source(FILLER + BEFORE)
    read = complete(first, where)[0].read_tokens
    rest(first)
    second = start()
    result, _ = complete(second, where)
    assert result.text == "first + second"
    assert result.read_tokens <= 2 < read
    other = start(replace(CONFIG, save_cache=False))
    assert complete(other, where)[0].read_tokens == read


def test_a_saved_cache_is_not_used_after_files_were_excluded(start: Open) -> None:
    where = source(FILLER + BEFORE)
    first = start()
    first.ring = ContextRing()
    first.ring.add(Chunk("rows.sql", 0, "one row\nanother row\nthe last row", "visited"))
    complete(first, where)
    rest(first)
    complete(first, where, bypass_cache=True)
    rest(first)
    disk = first.reader.kv_disk
    assert disk is not None
    saved = disk.path("/demo/", "a.py")
    assert b"another row" in saved.read_bytes()
    second = start(replace(CONFIG, excluded=("rows.sql",)))
    complete(second, where)
    assert b"another row" not in b"".join(data for _, data, _ in second.last_prompt())
    assert not saved.exists()


def test_a_cache_is_saved_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, saved = engine.reader.kv_disk, list[str]()
    assert disk is not None
    save = disk.save

    def spy(root: str, path: str, *more: Any) -> bool:
        saved.append(path)
        return save(root, path, *more)

    monkeypatch.setattr(disk, "save", spy)
    for typed in ("", "f", "fi"):
        complete(engine, source(FILLER + BEFORE + typed), bypass_cache=True)
        rest(engine)
    assert saved == ["a.py"]
    complete(engine, replace(source(FILLER + FILLER + BEFORE), root=""))
    rest(engine)
    assert saved == ["a.py"]  # it belongs to no project


def test_pieces_of_other_files_come_into_the_prompt(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.ring = ContextRing()
    piece = "def helper(a):\n    b = a\n    c = b\n    return c"
    engine.ring.add(Chunk("other.py", 0, piece, "visited"))
    complete(engine, source())
    rest(engine)
    complete(engine, source(), bypass_cache=True)
    text = b"".join(data for _, data, _ in engine.last_prompt()).decode()
    assert text.index("other.py") < text.index("def helper") < text.index("def combine")
    tokenize, texts = engine.model.tokenize, list[str]()

    def spy(text: str, special: bool = False) -> list[int]:
        texts.append(text)
        return tokenize(text, special)

    monkeypatch.setattr(engine.model, "tokenize", spy)
    complete(engine, source(BEFORE + "fi"), bypass_cache=True)
    assert texts  # a keystroke tokenizes the text at the cursor alone
    assert not any("helper" in text for text in texts)


def test_a_full_cache_halves_the_window_and_warns_once(start: Open) -> None:
    engine = start(replace(CONFIG, context_tokens=1500))
    before = engine.reader.prefix_tokens
    context(engine).room = 200
    result, _ = complete(engine, source(FILLER + BEFORE))
    assert result.text == "first + second"
    assert engine.reader.prefix_tokens < before
    [warning] = engine.warnings
    assert "the window before the cursor is now" in warning.message
    context(engine).room = 20
    with pytest.raises(OutOfMemory):
        complete(engine, source(), bypass_cache=True)
    context(engine).room, narrow = 1500, engine.reader.prefix_tokens
    for _ in range(GROW_AFTER):
        complete(engine, source())
    assert engine.reader.prefix_tokens > narrow
    assert len(engine.warnings) == 1


def test_a_tokenizer_that_changes_texts_disables_healing(
    start: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenize = FakeModel.tokenize

    def change(self: FakeModel, text: str, special: bool = False) -> list[int]:
        return tokenize(self, text.replace("\t", " "), special)

    monkeypatch.setattr(FakeModel, "tokenize", change)
    engine = start()
    assert [warning.code for warning in engine.warnings] == ["tokenizer_odd"]
    rest(engine)
    assert engine.reader.lay_out(source(BEFORE + "fir"), False).forced == b""
    assert complete(engine, source())[0].text == "first + second"


def test_settings_apply_without_another_load(engine: Engine) -> None:
    complete(engine, source())
    engine.configure(replace(CONFIG, max_tokens=3))
    result, _ = complete(engine, source())
    assert (result.reason, result.generated_tokens) == ("tokens", 3)


def test_the_likelihood_of_a_text(engine: Engine) -> None:
    likely, unlikely = (engine.nll(source(), text) for text in ("first", "third"))
    assert len(likely) == len(unlikely) == 5
    assert sum(likely) < sum(unlikely)
    assert all(nats < 0.2 for nats in likely)


edits = st.lists(
    st.tuples(
        st.sampled_from(["type", "delete", "jump", "below", "accept", "idle", "abort", "again"]),
        st.integers(1, 30),
    ),
    max_size=8,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(edits)
def test_after_any_edits_the_cache_has_the_prompt_and_the_answer_is_that_of_a_fresh_engine(
    start: Open, steps: list[tuple[str, int]]
) -> None:
    used, fresh = start(), start(replace(CONFIG, save_cache=False))
    before, after = FILLER[-200:] + BEFORE, AFTER
    for kind, size in steps:
        if kind == "type":
            before += "first + second = 3\n    return "[:size]
        elif kind == "delete":
            before = before[:-size]
        elif kind == "jump":
            half = len(before) // 2
            before, after = before[:half], before[half:] + after
        elif kind == "below":
            after = after[:size]
        elif kind == "accept":
            before += complete(used, source(before, after))[0].text
        elif kind == "idle":
            for _ in range(size % 5):
                used.idle()
        elif kind == "abort":
            flag = context(used).abort
            flag.looks_left, flag.is_immediate = size, True
            with contextlib.suppress(Cancelled):
                if size % 2:
                    used.warm(source(before, after))
                else:
                    complete(used, source(before, after), bypass_cache=True)
            flag.clear()
        found, _ = complete(used, source(before, after), bypass_cache=kind != "again")
        for slot in fresh._slots.all():
            slot.clear()
        exact, _ = complete(fresh, source(before, after), bypass_cache=True)
        assert found.text == exact.text
        if found.source == "model":
            wanted = [token for token, _, _ in used.last_prompt()]
            cached = context(used).of(used._slots.current.sequences.full)
            assert [token for _, token in cached][: len(wanted)] == wanted
