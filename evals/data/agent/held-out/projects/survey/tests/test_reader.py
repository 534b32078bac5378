import unittest

from survey.reader import read_answers, split_line, to_value


class ReaderTest(unittest.TestCase):
    def test_split_line(self):
        self.assertEqual(split_line("a, b ,,c"), ["a", "b", "", "c"])

    def test_quoted(self):
        self.assertEqual(split_line('1,"red, blue",2'), ["1", "red, blue", "2"])
        self.assertEqual(split_line('"say ""yes""",x'), ['say "yes"', "x"])

    def test_to_value(self):
        self.assertEqual([to_value(each) for each in ("7", "1.5", "N/A", "yes")], [7, 1.5, None, "yes"])

    def test_read_answers(self):
        found = read_answers("town,age\nUlm,41\n\nBonn,-\n")
        self.assertEqual(found, [{"town": "Ulm", "age": 41}, {"town": "Bonn", "age": None}])
        with self.assertRaises(ValueError):
            read_answers("town,age\nUlm\n")
