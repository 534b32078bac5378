"""Read notes from text.

    A title
    tags: home, garden
    date: 2024-03-01

    The body.
"""

from dataclasses import dataclass, field
from datetime import date


@dataclass
class Note:
    title: str
    body: str = ""
    tags: list = field(default_factory=list)
    day: date = None


def parse_tags(text):
    """Return the tags of "home, Garden": lower case, each once, in their order."""
    tags = [tag.strip().lower() for tag in text.split(",")]
    return list(dict.fromkeys(tag for tag in tags if tag))


def parse_day(text):
    """Return the date of "2024-03-01"; None for any other text."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        return None


def parse_note(text):
    """Return the note of a text; its head ends at the first empty line."""
    head, _, body = text.strip().partition("\n\n")
    title, *fields = head.split("\n")
    note = Note(title.strip(), body.strip())
    for line in fields:
        name, _, value = line.partition(":")
        if name.strip().lower() == "tags":
            note.tags = parse_tags(value)
        elif name.strip().lower() == "date":
            note.day = parse_day(value)
    return note


def word_count(text):
    """Return the number of words."""
    return len(text.split())
