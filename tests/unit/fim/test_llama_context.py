"""llama.cpp itself, with a tiny model of random weights: tokens, positions, sequences, aborts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lcursor.catalog import selftest_model
from lcursor.errors import (
    Cancelled,
    EngineFailed,
    LcursorError,
    ModelCorrupt,
    ModelUnsuitable,
    OutOfMemory,
)
from lcursor.fim import llama
from lcursor.fim.llama import Context, ContextSize, Model

TOKENS = selftest_model.tokens(40)
SIZE = ContextSize(cells=256, batch=64, ubatch=64, sequences=3, outputs=8, threads=1)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    selftest_model.write(path)
    return path


@pytest.fixture(scope="module")
def model(path: Path) -> Iterator[Model]:
    with closing(Model(path, 0, lambda _: True)) as model:
        yield model


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    with closing(Context(model, SIZE)) as context:
        yield context


def after(model: Model, tokens: Sequence[int]) -> list[float]:
    """Return the logits behind some tokens, read by a context of their own."""
    with closing(Context(model, SIZE)) as context:
        context.decode(tokens, 0)
        return [float(each) for each in context.logits()]


def are_equal(found: NDArray[np.float32], wanted: Sequence[float]) -> bool:
    """Return whether logits are equal, but for other kernels for batches of other sizes."""
    return selftest_model.error(found.tolist(), wanted) < selftest_model.MAX_ERROR


# The model


def test_a_model_reports_its_properties(model: Model) -> None:
    assert (model.n_vocab, model.n_ctx_train) == (selftest_model.VOCABULARY, 1024)
    assert (model.bos, model.add_bos) == (1, False)
    assert "qwen2" in model.description
    assert [model.is_end(token) for token in (1, 2, 300)] == [False, True, False]
    assert llama.version()
    assert llama.system_info()


@pytest.mark.parametrize("text", ["ab", "", "é\n", "\udcff\udc80", "a" * 300])
def test_tokens_are_the_bytes_of_a_text(model: Model, text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    assert b"".join(map(model.piece, model.tokenize(text))).endswith(data)


def test_only_on_demand_a_marker_is_a_token(model: Model) -> None:
    assert model.tokenize("</s>", special=True) == [2]
    assert len(model.tokenize("</s>")) >= 4
    assert (model.piece(2), model.piece(300)) == (b"", b"word300")


def test_the_progress_of_a_load_is_reported_and_may_stop_it(path: Path) -> None:
    told: list[float] = []

    def progress(fraction: float) -> bool:
        told.append(fraction)
        return True

    Model(path, 0, progress).close()
    assert (told[0], told[-1]) == (0.0, 1.0)
    with pytest.raises(Cancelled):
        Model(path, 0, lambda _: False)


def test_a_file_of_garbage_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ModelCorrupt, match=r"broken\.gguf cannot be loaded \(.+\)"):
        Model(path, 0, lambda _: True)


@pytest.mark.parametrize("kind", ["recurrent", "hybrid"])
def test_a_model_without_a_cache_of_tokens_is_unsuitable(
    path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(f"lcursor.fim.llama.L.llama_model_is_{kind}", lambda _: True)
    with pytest.raises(ModelUnsuitable, match="its cache cannot drop single tokens"):
        Model(path, 0, lambda _: True)


@pytest.mark.parametrize(
    ("lines", "kind", "reason"),
    [
        (["unknown model architecture: 'x'"], ModelUnsuitable, "unknown model architecture: 'x'"),
        (["", "unable to allocate CPU buffer"], OutOfMemory, "unable to allocate CPU buffer"),
        (["CUDA error: out of memory", "later"], OutOfMemory, "CUDA error"),
        (["invalid magic characters"], ModelCorrupt, "invalid magic"),
        ([], ModelCorrupt, "llama.cpp gives no reason"),
    ],
)
def test_the_reason_why_a_model_is_not_loaded(
    monkeypatch: pytest.MonkeyPatch, lines: list[str], kind: type[LcursorError], reason: str
) -> None:
    monkeypatch.setattr(llama, "_errors", lines)
    error = llama._load_error(Path("a/b.gguf"))
    assert isinstance(error, kind)
    assert error.message.startswith("b.gguf")
    assert reason in error.message


def test_a_model_is_written_in_another_format(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smaller, listen, listened = tmp_path / "smaller.gguf", llama._listen, list[bool]()

    def spy(on: bool) -> None:
        listened.append(on)
        listen(on)

    monkeypatch.setattr(llama, "_listen", spy)
    llama.quantize(path, smaller, 2)  # Q4_0
    assert 0 < smaller.stat().st_size < path.stat().st_size
    Model(smaller, 0, lambda _: True).close()
    with pytest.raises(EngineFailed, match=r"gone\.gguf could not be requantized \(.+\)"):
        llama.quantize(tmp_path / "gone.gguf", smaller, 2)
    assert listened == [True, False] * 3


# The context


@pytest.mark.parametrize("count", [1, 2, 8])
def test_the_logits_are_those_of_a_correct_build(context: Context, count: int) -> None:
    context.decode(TOKENS[:count], 0)
    wanted = selftest_model.references()["tiny"][str(count)]
    found = selftest_model.sample(context.logits().tolist())
    assert selftest_model.error(found, wanted) < selftest_model.MAX_ERROR
    assert context.length() == count


def test_tokens_may_come_in_several_batches(model: Model, context: Context) -> None:
    context.decode(TOKENS[:30], 0)
    context.decode(TOKENS[30:], 30)
    assert context.length() == 40
    assert are_equal(context.logits(), after(model, TOKENS))
    assert not are_equal(context.logits(), after(model, TOKENS[:30]))


def test_the_last_tokens_of_a_batch_may_all_give_logits(model: Model, context: Context) -> None:
    context.decode(TOKENS[:12], 0, outputs=3)
    for number, count in ((9, 10), (10, 11), (11, 12), (-1, 12)):
        assert are_equal(context.logits(number), after(model, TOKENS[:count])), number
    context.decode(TOKENS[12:14], 12)
    assert are_equal(context.logits(), after(model, TOKENS[:14]))


def test_sequences_share_what_was_copied(model: Model, context: Context) -> None:
    context.decode(TOKENS[:10], 0)
    context.copy(0, 1, 0, 6)
    assert [context.length(sequence) for sequence in range(3)] == [10, 6, 0]
    context.decode([77], 6, sequence=1)
    assert are_equal(context.logits(), after(model, [*TOKENS[:6], 77]))
    assert context.remove(0, 4)
    assert [context.length(sequence) for sequence in range(2)] == [4, 7]
    context.decode_each([(50, 4, 0), (60, 7, 1)])
    assert are_equal(context.logits(0), after(model, [*TOKENS[:4], 50]))
    assert are_equal(context.logits(1), after(model, [*TOKENS[:6], 77, 60]))


def test_positions_are_shifted(model: Model, context: Context) -> None:
    context.decode(TOKENS[:10], 0)
    context.remove(0, 0, 4)
    context.move(0, 4, -1, -4)  # a position is only a rotation
    assert context.length() == 6
    context.decode(TOKENS[10:11], 6)
    assert context.length() == 7


def test_a_state_goes_on_in_another_context(model: Model, context: Context) -> None:
    context.decode(TOKENS[:10], 0)
    state = context.state(0, 1 << 30)
    size = len(state)
    assert size > 0
    assert len(context.state(0, size)) == size
    assert len(context.state(0, size - 1)) == 0
    with closing(Context(model, SIZE)) as other:
        assert other.restore(2, bytes(state))
        assert other.length(2) == 10
        other.decode(TOKENS[10:11], 10, sequence=2)
        assert are_equal(other.logits(), after(model, TOKENS[:11]))
        assert not other.restore(1, b"nothing")


def test_a_cache_that_is_full_is_an_error(context: Context) -> None:
    assert (context.cells, context.batch_tokens) == (256, 64)
    for start in range(0, 256, 64):
        context.decode(TOKENS[:32] * 2, start)
    with pytest.raises(OutOfMemory, match="the cache of 256 tokens is full"):
        context.decode([9], 256)


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (1, OutOfMemory, "the cache of 256 tokens is full"),
        (2, Cancelled, "superseded by a newer request"),
        (-2, OutOfMemory, "not enough memory to evaluate 3 tokens"),
        (-1, EngineFailed, r"could not evaluate 3 tokens at 7 \(code -1\)"),
        (-3, EngineFailed, "code -3"),
    ],
)
def test_each_error_code_of_llama_cpp_has_its_error(
    context: Context,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    kind: type[LcursorError],
    reason: str,
) -> None:
    monkeypatch.setattr("lcursor.fim.llama.L.llama_decode", lambda *_: code)
    with pytest.raises(kind, match=reason):
        context.decode([1, 2, 3], 7)


def test_a_quantized_cache_computes_nearly_the_same(model: Model) -> None:
    size = ContextSize(cells=256, batch=64, ubatch=64, outputs=8, threads=1, kv_type="q8_0")
    with closing(Context(model, size)) as context:
        context.decode(TOKENS, 0)
        assert are_equal(context.logits(), after(model, TOKENS))
        small = len(context.state(0, 1 << 30))
    with closing(Context(model, SIZE)) as context:
        context.decode(TOKENS, 0)
        assert small < 0.6 * len(context.state(0, 1 << 30))


def test_an_abort_stops_the_next_batch_and_leaves_nothing_of_it(context: Context) -> None:
    context.decode(TOKENS[:5], 0)
    context.abort.set()
    assert context.abort.is_set()
    with pytest.raises(Cancelled):
        context.decode(TOKENS[5:10], 5)
    assert context.length() == 5
    context.abort.clear()
    assert not context.abort.is_set()
    context.decode(TOKENS[5:10], 5)
    assert context.length() == 10


@pytest.mark.parametrize("immediately", [False, True])
def test_a_running_batch_ends_only_if_its_result_is_useless(
    context: Context, immediately: bool
) -> None:
    with context.abort.between_batches():
        context.abort.set(immediately=immediately)
        assert context.abort.is_set()
        if immediately:
            context.abort.set()  # asks for no less than before
            with pytest.raises(Cancelled):
                context.decode(TOKENS[:5], 0)
        else:
            context.decode(TOKENS[:5], 0)
    assert context.length() == (0 if immediately else 5)
    with pytest.raises(Cancelled):
        context.decode([9], context.length())
    context.abort.clear()
    with context.abort.between_batches():
        context.abort.set()
        context.decode([9], context.length())
