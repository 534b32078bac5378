"""The plots of the documentation are drawn from the present data."""

from __future__ import annotations

import pytest

from scripts import plots


@pytest.mark.parametrize("name", ["latency", "index-growth"])
def test_a_plot_shows_its_data(name: str) -> None:
    """If it fails: run `make plots`, and look at each of them."""
    path = plots.FOLDER / f"{name}.svg"
    assert path.read_text() == plots.plots()[path]


@pytest.mark.parametrize("name", [plots.LATENCY, plots.GROWTH])
def test_a_description_of_the_run_is_next_to_its_data(name: str) -> None:
    assert f"{name}.json" in (plots.ROOT / f"bench/results/{name}.md").read_text()
