"""The real int8 MiniLM, which `make test` pulls: its vectors, batches, limits and complaints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcursor.errors import ModelCorrupt, ModelMissing
from lcursor.index import embed
from lcursor.index.embed import DEFAULT, Embedder, batches, find, normalized

CODE = "def open_files(paths):\n    return [open(path) for path in paths]"
ITERABLE = "python check if a variable is iterable"
KNOWN = {
    ITERABLE: (0.0477, 0.0358, -0.0193, -0.0033, 0.0533, -0.0475, 0.0914, -0.0531),
    CODE: (0.0185, -0.0150, -0.0171, 0.0700, 0.0609, -0.0696, 0.0144, 0.0455),
}
"""First numbers of the vectors that the publisher's own code gets, one text at a time."""


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder(find(DEFAULT))


@pytest.fixture(scope="module")
def in_floats() -> Embedder:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embed, "PATCHES", Path("/nowhere"))
        return Embedder(find(DEFAULT))


@pytest.mark.parametrize("text", KNOWN)
def test_vectors_are_those_of_the_publisher(in_floats: Embedder, text: str) -> None:
    embedder = in_floats
    vector = embedder.texts([text])[0]
    assert vector.dtype == np.float32
    assert vector.shape == (embedder.dim,)
    assert np.allclose(vector[: len(KNOWN[text])], KNOWN[text], atol=1e-4)
    assert abs(float(np.linalg.norm(vector)) - 1) < 1e-5


def test_products_of_bytes_give_nearly_the_same(embedder: Embedder, in_floats: Embedder) -> None:
    texts = [*KNOWN, "class Reader: pass", CODE * 40, "ünïcödé 名前", "x"]
    cosines = (embedder.texts(texts) * in_floats.texts(texts)).sum(axis=1)
    assert cosines.min() > 0.98
    assert cosines.min() < 0.99999, "they are not computed in bytes"
    assert embedder.name == in_floats.name + embed.IN_BYTES


def test_texts_in_one_batch_do_not_change_each_others_vectors(embedder: Embedder) -> None:
    texts = [CODE, "x", "", CODE * 3, "class Reader: pass", CODE * 40, "ünïcödé 名前 \ud800"]
    together = embedder.texts(texts)
    alone = np.stack([embedder.texts([text])[0] for text in texts])
    assert np.abs(together - alone).max() < 1e-5
    assert np.isfinite(together).all()


def test_no_text_gives_no_vector(embedder: Embedder) -> None:
    assert embedder.texts([]).shape == (0, embedder.dim)


def test_text_behind_the_limit_does_not_count(embedder: Embedder) -> None:
    long = "alpha beta gamma delta " * 400
    first, second = embedder.texts([long, long + "and the end"])
    assert np.array_equal(first, second)


def test_functions_are_found_by_their_meaning(embedder: Embedder) -> None:
    texts = [
        "def remove(path):\n    os.unlink(path)",
        "def mean(values):\n    return sum(values) / len(values)",
        "def connect(host, port):\n    return socket.create_connection((host, port))",
    ]
    vectors = embedder.texts(texts)
    for question, answer in (("delete a file", 0), ("average of numbers", 1), ("open tcp", 2)):
        assert int(np.argmax(vectors @ embedder.query(question))) == answer


def test_a_query_takes_its_prefix(embedder: Embedder) -> None:
    other = Embedder(replace(embedder.spec, query_prefix="find: "))
    assert np.allclose(other.query("a"), embedder.texts(["find: a"])[0], atol=1e-6)
    assert not np.allclose(other.query("a"), embedder.query("a"), atol=1e-2)


def test_pooling_by_the_first_token_is_another_vector(embedder: Embedder) -> None:
    other = Embedder(replace(embedder.spec, pooling="cls"))
    assert float(other.texts([CODE])[0] @ embedder.texts([CODE])[0]) < 0.99


