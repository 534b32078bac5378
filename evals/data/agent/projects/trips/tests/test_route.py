import unittest

from trips.route import Network


class RouteTest(unittest.TestCase):
    def setUp(self):
        self.network = Network()
        self.network.add("Aby", "Bly", 5)
        self.network.add("Bly", "Coy", 4)
        self.network.add("Aby", "Coy", 12)
        self.network.add("Xen", "Yew", 1)

    def test_towns(self):
        self.assertEqual(self.network.towns(), ["Aby", "Bly", "Coy", "Xen", "Yew"])

    def test_neighbours(self):
        self.assertEqual(self.network.neighbours("Coy"), ["Aby", "Bly"])

    def test_shortest(self):
        self.assertEqual(self.network.shortest("Aby", "Coy"), (9, ["Aby", "Bly", "Coy"]))
        self.assertIsNone(self.network.shortest("Aby", "Yew"))

    def test_reachable(self):
        self.assertEqual(self.network.reachable("Aby"), ["Bly", "Coy"])

    def test_length(self):
        self.assertEqual(self.network.length(["Aby", "Bly", "Coy"]), 9)
