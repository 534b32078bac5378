import unittest
from datetime import date

from notes.parse import parse_day, parse_note, parse_tags, word_count

TEXT = """Seeds
tags: home, garden
date: 2024-03-01

Buy seeds.

Not too many.
"""


class ParseTest(unittest.TestCase):
    def test_parse_tags(self):
        self.assertEqual(parse_tags("home, Garden,, home"), ["home", "garden"])
        self.assertEqual(parse_tags(" "), [])

    def test_parse_day(self):
        self.assertEqual(parse_day(" 2024-03-01 "), date(2024, 3, 1))
        self.assertIsNone(parse_day("tomorrow"))

    def test_parse_note(self):
        note = parse_note(TEXT)
        self.assertEqual(note.title, "Seeds")
        self.assertEqual(note.tags, ["home", "garden"])
        self.assertEqual(note.day, date(2024, 3, 1))
        self.assertEqual(note.body, "Buy seeds.\n\nNot too many.")

    def test_word_count(self):
        self.assertEqual(word_count("one  two\nthree"), 3)
