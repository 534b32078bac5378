"""Keep notes by their titles."""

from datetime import date


class Store:
    def __init__(self):
        self._notes = {}

    def add(self, note):
        """Add a note; it replaces one of the same title."""
        self._notes[note.title] = note

    def get(self, title):
        """Return a note; None if there is no such title."""
        return self._notes.get(title)

    def titles(self):
        """Return all titles, sorted."""
        return sorted(self._notes)

    def find(self, words):
        """Return the titles of the notes with all words in title or body, in any case."""
        wanted = words.lower().split()
        found = []
        for title, note in self._notes.items():
            text = f"{title} {note.body}".lower()
            if all(word in text for word in wanted):
                found.append(title)
        return sorted(found)

    def tagged(self, tag):
        """Return the sorted titles of the notes with a tag."""
        return sorted(title for title, note in self._notes.items() if tag in note.tags)

    def newest(self, count):
        """Return the titles of the latest notes, newest first; those without a date come last."""
        notes = sorted(self._notes.values(), key=lambda note: note.day or date.min, reverse=True)
        return [note.title for note in notes[:count]]

    def tag_counts(self):
        """Return how many notes have each tag."""
        counts = {}
        for note in self._notes.values():
            for tag in note.tags:
                counts[tag] = counts.get(tag, 0) + 1
        return counts
