import unittest

from survey.stats import group_means, mean, median, shares

ANSWERS = [
    {"town": "Ulm", "age": 20.0},
    {"town": "Bonn", "age": 40.0},
    {"town": "Ulm", "age": 30.0},
    {"town": "Ulm", "age": None},
]


class StatsTest(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(mean([1, 2, 6]), 3)
        with self.assertRaises(ValueError):
            mean([])

    def test_median(self):
        self.assertEqual(median([5, 1, 3]), 3)
        self.assertEqual(median([4, 1, 3, 2]), 2.5)

    def test_group_means(self):
        self.assertEqual(group_means(ANSWERS, "age", "town"), {"Ulm": 25, "Bonn": 40})

    def test_shares(self):
        self.assertEqual(list(shares(ANSWERS, "town").items()), [("Ulm", 0.75), ("Bonn", 0.25)])
