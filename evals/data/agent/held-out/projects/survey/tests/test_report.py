import unittest

from survey.reader import read_answers
from survey.report import choices, compare, overview

ANSWERS = read_answers("""
team,mark,pet
red,1,cat
blue,2,dog
red,2,cat
blue,5,-
green,9,cat
""")


class ReportTest(unittest.TestCase):
    def test_compare(self):
        self.assertEqual(compare(ANSWERS, "mark", "team"), ["green: 9.0", "blue: 3.5", "red: 1.5"])

    def test_overview(self):
        lines = overview(ANSWERS, "mark")
        self.assertEqual(lines[0], "median 2.0")
        self.assertEqual(lines[1:], ["  3 " + "#" * 20, "  0", "  1 " + "#" * 7, "  1 " + "#" * 7])

    def test_choices(self):
        self.assertEqual(
            choices(ANSWERS, "pet"),
            [" 75 % " + "#" * 15 + " cat", " 25 % " + "#" * 5 + " dog"],
        )
