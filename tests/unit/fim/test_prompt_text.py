"""Prompts as text: the layout of each family, budgets, and text that cannot break out."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.code.estimate import CHARS_PER_TOKEN
from lcursor.fim import prompt_text
from lcursor.fim.families import FAMILIES, Family, family_of
from lcursor.fim.prompt import STEP_LINES, File, Source

SOURCE = Source("def f(x):\n    ret", "\n\nf(1)\n", 0, "pkg/a.py", "demo")
QWEN = FAMILIES["qwen2.5-coder"]


def build(source: Source, family: Family = QWEN, **more: object) -> prompt_text.TextPrompt:
    sizes = {"prefix_tokens": 500, "suffix_tokens": 100, **more}
    return prompt_text.text(source, family, **sizes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("family", "text"),
    [
        (
            "qwen2.5-coder",
            "<|repo_name|>demo\n<|file_sep|>pkg/a.py\n"
            "<|fim_prefix|>def f(x):\n    ret<|fim_suffix|>\n\nf(1)\n<|fim_middle|>",
        ),
        (
            "starcoder2",
            "<repo_name>demo<file_sep><fim_prefix>pkg/a.py\n"
            "def f(x):\n    ret<fim_suffix>\n\nf(1)\n<fim_middle>",
        ),
        ("codellama", "▁<PRE>def f(x):\n    ret▁<SUF>\n\nf(1)\n▁<MID>"),
        ("codestral", "[SUFFIX]\n\nf(1)\n[PREFIX]+++++ pkg/a.py\ndef f(x):\n    ret"),
        (
            "seed-coder",
            "<[fim-suffix]>\n\nf(1)\n<[fim-prefix]>def f(x):\n    ret<[fim-middle]>",
        ),
    ],
)
def test_each_family_has_its_own_markers(family: str, text: str) -> None:
    assert build(SOURCE, FAMILIES[family]).text == text


def test_other_files_and_the_top_of_this_one() -> None:
    body = "".join(f"line{n} = {n}\n" for n in range(200))
    source = Source("import os\n" + body, "", 0, "a.py", "demo")
    files = [File("b.py", "def b():\n    pass"), File("big.py", "y = 1\n" * 500)]
    built = build(source, prefix_tokens=60, files=files, files_tokens=120)
    head, _, rest = built.text.partition("<|fim_prefix|>")
    assert head.startswith(
        "<|repo_name|>demo\n<|file_sep|>b.py\ndef b():\n    pass\n<|file_sep|>big"
    )
    assert "<|file_sep|>a.py\nimport os\n" in head
    assert len(head) < 120 * CHARS_PER_TOKEN + 60
    assert "import os" not in rest
    assert (
        build(source, FAMILIES["codellama"], files=files, files_tokens=120).text.count("b.py") == 0
    )


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "qwen2.5-coder"),
        ("Qwen/Qwen2.5-Coder-7B", "qwen2.5-coder"),
        ("qwen2.5-coder:1.5b-base", "qwen2.5-coder"),
        ("Qwen2.5.1-Coder-7B-Instruct", "qwen2.5-coder"),
        ("unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF", "qwen3-coder"),
        ("bigcode/starcoder2-3b", "starcoder2"),
        ("granite-code:3b", "granite"),
        ("codegemma:2b-code", "codegemma"),
        ("deepseek-coder-v2:16b-lite-base-q4_0", "deepseek-coder-v2"),
        ("codellama:7b-code", "codellama"),
        ("Codestral-22B-v0.1", "codestral"),
        ("JetBrains/Mellum-4b-base", "mellum"),
        ("ByteDance-Seed/Seed-Coder-8B-Base", "seed-coder"),
        ("llama3.2:3b", None),
        ("model.gguf", None),
        ("", None),
    ],
)
def test_the_family_by_the_name(name: str, family: str | None) -> None:
    found = family_of(name)
    assert (found.name if found else None) == family


def test_every_family_has_a_name_that_finds_it() -> None:
    for name, family in FAMILIES.items():
        assert family_of(name) is family
        assert family_of(name + "-7b.gguf") is family


MARKERS = sorted({m for f in FAMILIES.values() for m in (*f.markers.values(), *f.stops)})
PARTS = st.sampled_from(
    [*MARKERS, "<|", "|>", "<", ">", "▁", "fim_prefix", "[", "]", "\n", "a = 1"]
)
TEXTS = st.lists(PARTS, max_size=12).map("".join)


@given(st.sampled_from(sorted(FAMILIES)), TEXTS, TEXTS, TEXTS, TEXTS, TEXTS)
def test_markers_in_a_text_never_become_markers_of_the_prompt(
    name: str, prefix: str, suffix: str, path: str, repo: str, code: str
) -> None:
    family = FAMILIES[name]
    source = Source(prefix, suffix, 0, path, repo)
    built = build(source, family, files=[File(path, code)], files_tokens=3000)
    harmless = build(
        Source("p", "s", 0, "x" if path else "", "y" if repo else ""),
        family,
        files=[File("x", "c")] if code else [],
        files_tokens=3000,
    )
    marks = "|".join(map(re.escape, sorted(built.stops, key=len, reverse=True)))
    assert re.findall(marks, built.text) == re.findall(marks, harmless.text)
    assert (built.prefix, built.suffix) == (prefix, suffix), "the rules need the text as it is"


def test_a_marker_in_a_file_stays_readable_and_other_text_stays_as_it_is() -> None:
    source = Source('x = "<|fim_middle|>"  # <|tool_call|> a || b <| c |>\ny = ', "<|im_end|>")
    text = build(source).text
    assert 'x = "‹fim_middle›"  # ‹tool_call› a || b <| c |>\ny = <|fim_suffix|>‹im_end›' in text


@given(
    st.lists(st.text("ab \té", max_size=30), max_size=150),
    st.integers(0, 200),
    st.integers(1, 200),
    st.integers(0, 60),
)
def test_windows_fit_and_begin_in_steps(
    lines: list[str], first_row: int, before: int, after: int
) -> None:
    text = "\n".join(lines)
    source = Source(text, text, first_row)
    built = build(source, prefix_tokens=before, suffix_tokens=after)
    room = int(before * CHARS_PER_TOKEN)
    assert len(built.prefix) <= room
    assert text.endswith(built.prefix)
    assert text.startswith(built.suffix)
    assert len(built.suffix) <= after * CHARS_PER_TOKEN
    if built.prefix != text and "\n" in built.prefix:
        row = first_row + text.count("\n") - built.prefix.count("\n")
        is_last_stretch = text.count("\n") + first_row < -(-row // STEP_LINES) * STEP_LINES
        assert row % STEP_LINES == 0 or is_last_stretch


@pytest.mark.parametrize(
    ("written", "is_done", "text", "is_over"),
    [
        ("a = 1", False, "a = 1", False),
        ("a = 1<|file_sep|>b.py", False, "a = 1", True),
        ("a <|endoftext|>", True, "a ", True),
        ("a <|file_", False, "a ", False),
        ("a <|file_", True, "a <|file_", False),
        ("a <", False, "a ", False),
        ("a\nb", False, "a", True),
        ("", False, "", False),
    ],
)
def test_the_text_before_a_stop(written: str, is_done: bool, text: str, is_over: bool) -> None:
    stops = build(SOURCE, single_line=True).stops
    assert stops[0] == "\n"
    assert prompt_text.before_stop(written, stops, is_done=is_done) == (text, is_over)


def test_the_pieces_are_the_prompt() -> None:
    built = build(SOURCE)
    assert "".join(text for text, _ in built.pieces) == built.text
    marks = [text for text, is_marker in built.pieces if is_marker]
    assert marks == [
        "<|repo_name|>",
        "<|file_sep|>",
        "<|fim_prefix|>",
        "<|fim_suffix|>",
        "<|fim_middle|>",
    ]
