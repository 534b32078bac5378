import unittest

from shop.cart import Cart


class CartTest(unittest.TestCase):
    def setUp(self):
        self.cart = Cart()
        self.cart.add("pen", 200, 2)
        self.cart.add("ink", 900)

    def test_add(self):
        self.cart.add("pen", 200)
        self.assertEqual(self.cart.items["pen"], (200, 3))
        with self.assertRaises(ValueError):
            self.cart.add("pen", 200, 0)

    def test_remove(self):
        self.cart.remove("pen")
        self.assertEqual(self.cart.items["pen"], (200, 1))
        self.cart.remove("pen")
        self.assertNotIn("pen", self.cart.items)

    def test_count(self):
        self.assertEqual(self.cart.count(), 3)

    def test_shipping(self):
        self.assertEqual(self.cart.shipping(), 490)
        self.assertEqual(Cart().shipping(), 0)

    def test_total(self):
        self.cart.discount = 10
        self.assertEqual(self.cart.total(), 1170 + 490)

    def test_lines(self):
        self.assertEqual(self.cart.lines(), ["1 x ink: € 9.00", "2 x pen: € 4.00"])
