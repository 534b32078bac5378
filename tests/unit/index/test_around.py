"""What the code at a cursor leans on, found in a real store."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.index.records import Hit
from lcursor.index.retrieve import MAX_NAMES, find_around, names_near
from lcursor.index.search import Searcher
from tests.unit.index import searching

SHIPS = '''"""Ships."""


class Ship:
    """Floats."""

    def __init__(self, name):
        self.name = name

    def sail_to(
        self,
        harbour,
        knots=5,
    ):
        distance = measure(harbour)
        return distance / knots


def christen_ship(name, wine):
    bottle = wine.open()
    return Ship(name)
'''
LONG = "def {0}():\n" + "".join(f"    {{0}}_step_{n}()\n" for n in range(90))
FILES = {
    "ships.py": SHIPS,
    "harbours.py": "def find_harbour(name):\n    return name\n\n\ndef leave(ship):\n    pass\n",
    "one.py": "def twice_named():\n    return 1\n\n\ndef thrice_named():\n    return 1\n",
    "two.py": "def twice_named():\n    return 2\n\n\ndef thrice_named():\n    return 2\n",
    "three.py": "def thrice_named():\n    return 3\n",
    "here.py": "def local_helper():\n    return 1\n\n\ndef trip():\n    pass\n",
    "fleet.py": "class Fleet:\n"
    + "".join(
        "    " + line + "\n" for n in range(4) for line in LONG.format(f"task_{n}").split("\n")
    ),
}


@pytest.fixture
def search(tmp_path: Path) -> Searcher:
    return searching.searcher(searching.made(tmp_path / "index", FILES))


def definitions(hits: list[Hit]) -> dict[str, str]:
    return {hit.path: hit.text for hit in hits if "head" in hit.parts}


def test_a_name_in_use_brings_the_head_of_its_definition(search: Searcher) -> None:
    hits = find_around(search, "here.py", "def trip():\n    ship = christen_ship(", "\n")
    assert definitions(hits)["ships.py"] == "def christen_ship(name, wine):"
    row = SHIPS.split("\n").index("def christen_ship(name, wine):")
    assert (hits[0].first_row, hits[0].end_row, hits[0].score) == (row, row + 1, 1.0)
    assert hits[0].parts == {"head": 1.0}


def test_a_signature_of_several_lines_comes_whole_and_no_body(search: Searcher) -> None:
    text = definitions(find_around(search, "here.py", "def trip():\n    ship.sail_to(", ""))[
        "ships.py"
    ]
    assert "harbour," in text
    assert "knots=5," in text
    assert "measure" not in text


def test_a_large_class_comes_as_its_outline(search: Searcher) -> None:
    text = definitions(find_around(search, "here.py", "all_ships = Fleet(", ""))["fleet.py"]
    assert text.startswith("class Fleet:")
    assert "def task_0" in text
    assert "task_0_step_3" not in text


def test_a_name_with_many_definitions_is_left_out(search: Searcher) -> None:
    assert not definitions(find_around(search, "here.py", "thrice_named(", ""))
    assert definitions(find_around(search, "here.py", "twice_named(", "")).keys() == {
        "one.py",
        "two.py",
    }


def test_names_of_the_file_itself_are_known_already(search: Searcher) -> None:
    assert not definitions(find_around(search, "here.py", "local_helper(", ""))


def test_pieces_like_the_lines_come_behind_and_none_of_the_file_itself(search: Searcher) -> None:
    hits = find_around(search, "ships.py", "bottle = wine.open()\nfind_harbour(", "")
    assert hits[0].path == "harbours.py"
    assert all(hit.path != "ships.py" for hit in hits)
    hits = find_around(search, "here.py", "bottle = wine.open()\n", "")
    assert "ships.py" in [hit.path for hit in hits if "head" not in hit.parts]


def test_the_nearest_names_come_first_each_once() -> None:
    assert names_near(["alpha(beta)", "gamma.delta("], ["epsilon, alpha"]) == [
        "delta",
        "gamma",
        "beta",
        "alpha",
        "epsilon",
    ]
    assert len(names_near([f"name_{n}" for n in range(100)], [])) == MAX_NAMES
    assert names_near(["def", "self", "if x is None"], []) == ["None"]
    assert names_near(["ab + abc"], []) == ["abc"]


@pytest.mark.parametrize("text", ["", "\n\n\n", '"unclosed', "((((", "\udcff", "名前(", "1 2 3"])
def test_odd_text_raises_no_error(search: Searcher, text: str) -> None:
    assert isinstance(find_around(search, "here.py", text, text), list)
