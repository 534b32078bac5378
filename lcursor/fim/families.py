"""The families of FIM models: their markers, and the order of a prompt.

A table and pure functions. A template has markers such as `<pre>` and fields of the request:
`{prefix}`, `{suffix}`, `{repo}`, `{path}` and `{code}`. PSM families have the order prefix, suffix,
middle; SPM families have the suffix first, so that typing only appends.
Source: the models' cards and papers; the llama.cpp vocabulary code for the spellings of markers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from lcursor.errors import ModelUnsuitable

Order = Literal["psm", "spm"]
Tokenize = Callable[[str, bool], list[int]]
"""Turns text into token ids; True tokenizes markers."""


@dataclass(frozen=True, slots=True)
class Family:
    """The prompt format of one family of models.

    Attributes:
        name: as in the manifest.
        models: pattern in the names of its models, in lower case with hyphens for blanks.
        order: "psm" or "spm".
        markers: name to spelling; `pre` and `suf` are required, `mid` is optional.
        single: template of a single file.
        project: template with the project's name and other files; "" if there is none.
        file: template of one other file inside `{files}` of `project`.
    """

    name: str
    models: str
    order: Order
    markers: Mapping[str, str]
    single: str
    project: str = ""
    file: str = ""
    stops: tuple[str, ...] = field(default=())


def _markers(text: str) -> dict[str, str]:
    """Return markers by name, from `name spelling` pairs."""
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


_STARCODER = _markers("pre <fim_prefix> suf <fim_suffix> mid <fim_middle>")
_STARCODER_REPO = _STARCODER | _markers("repo <repo_name> file <file_sep>")
_QWEN = _markers("pre <|fim_prefix|> suf <|fim_suffix|> mid <|fim_middle|>")
_QWEN_REPO = _QWEN | _markers("repo <|repo_name|> file <|file_sep|>")
_QWEN_STOPS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|fim_pad|>")
_DEEPSEEK = _markers("pre <｜fim▁begin｜> suf <｜fim▁hole｜> mid <｜fim▁end｜>")
_LLAMA = _markers("pre ▁<PRE> suf ▁<SUF> mid ▁<MID>")
_SEED = _markers("pre <[fim-prefix]> suf <[fim-suffix]> mid <[fim-middle]>")

_PSM, _SPM = "<pre>{prefix}<suf>{suffix}<mid>", "<suf>{suffix}<pre>{prefix}<mid>"
_QWEN_PROJECT = "<repo>{repo}\n{files}<file>{path}\n" + _PSM
_STARCODER_PROJECT = "<repo>{repo}{files}<file><pre>{path}\n{prefix}<suf>{suffix}<mid>"
_QWEN_FILE, _FILE = "<file>{path}\n{code}\n", "<file>{path}\n{code}"

_FAMILIES = (
    Family(
        "qwen2.5-coder",
        r"qwen-?2.*coder",
        "psm",
        _QWEN_REPO,
        _PSM,
        _QWEN_PROJECT,
        _QWEN_FILE,
        _QWEN_STOPS,
    ),
    Family(
        "qwen3-coder",
        r"qwen-?3.*coder",
        "psm",
        _QWEN_REPO,
        _PSM,
        _QWEN_PROJECT,
        _QWEN_FILE,
        _QWEN_STOPS,
    ),
    Family(
        "deepseek-coder-v2",
        r"deepseek.*coder|deepseek-v2",
        "psm",
        _DEEPSEEK,
        _PSM,
        "{files}#{path}\n" + _PSM,
        "#{path}\n{code}\n",
    ),
    Family(
        "codestral",
        r"codestral",
        "spm",
        _markers("pre [PREFIX] suf [SUFFIX]"),
        "<suf>{suffix}<pre>{prefix}",
        "<suf>{suffix}<pre>{files}+++++ {path}\n{prefix}",
        "+++++ {path}\n{code}\n\n",
    ),
    Family("seed-coder", r"seed-?coder", "spm", _SEED, _SPM),
    Family("starcoder2", r"star-?coder", "psm", _STARCODER_REPO, _PSM, _STARCODER_PROJECT, _FILE),
    Family(
        "mellum",
        r"mellum",
        "spm",
        _STARCODER | _markers("file <filename>"),
        _SPM,
        "{files}<file>{path}\n" + _SPM,
        _FILE,
    ),
    Family(
        "granite", r"granite", "psm", _STARCODER | _markers("repo <reponame> file <filename>"), _PSM
    ),
    Family(
        "codegemma",
        r"code-?gemma",
        "psm",
        _QWEN | _markers("file <|file_separator|>"),
        _PSM,
        "{files}" + _PSM,
        "{path}\n{code}<file>",
    ),
    Family("codellama", r"code-?llama", "psm", _LLAMA, _PSM, stops=("▁<EOT>",)),
)
"""In the order of detection: of two with the same markers, the first one is recognized by them."""
FAMILIES: Mapping[str, Family] = MappingProxyType({family.name: family for family in _FAMILIES})


@dataclass(frozen=True, slots=True)
class Resolved:
    """A family, with its markers as token ids of one model."""

    family: Family
    ids: Mapping[str, int]
    stops: frozenset[int]

    @property
    def template(self) -> str:
        """The project template if the model has all its markers, else the single-file template."""
        template = self.family.project
        known = all(name in self.ids for name in re.findall(r"<(\w+)>", template))
        return template if template and known else self.family.single


def family_of(model: str) -> Family | None:
    """Return a model's family by its name; None if no family matches."""
    name = re.sub(r"[\s_]+", "-", model.lower())
    if name in FAMILIES:
        return FAMILIES[name]
    return next((family for family in _FAMILIES if re.search(family.models, name)), None)


def resolve(name: str, tokenize: Tokenize) -> Resolved:
    """Find a family's markers in a model's vocabulary.

    Args:
        name: name of the family; "" tries all.
        tokenize: the model's tokenizer.

    Raises:
        ModelUnsuitable: a marker is missing or is more than one token.
    """
    candidates = [FAMILIES[name]] if name else _FAMILIES
    missing = ""
    for family in candidates:
        ids = {key: _single(text, tokenize) for key, text in family.markers.items()}
        needed = re.findall(r"<(\w+)>", family.single)
        missing = next((family.markers[key] for key in needed if ids[key] is None), "")
        if not missing:
            found = {key: token for key, token in ids.items() if token is not None}
            extra = (_single(text, tokenize) for text in family.stops)
            stops = frozenset(found.values()) | {token for token in extra if token is not None}
            return Resolved(family, MappingProxyType(found), stops)
    raise ModelUnsuitable(
        "this model cannot fill in the middle: "
        + (f"it has no token {missing}" if name else "it has no FIM markers"),
        "Choose another completion.model; see: python -m lcursor models list",
    )


def _single(text: str, tokenize: Tokenize) -> int | None:
    tokens = tokenize(text, True)
    return tokens[0] if len(tokens) == 1 else None


def parts(template: str) -> Iterator[tuple[Literal["marker", "field", "text"], str]]:
    """Split a template into markers, fields of the request, and literal text."""
    for piece in re.split(r"(<\w+>|\{\w+\})", template):
        if piece.startswith("<"):
            yield "marker", piece[1:-1]
        elif piece.startswith("{"):
            yield "field", piece[1:-1]
        elif piece:
            yield "text", piece
