"""What is a mention, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.context import mentions
from lcursor.context.mentions import FileRows, Mention, parse, parse_rows, spell, without

CASES = [
    ("what does @buffer do", [("buffer", "")]),
    ("@file:src/a.py", [("file", "src/a.py")]),
    ("look at @file:src/a.py:10-20, please", [("file", "src/a.py:10-20")]),
    ("@file:a.py.", [("file", "a.py")]),
    ("@file:a.py!?", [("file", "a.py")]),
    ("is it (@file:a.py)?", [("file", "a.py")]),
    ("@file:f(1).txt here", [("file", "f(1).txt")]),
    ("@file:app/[id]/page.tsx", [("file", "app/[id]/page.tsx")]),
    ("@file:a.py's tests", [("file", "a.py")]),
    ("**@file:src/x** is bold", [("file", "src/x")]),
    ("@file:src/**", [("file", "src/**")]),
    ("@file:.env", [("file", ".env")]),
    ("@dir:.", [("dir", ".")]),
    ("@dir:..", [("dir", "..")]),
    ("@dir:src/..", [("dir", "src/..")]),
    ("@dir:src/.", [("dir", "src/.")]),
    ("@dir:src.", [("dir", "src")]),
    ('@file:"my file.py" and', [("file", "my file.py")]),
    ('@file:"my file.py":3-4 and', [("file", "my file.py:3-4")]),
    ("@file:'my file.py'", [("file", "my file.py")]),
    ('@file:"a \\"b\\".py"', [("file", 'a "b".py')]),
    ("@file:my\\ file.py", [("file", "my file.py")]),
    ('@file:"not closed', [("file", '"not')]),
    ("@symbol:Turn.stop, @symbol:`x`", [("symbol", "Turn.stop")]),
    ('@symbol:"operator []"', [("symbol", "operator []")]),
    ("@diff @diff:main..HEAD", [("diff", ""), ("diff", "main..HEAD")]),
    ("@diff:--staged.", [("diff", "--staged")]),
    ('@diff:"main -- src"', [("diff", "main -- src")]),
    ("@diff: what is wrong", [("diff", "")]),
    ("@commit:HEAD~2^", [("commit", "HEAD~2^")]),
    ("@selection:x", []),
    ("@selection: x", [("selection", "")]),
    ("@terminal:zsh @quickfix", [("terminal", "zsh"), ("quickfix", "")]),
    ("@diagnostics @selection", [("diagnostics", ""), ("selection", "")]),
    ("@codebase, how is it", [("codebase", "")]),
    ("@rules:style", [("rules", "style")]),
    ("解释@buffer的内容", [("buffer", "")]),
    ("@file:a.py。", [("file", "a.py")]),
    ("see:@buffer", [("buffer", "")]),
    ("“@buffer”", [("buffer", "")]),
    ("_@buffer_", []),  # could be a name
    ("@buffer_x @buffers @buffer2 @buffer-x", []),
    # what is none
    ("me@file.org, a.b@dir:x, x@buffer", []),
    ("mail me@example.org", []),
    ("@property\ndef f", []),
    ("@buffer.setter", []),
    ("@buffer()", []),
    ("@file @dir @symbol @rules", []),
    ("@file: a.py", []),
    ("npm i @codebase/core @types/node", []),
    ("\\@buffer", []),
    ("@@buffer", []),
    ("https://x.org/@file:a", []),
    ("a/@buffer", []),
    # code
    ("`@buffer`", []),
    ("``a ` @buffer``", []),
    ("`a` @buffer `b`", [("buffer", "")]),
    ("a ` b @buffer", [("buffer", "")]),
    ("a ` b\n\n@buffer ` c", [("buffer", "")]),
    ("```py\n@buffer\n```\n@diff", [("diff", "")]),
    ("````\n```\n@buffer\n````", []),
    ("~~~\n@buffer\n```\n@buffer\n~~~ \n@diff", [("diff", "")]),
    ("```\n@buffer", []),
    ("> ```\n> @buffer\n> ```\n@diff", [("diff", "")]),
    ("```inline``` @buffer", [("buffer", "")]),
    ("\\`@buffer\\`", [("buffer", "")]),
    ("   ```\n@buffer\n   ```", []),
    ("", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "found"), CASES)
def test_texts_that_are_mentions(text: str, found: list[tuple[str, str]]) -> None:
    assert [(one.kind, one.argument) for one in parse(text)] == found


def test_places_in_the_text_are_those_of_the_mention() -> None:
    text = 'a @file:"b c":1-2, @buffer. end'
    assert [text[one.first : one.end] for one in parse(text)] == ['@file:"b c":1-2', "@buffer"]
    assert without(text, parse(text)) == "a , . end"


PLACES = [
    ("a.py", FileRows("a.py", 0, -1, False)),
    ("a.py:10-20", FileRows("a.py", 9, 20, False)),
    ("a.py:20-10", FileRows("a.py", 9, 20, False)),
    ("a.py:10,20", FileRows("a.py", 9, 20, False)),
    ("a.py:10-", FileRows("a.py", 9, -1, False)),
    ("a.py:10-$", FileRows("a.py", 9, -1, False)),
    ("a.py:10", FileRows("a.py", 9, 10, True)),
    ("a.py:10:4", FileRows("a.py", 9, 10, True)),
    ("a.py:L10-L20", FileRows("a.py", 9, 20, False)),
    ("a.py#L10-L20", FileRows("a.py", 9, 20, False)),
    ("a.py#L10", FileRows("a.py", 9, 10, True)),
    ("a.py:0", FileRows("a.py", 0, 1, True)),
    (":10", FileRows(":10", 0, -1, False)),
    ("a:b", FileRows("a:b", 0, -1, False)),
]


@pytest.mark.parametrize(("argument", "found"), PLACES)
def test_rows_of_a_file(argument: str, found: FileRows) -> None:
    assert parse_rows(argument) == found


ARGUMENT = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=30
).filter(lambda text: text.strip() == text)


@given(st.sampled_from(sorted(mentions.ARGUMENT_POSSIBLE)), ARGUMENT)
def test_spelled_mentions_are_read_again(kind: str, argument: str) -> None:
    spelled = spell(kind, argument)
    assert parse(spelled) == [Mention(kind, argument, 0, len(spelled))]
    inside = f"in {spelled} it"
    assert [(one.kind, one.argument) for one in parse(inside)] == [(kind, argument)]


@given(st.lists(st.sampled_from(
    ["@file:", "@buffer", "a", " ", "`", "```", "\n", '"', ":", "1-2", "\\", ".", "~~~", "> ", "é"]
), max_size=30).map("".join))  # fmt: skip
def test_mentions_never_overlap_and_begin_with_their_sign(text: str) -> None:
    end = 0
    for one in parse(text):
        assert one.first >= end
        assert one.end > one.first
        assert text[one.first : one.end].startswith(f"@{one.kind}")
        end = one.end
    assert end <= len(text)


@given(st.text("@buffer \n.", max_size=40))
def test_nothing_in_a_fence_is_a_mention(text: str) -> None:
    assert parse(f"~~~~\n{text}\n~~~~") == []


def test_mentions_behind_a_run_of_marks_without_an_end_are_all_found() -> None:
    text = "`" * 20_001 + " @buffer " * 5000 + "``" * 5000
    found = parse(text)
    assert [one.first for one in found] == [20_002 + 9 * number for number in range(5000)]
