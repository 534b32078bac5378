import unittest

from rota.people import Person
from rota.plan import Plan
from rota.shifts import parse_shift


class PlanTest(unittest.TestCase):
    def setUp(self):
        self.ada = Person("Ada", skills=["keys"])
        self.bob = Person("Bob", limit=4 * 60)
        self.plan = Plan([self.ada, self.bob])
        self.morning = parse_shift("mon 09:00-12:00 desk")
        self.noon = parse_shift("mon 11:00-13:00 shop")
        self.vault = parse_shift("mon 11:30-12:00 vault: keys")

    def test_give(self):
        self.plan.give(self.ada, self.morning)
        with self.assertRaises(ValueError):
            self.plan.give(self.ada, self.noon)

    def test_limit(self):
        self.plan.give(self.bob, self.morning)
        self.assertFalse(self.plan.can_take(self.bob, parse_shift("tue 09:00-11:00 desk")))

    def test_night(self):
        self.plan.give(self.bob, parse_shift("sat 22:30-01:00 gate"))
        self.assertEqual(self.plan.minutes(self.bob), 150)

    def test_fill(self):
        self.assertEqual(self.plan.fill([self.morning, self.noon, self.vault]), [self.vault])
        self.assertEqual(self.plan.shifts, {"Ada": [self.morning], "Bob": [self.noon]})

    def test_could_fill(self):
        self.plan.give(self.ada, self.morning)
        self.assertTrue(self.plan.could_fill([self.noon]))
        self.assertEqual(self.plan.shifts, {"Ada": [self.morning], "Bob": []})

    def test_swap(self):
        self.plan.give(self.ada, self.morning)
        self.plan.swap(self.ada, self.bob)
        self.assertEqual(self.plan.shifts, {"Ada": [], "Bob": [self.morning]})
