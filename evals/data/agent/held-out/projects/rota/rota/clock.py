"""Times of a day, as minutes since midnight."""

DAY = 24 * 60


def parse_time(text):
    """Return the minutes of a text like "09:30"."""
    hours, _, minutes = text.strip().partition(":")
    found = int(hours) * 60 + int(minutes or 0)
    if not 0 <= found < DAY:
        raise ValueError(f"no such time: {text}")
    return found


def format_time(minutes):
    """Return a text like "09:30"."""
    return f"{minutes // 60:02}:{minutes % 60:02}"


def length(start, end):
    """Return the minutes from one time to the next occurrence of another."""
    return (end - start) % DAY


def format_hours(minutes):
    """Return a text like "7.5 h", without needless zeros."""
    return f"{minutes / 60:.2f}".rstrip("0").rstrip(".") + " h"
