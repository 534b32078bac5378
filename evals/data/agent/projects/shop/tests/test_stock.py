import unittest

from shop.stock import OutOfStock, Stock


class StockTest(unittest.TestCase):
    def setUp(self):
        self.stock = Stock({"pen": 5, "ink": 1})

    def test_put(self):
        self.stock.put("pen", 2)
        self.stock.put("cap", 1)
        self.assertEqual(self.stock.counts, {"pen": 7, "ink": 1, "cap": 1})

    def test_take(self):
        self.stock.take({"pen": 2, "ink": 1})
        self.assertEqual(self.stock.counts, {"pen": 3, "ink": 0})

    def test_take_all_or_nothing(self):
        with self.assertRaises(OutOfStock):
            self.stock.take({"pen": 2, "ink": 2})
        self.assertEqual(self.stock.counts, {"pen": 5, "ink": 1})

    def test_missing(self):
        self.assertEqual(self.stock.missing({"pen": 2, "ink": 4}), {"ink": 3})

    def test_reorder(self):
        self.assertEqual(self.stock.reorder(5), ["ink"])
