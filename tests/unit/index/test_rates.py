"""How fast this machine is, and that the next report knows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.index import place, rates
from lcursor.index.rates import CHUNK_BYTES, CHUNKS_PER_S, Meter, Rates, expected_s
from tests.unit.index.workers import connect, is_free
from tests.waiting import wait_for


def test_the_guess_is_what_was_measured_once() -> None:
    assert 28 < expected_s(1_700, 30_000_000) < 38, "33 s on one shared core"
    assert Rates().read_s(1_700, 30_000_000) == expected_s(1_700, 30_000_000)
    assert Rates().embed_s(CHUNK_BYTES * 33) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("meter", "wanted"),
    [
        (Meter(), Rates(3.0, 20.0)),
        (Meter(files=500, bytes=1_000_000, read_s=1.0), Rates(0.5, 20.0)),
        (Meter(files=5, bytes=10_000, read_s=0.02), Rates(3.0, 20.0)),  # too little
        (Meter(chunks=300, embed_s=10.0), Rates(3.0, 30.0)),
        (Meter(chunks=0, embed_s=10.0), Rates(3.0, 20.0)),  # of another embedder
        (Meter(files=1, bytes=1, read_s=9e9, chunks=1, embed_s=9e9), Rates(100.0, 0.33)),
    ],
)
def test_what_was_done_enough_counts(meter: Meter, wanted: Rates) -> None:
    found = meter.rates(Rates(3.0, 20.0))
    assert (found.reading, found.chunks_per_s) == pytest.approx(
        (wanted.reading, wanted.chunks_per_s)
    )


def test_what_was_measured_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "index" / "rates.json"
    assert rates.load(path) == Rates()
    rates.save(path, Rates(0.25, 40.0))
    assert rates.load(path) == Rates(0.25, 40.0)
    assert [one.name for one in path.parent.iterdir()] == ["rates.json"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "3", "{}", '{"reading": "x", "chunks_per_s": 3}', '{"reading": null}', "\0\xff"],
)
def test_a_broken_file_is_the_guess(tmp_path: Path, text: str) -> None:
    (tmp_path / "rates.json").write_text(text)
    assert rates.load(tmp_path / "rates.json") == Rates()


def test_numbers_beyond_belief_are_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "rates.json"
    path.write_text('{"reading": 0, "chunks_per_s": 1e99}')
    assert rates.load(path) == Rates(0.01, CHUNKS_PER_S * 100)
    path.write_text('{"reading": NaN, "chunks_per_s": Infinity}')
    assert rates.load(path) == Rates()


def test_a_worker_leaves_what_it_measured_to_the_next_report(root: Path) -> None:
    for number in range(300):
        names = "".join(f"def g{at}(a, b):\n    return a + b\n\n\n" for at in range(150))
        (root / f"big{number}.py").write_text(names)
    with connect(root) as client:
        guessed = client.call("report")["seconds"]
        client.call("begin")
        wait_for(lambda: client.call("status")["files"] == 420)
        wait_for(lambda: client.call("status")["phase"] == "ready")
        wait_for(lambda: place.rates_path().is_file())
        learned = rates.load(place.rates_path())
        assert learned.reading != 1.0
        assert learned.chunks_per_s == CHUNKS_PER_S, "nothing was embedded"
        assert client.call("report")["seconds"] == pytest.approx(guessed * learned.reading, 0.01)
        client.call("stop")
    wait_for(lambda: is_free(root))
