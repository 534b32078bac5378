import unittest

from rota.people import parse_person
from rota.shifts import parse_shift, parse_shifts


class ShiftsTest(unittest.TestCase):
    def test_parse_shift(self):
        shift = parse_shift("mon 09:00-12:30 front desk: keys, first aid")
        self.assertEqual(shift.label(), "mon 09:00-12:30 front desk")
        self.assertEqual(shift.skills, {"keys", "first aid"})
        with self.assertRaises(ValueError):
            parse_shift("day 09:00-12:30 desk")

    def test_parse_shifts(self):
        found = parse_shifts("# a week\n\ntue 10:00-11:00 shop\nmon 12:00-13:00 desk\n")
        self.assertEqual([shift.place for shift in found], ["desk", "shop"])

    def test_overlaps(self):
        one = parse_shift("mon 09:00-12:00 desk")
        self.assertTrue(one.overlaps(parse_shift("mon 11:00-13:00 shop")))
        self.assertFalse(one.overlaps(parse_shift("tue 09:00-12:00 desk")))

    def test_parse_person(self):
        person = parse_person("Ada; skills=keys; away=sat, sun; hours=7.5")
        self.assertEqual((person.name, person.limit), ("Ada", 450))
        self.assertTrue(person.is_fit(parse_shift("mon 09:00-12:00 desk: keys")))
        self.assertFalse(person.is_fit(parse_shift("sat 09:00-12:00 desk")))
