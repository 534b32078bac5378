"""The shifts of a week."""

from rota.clock import format_time, length, parse_time

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class Shift:
    """A duty at one place; one that ends before it starts ends on the next day."""

    def __init__(self, place, day, start, end, skills=()):
        self.place = place
        self.day = day
        self.start = start
        self.end = end
        self.skills = frozenset(skills)

    def __repr__(self):
        return f"<{self.label()}>"

    def minutes(self):
        """Return how long it is."""
        return length(self.start, self.end)

    def begin(self):
        """Return the minutes from the start of the week to its start."""
        return DAYS.index(self.day) * 24 * 60 + self.start

    def overlaps(self, other):
        """Return whether both need the same person at some time."""
        return (
            self.begin() < other.begin() + other.minutes()
            and other.begin() < self.begin() + self.minutes()
        )

    def label(self):
        """Return a text like "mon 09:00-12:30 desk"."""
        return f"{self.day} {format_time(self.start)}-{format_time(self.end)} {self.place}"


def parse_shift(line):
    """Return the shift of a line like "mon 09:00-12:30 desk: keys, first aid"."""
    day, times, rest = line.split(None, 2)
    if day not in DAYS:
        raise ValueError(f"no such day: {day}")
    start, _, end = times.partition("-")
    place, _, skills = rest.partition(":")
    names = [name.strip() for name in skills.split(",") if name.strip()]
    return Shift(place.strip(), day, parse_time(start), parse_time(end), names)


def parse_shifts(text):
    """Return the shifts of the lines that are neither empty nor comments, by their start."""
    lines = [line.strip() for line in text.splitlines()]
    found = [parse_shift(line) for line in lines if line and not line.startswith("#")]
    return sorted(found, key=Shift.begin)
