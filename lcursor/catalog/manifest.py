"""Read `models/manifest.toml`, the list of known models. Any thread."""

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from lcursor.errors import ModelCorrupt, ModelUnknown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Slot = Literal["completion", "chat", "embedding"]
Digest = Literal["verified", "published", "hub", "made"]
"""Where the digest comes from, see `models/README.md`."""

MANIFEST = Path(__file__).resolve().parents[2] / "models" / "manifest.toml"
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


def _bad(where: object, reason: object) -> ModelCorrupt:
    return ModelCorrupt(
        f"models/manifest.toml: {where}: {reason}", "Restore the file from the repository"
    )


def _model(raw: dict[str, Any]) -> Model:
    table = raw.pop("registry", None)
    companions = raw.pop("companion", [])
    shared = {key: raw[key] for key in raw if key not in {"path", "sha256", "bytes_exact"}}
    defaults = {"family": None, "sha256": None, "bytes_exact": True, "notes": ""}
    fields = {
        **defaults,
        "path": raw["file"],
        **raw,
        "slots": tuple(raw["slots"]),
        "registry": Registry(**table) if table else None,
        "companions": tuple(_model({**shared, **each}) for each in companions),
    }
    return Model(**fields)


def parse(text: str) -> tuple[Model, ...]:
    """Read a manifest's text; a test checks what the entries of ours say.

    Raises:
        ModelCorrupt: it is no TOML, or an entry has other fields than a model.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise _bad("the file", e) from e
    models = []
    for raw in document.get("model", []):
        try:
            models.append(_model(dict(raw)))
        except (KeyError, TypeError) as e:
            raise _bad(raw.get("name"), f"missing or unknown field ({e})") from e
    return tuple(models)


@cache
def _load(path: Path) -> tuple[Model, ...]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as e:
        raise _bad("the file", e.strerror or e) from e
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
