import unittest

from trips.schedule import connection, every, gaps, merged, next_departure, overlaps


class ScheduleTest(unittest.TestCase):
    def test_overlaps(self):
        self.assertTrue(overlaps((1, 5), (4, 8)))
        self.assertFalse(overlaps((1, 4), (4, 8)))

    def test_merged(self):
        self.assertEqual(merged([(5, 8), (1, 3), (2, 4)]), [(1, 4), (5, 8)])

    def test_gaps(self):
        self.assertEqual(gaps([(3, 5), (7, 8)], 0, 10), [(0, 3), (5, 7), (8, 10)])

    def test_next_departure(self):
        self.assertEqual(next_departure([10, 20, 30], 20), 20)
        self.assertIsNone(next_departure([10], 11))

    def test_every(self):
        self.assertEqual(every(10, 30, 10), [10, 20, 30])

    def test_connection(self):
        self.assertEqual(connection([100, 110, 120], 104), 110)
