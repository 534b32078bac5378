"""Which chunks are kept, and that the slots of a prompt change as little as they can."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.fim.context_ring import (
    MAX_CHUNKS,
    MAX_LINES,
    MAX_PER_FILE,
    MIN_LINES,
    RETRY_MS,
    Chunk,
    ContextRing,
    Found,
    Kind,
    Query,
    clip,
    dice,
    words,
)
from lcursor.fim.prompt import File, other_files_budget

HERE = Query("here.py", "def here():\n    ", "\n")
WIDE = 100_000


def body(name: str, lines: int = 5) -> str:
    """Return a text whose words are its own."""
    return "\n".join(f"{name}{row} = {name}call{row}()" for row in range(lines))


def chunk(name: str, kind: Kind = "yanked", text: str = "") -> Chunk:
    return Chunk(f"{name}.py", 0, text or body(name), kind)


def paths(files: Sequence[File]) -> str:
    return "".join(file.path.removesuffix(".py") for file in files)


class AdmittedRing:
    """A ring, asked for its slots as the engine does when nobody types."""

    def __init__(self, *chunks: Chunk) -> None:
        self.ring = ContextRing()
        self.take(*chunks)

    def take(self, *chunks: Chunk) -> None:
        for each in chunks:
            self.ring.add(each)
        while self.ring.admit():
            pass

    def files(self, query: Query = HERE, tokens: int = WIDE) -> tuple[File, ...]:
        return self.ring.layout(query, tokens, len)

    def order(self, query: Query = HERE, tokens: int = WIDE) -> str:
        return paths(self.files(query, tokens))


def test_each_admission_adds_one_chunk_and_nothing_changes_without_one() -> None:
    admitted = AdmittedRing(chunk("a"))
    assert admitted.order() == "a"
    admitted.ring.add(chunk("b"))
    admitted.ring.add(chunk("c"))
    assert admitted.order(Query("a.py", body("a"), "")) == "a"
    assert admitted.ring.admit()
    assert admitted.order() == "ab"
    assert admitted.ring.admit()
    assert not admitted.ring.admit()
    assert admitted.order() == "abc"


@pytest.mark.parametrize("lines", range(1, MIN_LINES))
def test_a_text_of_few_lines_is_no_chunk(lines: int) -> None:
    assert AdmittedRing(chunk("a", text=body("a", lines))).order() == ""


def test_an_exact_duplicate_of_any_file_is_dropped() -> None:
    admitted = AdmittedRing(chunk("a"), chunk("b"))
    admitted.take(chunk("a"), Chunk("other.py", 9, body("a"), "visited"))
    assert admitted.order() == "ab"


def test_a_similar_chunk_replaces_the_older_one() -> None:
    admitted = AdmittedRing(chunk("a", text=body("a", 40)), chunk("b"))
    newer = body("a", 40) + "\none_more = 1"
    admitted.take(chunk("a", text=newer))
    assert [file.text for file in admitted.files()] == [body("b"), newer]


def test_an_overlapping_chunk_of_the_same_file_replaces_the_older_one() -> None:
    lines = body("a", 60).split("\n")
    older, newer = "\n".join(lines[:40]), "\n".join(lines[15:])
    admitted = AdmittedRing(chunk("a", text=older), chunk("b", text=older + "\n" + body("b", 40)))
    assert admitted.order() == "ab"  # of another file it may have as many lines
    admitted.take(chunk("a", text=newer))
    assert [file.path for file in admitted.files()] == ["b.py", "a.py"]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_chunk_like_the_text_at_the_cursor_is_left_out(position: int) -> None:
    """At any place of the ring, the oldest too."""
    names = "abc"
    admitted = AdmittedRing(*(chunk(name) for name in names))
    near = names[position]
    query = Query("here.py", body(near).replace(f"{near}call1", "changed") + "\n", "")
    assert admitted.order(query) == names.replace(near, "")


def test_a_chunk_that_the_window_shows_is_left_out_and_comes_back_at_the_end() -> None:
    admitted = AdmittedRing(chunk("a"), chunk("b"))
    window = Query("a.py", body("x", 200) + "\n" + body("a") + "\n" + body("y", 80), "")
    assert admitted.order(window) == "b"
    admitted.ring.admit()
    assert admitted.order(Query("a.py", body("x", 200), "")) == "ba"


def test_a_file_has_a_limited_number_of_chunks() -> None:
    many = [chunk("a", text=body(f"a{chr(98 + n)}")) for n in range(MAX_PER_FILE + 2)]
    admitted = AdmittedRing(*many, chunk("b"))
    assert [file.text for file in admitted.files()] == [
        *(each.text for each in many[-MAX_PER_FILE:]),
        body("b"),
    ]


def test_the_ring_has_a_limited_number_of_chunks() -> None:
    names = [f"n{chr(97 + number)}" for number in range(MAX_CHUNKS + 4)]
    admitted = AdmittedRing()
    for name in names:
        admitted.take(chunk(name))
    assert [file.path for file in admitted.files()] == [f"{name}.py" for name in names[4:]]


def test_a_file_has_one_import_and_an_empty_one_removes_it() -> None:
    kind: Kind = "import"
    admitted = AdmittedRing(chunk("a", kind, "one"), chunk("b"), chunk("a", kind, "two"))
    assert [file.text for file in admitted.files()] == [body("b"), "two"]
    admitted.take(Chunk("a.py", 0, "", kind))
    assert admitted.order() == "b"
    admitted.take(chunk("a", kind, "two"))
    assert admitted.order() == "ba"


def test_the_oldest_chunk_is_removed_if_the_budget_is_too_small() -> None:
    size = len(body("a")) + len("a.py") + 4
    tokens = next(n for n in range(WIDE) if other_files_budget(n) == 3 * size)
    admitted = AdmittedRing(chunk("a"), chunk("b"), chunk("c"), chunk("d"))
    assert admitted.order(tokens=tokens) == "bcd"
    admitted.ring.admit()
    assert admitted.order(tokens=tokens) == "bcd"


def test_no_chunk_takes_more_than_half_of_the_budget() -> None:
    admitted = AdmittedRing(chunk("a", text=body("a", 60)), chunk("b", text=body("b", 60)))
    tokens = 300
    files = admitted.files(tokens=tokens)
    assert [file.path for file in files] == ["a.py", "b.py"]
    assert all(len(file.text) < other_files_budget(tokens) // 2 for file in files)
    assert all(file.text.endswith("()") for file in files)


def test_visited_chunks_do_not_replace_headers_of_imports() -> None:
    size = len(body("a")) + len("a.py") + 4
    tokens = next(n for n in range(WIDE) if other_files_budget(n) == 3 * size)
    admitted = AdmittedRing(chunk("a", "import"), chunk("b"), chunk("c"), chunk("d"), chunk("e"))
    assert admitted.order(tokens=tokens) == "ade"


class Index:
    """Finds what it is told, when it is told."""

    def __init__(self) -> None:
        self.asked: list[Query] = []
        self.found: list[Found] = []

    def ask(self, query: Query, found: Found) -> None:
        self.asked.append(query)
        self.found.append(found)

    def finds(self, *names: str) -> None:
        self.found[-1]([chunk(name, "retrieved") for name in names])


def test_retrieved_chunks_have_their_own_slots_at_the_end() -> None:
    admitted, index = AdmittedRing(chunk("a"), chunk("b")), Index()
    admitted.ring.retriever = index
    admitted.ring.retrieve(HERE)
    assert not admitted.ring.admit()
    index.finds("p", "q")
    assert admitted.ring.admit()
    assert admitted.order() == "abpq"
    index.finds("r", "q")
    admitted.take(chunk("c"))
    assert admitted.order() == "abcqr"


def test_the_retriever_is_asked_once_for_each_line() -> None:
    now_ms = 1000.0
    index = Index()
    ring = ContextRing(index, lambda: now_ms)
    for prefix in ("a\nb", "a\nbc", "a\nbcd"):
        ring.retrieve(Query("here.py", prefix, ""))
    assert len(index.asked) == 1
    ring.retrieve(Query("here.py", "a\nbcd\n", ""))
    ring.retrieve(Query("there.py", "a\nbcd\n", ""))
    assert len(index.asked) == 3
    now_ms += RETRY_MS + 1
    ring.retrieve(Query("there.py", "a\nbcd\n", ""))
    assert len(index.asked) == 4


def test_hits_after_one_that_does_not_fit_are_left_out() -> None:
    admitted, index = AdmittedRing(), Index()
    admitted.ring.retriever = index
    admitted.ring.retrieve(HERE)
    long = chunk("p", "retrieved", "x" * 500 + "\ny\nz")
    index.found[-1]([long, chunk("q", "retrieved")])
    admitted.ring.admit()
    assert admitted.order(tokens=600) == ""
    admitted.ring.admit()
    assert admitted.order() == "pq"


def test_the_same_hits_again_are_no_change() -> None:
    ring, index = ContextRing(), Index()
    ring.retriever = index
    told: list[int] = []
    ring.on_change = lambda: told.append(1)
    ring.retrieve(HERE)
    index.finds("p")
    index.finds("p")
    assert len(told) == 1
    assert ring.admit()
    assert not ring.admit()


def test_a_hit_that_is_shown_already_is_left_out() -> None:
    admitted, index = AdmittedRing(chunk("a")), Index()
    admitted.ring.retriever = index
    admitted.ring.retrieve(HERE)
    index.finds("a", "p")
    admitted.ring.admit()
    assert admitted.order() == "ap"


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdefgh"),
            st.sampled_from(["visited", "yanked", "import"]),
            st.integers(3, 30),
            st.sampled_from("xyz"),
        ),
        max_size=40,
    ),
    st.integers(60, 2000),
)
def test_slots_that_stay_keep_their_order_and_the_budget_holds(
    offers: list[tuple[str, Kind, int, str]], tokens: int
) -> None:
    admitted = AdmittedRing()
    before: list[File] = []
    for name, kind, lines, near in offers:
        admitted.ring.add(chunk(name, kind, body(f"{name}k{lines}", lines)))
        admitted.ring.admit()
        after = list(admitted.files(Query("here.py", body(near), ""), tokens))
        kept = [file for file in before if file in after]
        assert [file for file in after if file in kept] == kept
        added = [file for file in after if file not in kept]
        assert after == kept + added
        assert sum(len(file.path) + len(file.text) for file in after) <= other_files_budget(tokens)
        before = after


CODE = """    tail of something
    more of it

