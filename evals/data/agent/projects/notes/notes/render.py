"""Show notes as HTML and as text."""


def escape(text):
    """Return a text for HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def excerpt(text, width):
    """Return the first words of a text that fit into a width, with "…" if words are left out."""
    words = text.split()
    line = ""
    for number, word in enumerate(words):
        longer = f"{line} {word}".strip()
        rest = 0 if number == len(words) - 1 else 1
        if len(longer) + rest > width:
            return line + "…"
        line = longer
    return line


def paragraphs(body):
    """Return the HTML of a body, whose paragraphs are separated by empty lines."""
    parts = [part.strip() for part in body.split("\n\n")]
    return "\n".join(f"<p>{escape(part)}</p>" for part in parts if part)


def to_html(note):
    """Return the HTML of a note."""
    tags = "".join(f' <span class="tag">{escape(tag)}</span>' for tag in note.tags)
    return f"<h1>{escape(note.title)}</h1>{tags}\n{paragraphs(note.body)}"


def table(rows):
    """Return rows of text as lines with aligned columns."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    ]
