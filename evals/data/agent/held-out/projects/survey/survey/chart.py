"""Charts of characters."""

from survey.stats import bins

WIDTH = 20


def bar(share):
    """Return a bar whose length is a share of the full width."""
    return "#" * round(share * WIDTH)


def histogram(values, count):
    """Return a line for each range of numbers: how many there are, and a bar."""
    counts = bins(values, count)
    highest = max(counts) or 1
    return [f"{each:>3} {bar(each / highest)}".rstrip() for each in counts]
