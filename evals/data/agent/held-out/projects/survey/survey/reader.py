"""Reads answers from a text with comma-separated values; the first line has the questions."""

MISSING = ("", "n/a", "-")


def split_line(line):
    """Return the fields of a line; a quoted field may have commas, and quotes written twice."""
    fields, field, is_quoted, position = [], "", False, 0
    while position < len(line):
        char = line[position]
        if is_quoted and line.startswith('""', position):
            field += '"'
            position += 1
        elif char == '"':
            is_quoted = not is_quoted
        elif char == "," and not is_quoted:
            fields.append(field.strip())
            field = ""
        else:
            field += char
        position += 1
    return [*fields, field.strip()]


def to_value(field):
    """Return a number if the field is one, None if the answer is missing, or else the text."""
    if field.lower() in MISSING:
        return None
    try:
        return float(field)
    except ValueError:
        return field


def read_answers(text):
    """Return a dictionary for each person, from questions to answers.

    Raises:
        ValueError: a line has too many or too few fields.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return []
    questions = split_line(lines[0])
    answers = []
    for number, line in enumerate(lines[1:], 2):
        fields = split_line(line)
        if len(fields) != len(questions):
            raise ValueError(f"line {number} has {len(fields)} fields, not {len(questions)}")
        answers.append(dict(zip(questions, map(to_value, fields))))
    return answers
