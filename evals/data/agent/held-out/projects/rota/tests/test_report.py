import unittest

from rota.people import Person
from rota.plan import Plan
from rota.report import board, table
from rota.shifts import parse_shift


class ReportTest(unittest.TestCase):
    def test_table(self):
        ada = Person("Ada")
        plan = Plan([ada, Person("Bob")])
        plan.give(ada, parse_shift("tue 10:00-11:30 shop"))
        plan.give(ada, parse_shift("mon 09:00-12:00 desk"))
        self.assertEqual(
            table(plan),
            ["Ada (4.5 h): mon 09:00-12:00 desk, tue 10:00-11:30 shop", "Bob (0 h): -"],
        )

    def test_board(self):
        text = board("Ada; hours=3\nBob", "mon 09:00-12:00 desk\ntue 09:00-10:00 desk\n")
        self.assertEqual(text.splitlines()[-1], "all shifts are taken")
