import unittest

from shop.prices import cheapest, discounted, format_price, parse_price, with_tax


class PricesTest(unittest.TestCase):
    def test_parse_price(self):
        self.assertEqual(parse_price("€ 12.50"), 1250)
        self.assertEqual(parse_price("$ 7"), 700)
        self.assertEqual(parse_price("€ 1,234.5"), 123450)

    def test_format_price(self):
        self.assertEqual(format_price(123405), "€ 1,234.05")
        self.assertEqual(format_price(-5, "USD"), "-$ 0.05")

    def test_discounted(self):
        self.assertEqual(discounted(1000, 25), 750)
        with self.assertRaises(ValueError):
            discounted(1000, 101)

    def test_with_tax(self):
        self.assertEqual(with_tax(1000, 0.2), 1200)

    def test_cheapest(self):
        self.assertEqual(cheapest({"a": 3, "b": 2}), "b")
