"""The report about a survey."""

from survey.chart import bar, histogram
from survey.stats import group_means, median, numbers, shares


def format_number(number):
    """Return a number with one digit after the point, or "-" if there is none."""
    return "-" if number is None else f"{number:.1f}"


def compare(answers, question, by):
    """Return a line for each group, the highest mean first, groups without numbers last."""
    means = group_means(answers, question, by)
    ordered = sorted(means, key=lambda name: (means[name] is None, -(means[name] or 0)))
    return [f"{name}: {format_number(means[name])}" for name in ordered]


def overview(answers, question):
    """Return the median of the answers to a question, and a histogram."""
    values = numbers(answers, question)
    middle = median(values) if values else None
    return [f"median {format_number(middle)}", *histogram(values, 4)]


def choices(answers, question):
    """Return a line for each answer to a question: the percentage, a bar, and the answer."""
    return [
        f"{share * 100:3.0f} % {bar(share)} {value}"
        for value, share in shares(answers, question).items()
    ]