def test_two_threads_share_the_work_and_change_nothing(embedder: Embedder) -> None:
    texts = [f"{CODE} # {number}" * (number % 7 + 1) for number in range(30)]
    assert np.abs(embedder.texts(texts, 2) - embedder.texts(texts)).max() < 1e-5
    assert embedder.texts([], 2).shape == (0, embedder.dim)
    assert np.allclose(embedder.texts([CODE], 5), embedder.texts([CODE]), atol=1e-6)


def test_an_error_on_one_of_several_threads_is_raised(
    embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(tokens: Sequence[Sequence[int]]) -> object:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(embedder, "_run", run)
    with pytest.raises(RuntimeError, match="out of memory"):
        embedder.texts([CODE] * 40, 2)


@pytest.mark.linux
def test_the_embedder_starts_no_more_threads_than_given() -> None:
    code = (
        "import threading, os\n"
        "from lcursor.index.embed import Embedder\n"
        "from lcursor.index.embed import EMBEDDERS\n"
        "import numpy\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "embedder = Embedder(EMBEDDERS[0], threads=1)\n"
        "embedder.texts(['a b c'] * 20)\n"
        "print(len(os.listdir('/proc/self/task')) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert int(done.stdout) <= 1


@pytest.mark.linux
def test_the_embedder_needs_little_memory() -> None:
    code = (
        "from lcursor.index.embed import Embedder\n"
        "from lcursor.index.embed import EMBEDDERS\n"
        "embedder = Embedder(EMBEDDERS[0])\n"
        "embedder.texts(['alpha beta gamma delta ' * 400] * 4, 2)\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if 'VmHWM' in line))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 220 << 10, "its weights were unfolded into floats"


def test_the_embedder_is_loaded_after_usearch() -> None:
    code = (
        "import numpy, sys\n"
        "from lcursor.index.embed import Embedder\n"
        "from lcursor.index.embed import EMBEDDERS\n"
        "from lcursor.index.vector_index import VectorIndex\n"
        "vectors = VectorIndex(384)\n"
        "rows = numpy.random.default_rng(1).standard_normal((300, 384)).astype('float16')\n"
        "vectors.update(range(300), rows)\n"
        "vectors.search(rows[0].astype('float32'), 5)\n"
        "assert 'usearch.index' in sys.modules\n"
        "print(len(vectors.search(Embedder(EMBEDDERS[0]).query('a'), 5)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr


def test_a_missing_model_is_reported_before_any_library_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing) as caught:
        Embedder(find(DEFAULT), tmp_path)
    assert caught.value.hint.endswith(f"models pull {DEFAULT}")


@pytest.mark.parametrize("broken", [0, 1])
def test_a_damaged_file_is_reported(tmp_path: Path, broken: int) -> None:
    spec = find(DEFAULT)
    for number, (here, there) in enumerate(zip(spec.files(), spec.files(tmp_path), strict=True)):
        if number == broken:
            there.write_bytes(here.read_bytes()[:1000])
        else:
            there.symlink_to(here)
    with pytest.raises(ModelCorrupt, match="cannot be loaded") as caught:
        Embedder(spec, tmp_path)
    assert "models verify" in caught.value.hint


def test_vectors_of_another_size_are_rejected() -> None:
    with pytest.raises(ModelCorrupt, match="size 384, not 768"):
        Embedder(replace(find(DEFAULT), dim=768))


def test_importing_it_loads_no_library() -> None:
    code = (
        "import sys, lcursor.index.embed, lcursor.index.embed;"
        "print([m for m in ('onnxruntime', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@given(st.lists(st.integers(1, 300)), st.integers(0, 1000))
@settings(max_examples=200, deadline=None)
def test_batches_hold_each_text_once_and_keep_to_their_size(
    lengths: list[int], most_tokens: int
) -> None:
    groups = list(batches(lengths, most_tokens))
    assert sorted(number for group in groups for number in group) == list(range(len(lengths)))
    for group in groups:
        longest = max(lengths[number] for number in group)
        assert len(group) == 1 or len(group) * longest <= most_tokens


def test_a_row_of_zeros_stays() -> None:
    found = normalized(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    assert found.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]
