"""Timetables. Times are minutes since midnight; a span is a pair of them."""


def overlaps(one, other):
    """Return whether two spans share time; spans that only touch do not."""
    return one[0] < other[1] and other[0] < one[1]


def merged(spans):
    """Return spans in order, those that overlap or touch as one."""
    found = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def gaps(spans, start, end):
    """Return the free spans between a start and an end."""
    found = []
    for first, last in merged(spans):
        if first > start:
            found.append((start, min(first, end)))
        start = max(start, last)
    if start < end:
        found.append((start, end))
    return found


def next_departure(times, now):
    """Return the first time that is not before now; None if there is none."""
    return min((time for time in times if time >= now), default=None)


def every(start, end, step):
    """Return the times from a start up to and including an end."""
    return list(range(start, end + 1, step))


def connection(departures, arrival, change=5):
    """Return the first departure that can be reached; changing takes some minutes."""
    return next_departure(departures, arrival + change)
