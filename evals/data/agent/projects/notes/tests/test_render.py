import unittest

from notes.parse import Note
from notes.render import escape, excerpt, paragraphs, table, to_html


class RenderTest(unittest.TestCase):
    def test_escape(self):
        self.assertEqual(escape("a < b & c > d"), "a &lt; b &amp; c &gt; d")

    def test_excerpt(self):
        self.assertEqual(excerpt("one two three", 20), "one two three")
        self.assertEqual(excerpt("one two three", 8), "one two…")

    def test_paragraphs(self):
        self.assertEqual(paragraphs("one\n\ntwo < 3"), "<p>one</p>\n<p>two &lt; 3</p>")

    def test_to_html(self):
        html = to_html(Note("A & B", "text", ["x"]))
        self.assertEqual(html, '<h1>A &amp; B</h1> <span class="tag">x</span>\n<p>text</p>')

    def test_table(self):
        self.assertEqual(table([("a", "b"), ("long", "c")]), ["a     b", "long  c"])
