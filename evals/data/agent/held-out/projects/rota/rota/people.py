"""The volunteers."""


class Person:
    """A volunteer with skills, days of absence, and a limit of minutes a week."""

    def __init__(self, name, skills=(), away=(), limit=20 * 60):
        self.name = name
        self.skills = frozenset(skills)
        self.away = frozenset(away)
        self.limit = limit

    def __repr__(self):
        return f"<{self.name}>"

    def is_fit(self, shift):
        """Return whether the person has the skills for a shift and is there on its day."""
        return shift.skills <= self.skills and shift.day not in self.away


def parse_person(line):
    """Return the person of a line like "Ada; skills=keys, first aid; away=sat; hours=12"."""
    name, *fields = [part.strip() for part in line.split(";")]
    values = dict(field.split("=", 1) for field in fields)

    def words(key):
        return [word.strip() for word in values.get(key, "").split(",") if word.strip()]

    limit = int(float(values.get("hours", 20)) * 60)
    return Person(name, words("skills"), words("away"), limit)
