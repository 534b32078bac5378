"""Where `eval splice` cuts real files, and how it types."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path
from typing import cast

import pytest

from evals import corpus, splice
from evals.corpus import LANGUAGES, File
from lcursor.errors import EngineFailed, LcursorError
from lcursor.fim.engine import Engine as RealEngine
from lcursor.fim.prompt import Source


def pieces(text: str) -> list[str]:
    """Split as tokenizers do, near enough."""
    return re.findall(r" ?\w{1,6}|\s+(?!\S)|\s|[^\w\s]+", text)


class Engine:
    """Costs 1 a token; 0.5 more where it spliced."""

    def __init__(self) -> None:
        self.splices, self.reader = True, self
        self.read_tokens = 0
        self.calls: list[tuple[str, bool, str]] = []

    def nll(self, source: Source, text: str) -> list[float]:
        self.read_tokens = 3 if self.splices else 90
        self.calls.append((source.prefix, self.splices, text))
        return [1.0 + self.splices / 2 for _ in pieces(text)]


@pytest.fixture
def spot() -> splice.Spot:
    found = splice.spots(8, 1, 16, pieces)
    return found[0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_files_here(language: str) -> None:
    found = corpus.files(language, 1)
    assert len(found) > 20
    assert found != corpus.files(language, 2)
    assert {file.label for file in found} == {file.label for file in corpus.files(language, 2)}
    assert not any(file.label.startswith("/") for file in found)


def test_a_file_that_is_no_text_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes(b"caf\xe9")
    assert File("python", "latin.py", path).read() == ""


def test_spots_are_of_all_languages_and_the_same_again() -> None:
    found = splice.spots(10, 3, 16, pieces)
    assert sorted({spot.language for spot in found}) == sorted(LANGUAGES)
    assert found == splice.spots(10, 3, 16, pieces)
    assert found != splice.spots(10, 4, 16, pieces)


def test_a_spot_is_a_line_of_its_file() -> None:
    files = {file.label: file for language in LANGUAGES for file in corpus.files(language, 1)}
    least, most = splice.PREFIX_TOKENS
    for spot in splice.spots(24, 1, 16, pieces):
        text = files[spot.label].read()
        assert spot.prefixes[0] + spot.rest in text
        assert spot.suffix in text
        before = "\n".join(text.split("\n")[: spot.first_row]) + "\n" * bool(spot.first_row)
        assert text.startswith(before + spot.prefixes[0] + spot.rest)
        assert before.count("\n") + spot.prefixes[0].count("\n") == spot.row
        assert least - 40 <= len(pieces(spot.prefixes[0])) <= most + len(pieces("x = " * 80))
        assert len(spot.prefixes) == 17
        for shorter, longer in zip(spot.prefixes[1:], spot.prefixes, strict=False):
            assert longer.startswith(shorter)
            assert len(shorter) < len(longer)
        assert spot.prefixes[-1].count("\n") == spot.prefixes[0].count("\n")


def test_places_of_one_file_are_read_on(spot: splice.Spot) -> None:
    chosen = splice.spots(12, 1, 16, pieces)
    groups = {spot.label: [each for each in chosen if each.label == spot.label] for spot in chosen}
    assert len(groups) < 12
    assert all(len(group) <= splice.A_FILE for group in groups.values())
    for before, after in itertools.pairwise(chosen):
        if before.label == after.label:
            assert after.row > before.row
            assert after.prefixes[-1].startswith(before.prefixes[0])


def test_a_short_file_has_no_spot(tmp_path: Path) -> None:
    path = tmp_path / "short.py"
    path.write_text("total = sum(values) / len(values) if values else 0\n" * 9)
    assert splice.choose(File("python", "short.py", path), random.Random(1), 4, pieces) == []


def test_too_many_positions_say_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splice, "files", lambda language, seed: [])
    with pytest.raises(LcursorError, match="Only 0 of 5"):
        splice.spots(5, 1, 2, pieces)


def test_a_suffix_is_read_first_and_then_typed_behind(spot: splice.Spot) -> None:
    engine = Engine()
    (case,) = splice.measure(cast("RealEngine", engine), [spot], [1, 2])
    before = spot.prefixes
    assert engine.calls == [
        (before[2], False, ""),
        (before[1], True, ""),
        (before[0], True, ""),
        (before[0], True, spot.rest),
        (before[1], False, ""),
        (before[0], True, ""),
        (before[0], True, spot.rest),
        (before[0], False, ""),
        (before[0], False, spot.rest),
    ]
    count = len(pieces(spot.rest))
    assert case.exact == [1.0] * count
    assert case.spliced == {1: [1.5] * count, 2: [1.5] * count}
    assert case.key_tokens == [3, 3, 3]
    assert engine.reader.splices is True


def test_an_engine_that_only_splices_is_found_out(spot: splice.Spot) -> None:
    class Lazy(Engine):
        def nll(self, source: Source, text: str) -> list[float]:
            costs = super().nll(source, text)
            self.read_tokens = 3
            return costs

    with pytest.raises(EngineFailed, match="read 3 tokens"):
        list(splice.measure(cast("RealEngine", Lazy()), [spot], [2]))
