"""The pictures of the README exist, are small, and show the present windows."""

from __future__ import annotations

import re

from scripts import pictures

README = (pictures.ROOT / "README.md").read_text()
NAMES = ("completion", "next-edit", "edit", "chat", "search", "agent", "tour")
FOREIGN = "foreign-agent"
"""Recorded by `scripts/foreign_picture.py`, which needs an agent that the tests do not install."""


def test_each_picture_is_of_the_present_windows() -> None:
    """If it fails: run `make pictures`, and look at each of them."""
    for name in NAMES:
        text = (pictures.FOLDER / f"{name}.svg").read_text()
        assert f"made from {pictures.digest()}" in text, name


def test_the_readme_shows_each_picture() -> None:
    assert set(re.findall(r"\(doc/pictures/([\w-]+)\.svg\)", README)) == {*NAMES, FOREIGN}


def test_the_animation_is_short_and_small() -> None:
    path = pictures.FOLDER / "tour.svg"
    found = re.search(r"animation: play ([\d.]+)s", path.read_text())
    assert found
    assert float(found[1]) <= 20
    assert path.stat().st_size <= 3_000_000
