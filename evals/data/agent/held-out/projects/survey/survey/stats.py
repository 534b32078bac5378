"""Numbers about answers."""

import math


def numbers(answers, question):
    """Return the answers to a question that are numbers."""
    return [row[question] for row in answers if isinstance(row[question], float)]


def mean(values):
    """Return the mean of numbers.

    Raises:
        ValueError: there are none.
    """
    if not values:
        raise ValueError("no numbers")
    return sum(values) / len(values)


def median(values):
    """Return the middle one of numbers, or the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return mean(ordered[half - 1 : half + 1])


def group_means(answers, question, by):
    """Return the mean answer to a question for each answer to another, None without numbers."""
    groups = {}
    for row in answers:
        groups.setdefault(row[by], []).append(row)
    means = {}
    for name, rows in groups.items():
        values = numbers(rows, question)
        means[name] = mean(values) if values else None
    return means


def bins(values, count):
    """Return how many numbers there are in each of some equal ranges from lowest to highest."""
    if not values:
        return [0] * count
    low, high = min(values), max(values)
    width = (high - low) / count or 1
    counts = [0] * count
    for value in values:
        counts[min(math.floor((value - low) / width), count - 1)] += 1
    return counts


def shares(answers, question):
    """Return the share of each answer to a question, the most frequent first."""
    given = [row[question] for row in answers if row[question] is not None]
    counts = {value: given.count(value) for value in given}
    return {
        value: count / len(given)
        for value, count in sorted(counts.items(), key=lambda pair: -pair[1])
    }
