"""The plan as text for the notice board."""

from rota.clock import format_hours
from rota.people import parse_person
from rota.plan import Plan
from rota.shifts import Shift, parse_shifts


def table(plan):
    """Return a line for each person: the name, the hours, and the shifts by their start."""
    lines = []
    for person in plan.people:
        shifts = sorted(plan.shifts[person.name], key=Shift.begin)
        labels = ", ".join(shift.label() for shift in shifts) or "-"
        lines.append(f"{person.name} ({format_hours(plan.minutes(person))}): {labels}")
    return lines


def summary(plan, shifts):
    """Fill a plan, and return one line about it."""
    left = plan.fill(shifts)
    if not left:
        return "all shifts are taken"
    missing = ", ".join(shift.label() for shift in left)
    return f"{len(left)} of {len(shifts)} shifts are open: {missing}"


def board(people, shifts):
    """Return the text of the notice board for a text of people and one of shifts."""
    plan = Plan([parse_person(line) for line in people.splitlines() if line.strip()])
    last = summary(plan, parse_shifts(shifts))
    return "\n".join([*table(plan), last])
