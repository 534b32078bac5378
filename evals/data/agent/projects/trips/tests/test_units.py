import unittest

from trips.units import (
    average_speed,
    format_duration,
    format_time,
    parse_duration,
    parse_time,
    to_miles,
)


class UnitsTest(unittest.TestCase):
    def test_to_miles(self):
        self.assertEqual(to_miles(10), 6.2)

    def test_parse_duration(self):
        self.assertEqual(parse_duration("1h 30m"), 90)
        self.assertEqual(parse_duration("45m"), 45)
        with self.assertRaises(ValueError):
            parse_duration("soon")

    def test_format_duration(self):
        self.assertEqual(format_duration(90), "1 h 30 min")
        self.assertEqual(format_duration(120), "2 h")
        self.assertEqual(format_duration(45), "45 min")

    def test_times(self):
        self.assertEqual(parse_time("14:05"), 845)
        self.assertEqual(format_time(845), "14:05")

    def test_average_speed(self):
        self.assertEqual(average_speed(30, 20), 90)
