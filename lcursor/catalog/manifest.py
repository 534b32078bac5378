"""Read `models/manifest.toml`, the list of known models. Any thread."""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from lcursor.errors import ModelCorrupt, ModelUnknown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Slot = Literal["completion", "chat", "embedding"]
Digest = Literal["verified", "published", "hub", "made"]
"""Where the digest comes from, see `models/README.md`."""

MANIFEST = Path(__file__).resolve().parents[2] / "models" / "manifest.toml"
FAMILIES = frozenset(
    {
        "qwen2.5-coder",
        "qwen3-coder",
        "starcoder2",
        "codestral",
        "mellum",
        "seed-coder",
        "codegemma",
        "granite",
        "deepseek-coder-v2",
        "codellama",
    }
)
_NAME = re.compile(r"[a-z0-9][a-z0-9.\-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FORMAT = re.compile(r"[-.](i?q\d\w*|b?f16|f32)$", re.IGNORECASE)
"""The format of the weights at the end of a file's stem."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The parts of a file in a package registry."""

    package: str
    """Pattern of the package's name; `{n}` is the number of the part, from 1."""
    version: str
    count: int
    member: str
    """Pattern of the part's path inside the wheel; `{n}`, `{n:02d}`."""
    part_bytes: int
    """Size of every part but the last."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model: a GGUF file, or an ONNX network with its other files."""

    name: str
    slots: tuple[Slot, ...]
    family: str | None
    """FIM template; None for a chat model."""
    parameters: str
    file: str
    """Its name on this machine."""
    path: str
    """Path of the file in the repository."""
    bytes: int
    bytes_exact: bool
    sha256: str | None
    digest: Digest
    repo: str
    """"" if the registry is the only source."""
    revision: str
    licence: str
    context_tokens: int
    kv_bytes_per_token: int
    """Bytes of an f16 KV cache for one token."""
    notes: str
    registry: Registry | None
    companions: tuple[Model, ...] = ()
    """Its other files, such as a tokenizer, as models of one file each."""
    made_from: str = ""
    """The model that this one is a local Q4_0 copy of; "" for all others."""

    @property
    def files(self) -> tuple[Model, ...]:
        """All its files, the main one last."""
        return (*self.companions, replace(self, companions=()))

    @property
    def all_bytes(self) -> int:
        """Size of all its files."""
        return sum(each.bytes for each in self.files)


def _bad(name: object, what: str) -> ModelCorrupt:
    return ModelCorrupt(
        f"models/manifest.toml: {name}: {what}",
        "Restore the file from the repository",
    )


def _model(raw: dict[str, Any], is_companion: bool = False) -> Model:
    name = raw.get("name")
    table = raw.pop("registry", None)
    companions = raw.pop("companion", [])
    try:
        registry = Registry(**table) if table else None
        model = Model(
            **{
                "family": None,
                "sha256": None,
                "bytes_exact": True,
                "notes": "",
                "path": raw["file"],
                **raw,
                "slots": tuple(raw["slots"]),
                "registry": registry,
            }
        )
        shared = {key: raw[key] for key in raw if key not in {"path", "sha256", "bytes_exact"}}
        model = replace(
            model, companions=tuple(_model({**shared, **each}, True) for each in companions)
        )
    except (KeyError, TypeError) as e:
        raise _bad(name, f"missing or unknown field ({e})") from e
    if not _NAME.fullmatch(model.name):
        raise _bad(name, "a name has lower-case letters, digits, dots and dashes")
    if not model.slots or not set(model.slots) <= set(get_args(Slot)):
        raise _bad(name, f"unknown slot in {list(model.slots)}")
    if (model.family is None) == ("completion" in model.slots) or (
        model.family is not None and model.family not in FAMILIES
    ):
        raise _bad(name, f"family {model.family!r} does not go with slots {list(model.slots)}")
    if model.digest not in get_args(Digest) or (model.sha256 is None) != (model.digest == "hub"):
        raise _bad(name, f"digest {model.digest!r} does not go with sha256 {model.sha256!r}")
    if model.sha256 is not None and not _SHA256.fullmatch(model.sha256):
        raise _bad(name, "sha256 is not 64 hexadecimal digits")
    ending = ".onnx" if "embedding" in model.slots else ".gguf"
    if Path(model.file).name != model.file or not (is_companion or model.file.endswith(ending)):
        kind = ending.removeprefix(".").upper()
        raise _bad(name, f"file {model.file!r} is not the bare name of a {kind} file")
    if not model.repo and registry is None:
        raise _bad(name, "neither a repository nor a registry has it")
    if registry is not None and (model.sha256 is None or not model.bytes_exact):
        raise _bad(name, "a registry source needs a sha256 and an exact size")
    return model


def parse(text: str) -> tuple[Model, ...]:
    """Read a manifest's text.

    Raises:
        ModelCorrupt: it is no TOML, or an entry is wrong.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise _bad("the file", str(e)) from e
    models = tuple(_model(dict(raw)) for raw in document.get("model", []))
    names, files = [m.name for m in models], [f.file for m in models for f in m.files]
    for values in (names, files):
        for value in set(values):
            if values.count(value) > 1:
                raise _bad(value, "appears twice")
    return models


@cache
def _load(path: Path) -> tuple[Model, ...]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as e:
        raise _bad("the file", e.strerror or str(e)) from e
    return parse(text)


def load() -> tuple[Model, ...]:
    """Read the manifest, once; its order is the order of every list shown.

    Raises:
        ModelCorrupt: the file is missing or wrong.
    """
    return _load(MANIFEST)


def requantized_file(file: str) -> str:
    """Return the file name of the Q4_0 copy of a GGUF file."""
    return _FORMAT.sub("", file.removesuffix(".gguf")) + "-q4_0.gguf"


@cache
def _requantized(models: tuple[Model, ...]) -> tuple[Model, ...]:
    return tuple(
        replace(
            model,
            name=f"{model.name}-q4_0",
            slots=("completion",),
            file=requantized_file(model.file),
            bytes_exact=False,
            sha256=None,
            digest="made",
            repo="",
            revision="",
            notes=f"A Q4_0 copy of {model.name}, made on this machine.",
            registry=None,
            made_from=model.name,
        )
        for model in models
        if "completion" in model.slots
    )


def requantized() -> tuple[Model, ...]:
    """Return the Q4_0 copies that can be made of the manifest's models for completion.

    Their size is only an estimate: that of the model of which they are made.
    """
    return _requantized(load())


def with_file(name: str) -> Model | None:
    """Return the model, or the Q4_0 copy of one, whose file has that name."""
    return next((model for model in (*load(), *requantized()) if model.file == name), None)


def family_of(path: Path) -> str:
    """Return the family of the model in a file, by the file's name; empty where it is not known."""
    model = with_file(path.name)
    return (model.family if model else None) or ""


def find(name: str) -> Model:
    """Return the model, or the Q4_0 copy of one, of that name.

    Raises:
        ModelUnknown: there is none; the hint names the nearest.
    """
    models = load()
    for model in (*models, *requantized()):
        if model.name == name.lower():
            return model
    near = difflib.get_close_matches(name.lower(), [m.name for m in models], n=3, cutoff=0.4)
    nearest = f"Nearest: {', '.join(near)}. " if near else ""
    raise ModelUnknown(
        f"No model is called {name!r}",
        f"{nearest}See python -m lcursor models list",
    )