def first():
    pass


def second():
    pass

def third():
    begins
    goes on"""


def test_a_visited_part_is_cut_where_code_begins_and_ends() -> None:
    clipped = clip(Chunk("a.py", 10, CODE, "visited"))
    assert clipped.text.split("\n")[0] == "def first():"
    assert clipped.first_row == 13
    assert clipped.text.endswith("def second():\n    pass")


def test_blank_lines_around_a_chunk_are_dropped() -> None:
    clipped = clip(Chunk("a.py", 5, "\na\n\nb\n", "yanked"))
    assert (clipped.text, clipped.first_row) == ("a\n\nb", 6)


@pytest.mark.parametrize("kind", ["yanked", "import"])
def test_yanked_text_and_imports_are_not_cut(kind: Kind) -> None:
    text = CODE
    assert clip(Chunk("a.py", 10, text, kind)).text == text


@given(
    st.lists(st.sampled_from(["", "def a():", "    b", "}"]), max_size=200),
    st.sampled_from(["visited", "yanked"]),
    st.integers(0, 50),
)
def test_a_chunk_is_a_part_of_what_was_offered(lines: list[str], kind: Kind, row: int) -> None:
    clipped = clip(Chunk("a", row, "\n".join(lines), kind))
    found = clipped.text.split("\n")
    assert len(found) <= MAX_LINES
    start = clipped.first_row - row
    assert lines[start : start + len(found)] == found or not clipped.text
    solid = len("".join(lines[:MAX_LINES]).strip()) > 0
    assert clipped.text or not solid or len(lines) > MAX_LINES or kind == "visited"


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("a b", "b a", 1.0),
        ("a a b", "a b", 0.8),
        ("a", "b", 0.0),
        ("", "", 0.0),
        ("a b", "b c", 0.5),
    ],
)
def test_the_similarity_of_two_texts(one: str, other: str, alike: float) -> None:
    assert dice(words(one), words(other)) == alike


@pytest.mark.parametrize(("kind", "first"), [("yanked", 0), ("import", 0), ("visited", 18)])
def test_a_long_chunk_has_its_beginning_or_the_middle_around_the_cursor(
    kind: Kind, first: int
) -> None:
    rows = [f"    value_{row} = {row}" for row in range(100)]
    clipped = clip(Chunk("a.py", 7, "\n".join(rows), kind))
    assert clipped.text.split("\n") == rows[first : first + MAX_LINES]
    assert clipped.first_row == 7 + first
