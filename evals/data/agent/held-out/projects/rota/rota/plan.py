"""A plan: which shifts each person has."""


class Plan:
    """The shifts of people, by name."""

    def __init__(self, people):
        self.people = list(people)
        self.shifts = {person.name: [] for person in self.people}

    def minutes(self, person):
        """Return how long a person is on duty."""
        return sum(shift.minutes() for shift in self.shifts[person.name])

    def can_take(self, person, shift):
        """Return whether a person is fit and free for a shift, and below the limit after it."""
        return (
            person.is_fit(shift)
            and not any(shift.overlaps(other) for other in self.shifts[person.name])
            and self.minutes(person) + shift.minutes() <= person.limit
        )

    def give(self, person, shift):
        """Give a shift to a person.

        Raises:
            ValueError: the person cannot take it.
        """
        if not self.can_take(person, shift):
            raise ValueError(f"{person.name} cannot take {shift.label()}")
        self.shifts[person.name].append(shift)

    def fill(self, shifts):
        """Give each shift to the fit person with the least to do, and return those left over."""
        left = []
        for shift in shifts:
            able = [person for person in self.people if self.can_take(person, shift)]
            if able:
                self.give(min(able, key=self.minutes), shift)
            else:
                left.append(shift)
        return left

    def copy(self):
        """Return a plan that can be changed without changing this one."""
        other = Plan(self.people)
        other.shifts = {name: list(shifts) for name, shifts in self.shifts.items()}
        return other

    def could_fill(self, shifts):
        """Return whether all of some shifts could be given; this plan stays as it is."""
        return not self.copy().fill(shifts)

    def swap(self, one, other):
        """Exchange the shifts of two people, or change nothing if one of them cannot.

        Raises:
            ValueError: a person cannot take a shift of the other.
        """
        trial = self.copy()
        trial.shifts[one.name], trial.shifts[other.name] = [], []
        for shift in self.shifts[other.name]:
            trial.give(one, shift)
        for shift in self.shifts[one.name]:
            trial.give(other, shift)
        self.shifts = trial.shifts
