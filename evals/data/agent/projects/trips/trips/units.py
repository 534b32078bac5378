"""Durations are whole minutes, distances are kilometres."""

import re

KM_PER_MILE = 1.609344


def to_miles(km):
    """Return a distance in miles, rounded to one decimal."""
    return round(km / KM_PER_MILE, 1)


def parse_duration(text):
    """Return the minutes of a text like "1h 30m", "2h" or "45m".

    Raises:
        ValueError: it is no duration.
    """
    match = re.fullmatch(r"(?:(\d+)h)? ?(?:(\d+)m)?", text.strip())
    if not match or not text.strip():
        raise ValueError(f"not a duration: {text}")
    return int(match[1] or 0) * 60 + int(match[2] or 0)


def format_duration(minutes):
    """Return a text like "1 h 30 min", "2 h" or "45 min"."""
    hours, rest = divmod(minutes, 60)
    if hours and rest:
        return f"{hours} h {rest} min"
    return f"{hours} h" if hours else f"{rest} min"


def parse_time(text):
    """Return the minutes since midnight of a text like "14:05"."""
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def format_time(minutes):
    """Return a time like "14:05"; times after midnight start at "00:00" again."""
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}"


def average_speed(km, minutes):
    """Return the speed in kilometres an hour; 0 for no time."""
    return km / minutes * 60 if minutes else 0
