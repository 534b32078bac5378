import unittest
from datetime import date

from notes.parse import Note
from notes.store import Store


class StoreTest(unittest.TestCase):
    def setUp(self):
        self.store = Store()
        self.store.add(Note("Seeds", "Buy seeds.", ["garden"], date(2024, 3, 1)))
        self.store.add(Note("Roof", "Repair the roof", ["home", "garden"], date(2024, 5, 1)))
        self.store.add(Note("Ideas", "Paint the house", ["home"]))

    def test_get(self):
        self.assertEqual(self.store.get("Roof").body, "Repair the roof")
        self.assertIsNone(self.store.get("roof"))

    def test_titles(self):
        self.assertEqual(self.store.titles(), ["Ideas", "Roof", "Seeds"])

    def test_find(self):
        self.assertEqual(self.store.find("the REPAIR"), ["Roof"])
        self.assertEqual(self.store.find("the"), ["Ideas", "Roof"])

    def test_tagged(self):
        self.assertEqual(self.store.tagged("garden"), ["Roof", "Seeds"])

    def test_newest(self):
        self.assertEqual(self.store.newest(2), ["Roof", "Seeds"])
        self.assertEqual(self.store.newest(9)[-1], "Ideas")

    def test_tag_counts(self):
        self.assertEqual(self.store.tag_counts(), {"garden": 2, "home": 2})
