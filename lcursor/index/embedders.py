"""The embedders that lcursor knows by name: what each wants of a text and how it answers.

Plain values: which model of `models/manifest.toml` an embedder runs, its prefixes, pooling and
sizes. Loads no library and reads no file. Any thread.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lcursor.catalog import manifest, store
from lcursor.catalog.manifest import Model
from lcursor.errors import ModelMissing, ModelUnknown

Pooling = Literal["mean", "cls"]

DEFAULT = "minilm-l6-v2-int8"


@dataclass(frozen=True, slots=True)
class EmbedderSpec:
    """How a model turns a text into a vector."""

    name: str
    """Also the model's name in the manifest."""
    dim: int
    max_tokens: int
    """Texts are cut here; less than the model's own limit where longer texts gain nothing: of our
    own questions the default found as many with 192, 224 and 256."""
    pooling: Pooling
    query_prefix: str = ""
    text_prefix: str = ""
    is_alone: bool = True
    """Whether texts are never embedded together: a network that rounds by what is in the batch
    gives a text another vector in other company."""

    @property
    def model(self) -> Model:
        """Its entry in the manifest: licence, sizes, digests, sources."""
        return manifest.find(self.name)

    def files(self, folder: Path | None = None) -> tuple[Path, Path]:
        """Return where the network and its tokenizer are, or would be.

        Args:
            folder: the folder of the models; the user's where none is given.
        """
        model = self.model
        return store.path_of(model, folder), store.path_of(model.companions[-1], folder)

    def is_here(self, folder: Path | None = None) -> bool:
        """Return whether all its files are on this machine."""
        return all(store.path_of(each, folder).is_file() for each in self.model.files)

    def check_here(self, folder: Path | None = None) -> None:
        """Refuse an embedder that is not on this machine.

        Raises:
            ModelMissing: with the command that gets it.
        """
        for each in self.model.files:
            path = store.path_of(each, folder)
            if not path.is_file():
                raise ModelMissing(
                    f"The embedder {self.name} is not on this machine ({path})",
                    f"Run {store.pull_command(self.name)}",
                )


EMBEDDERS = (
    EmbedderSpec(DEFAULT, dim=384, max_tokens=224, pooling="mean", is_alone=False),
    EmbedderSpec(
        "bge-small-en-v1.5",
        dim=384,
        max_tokens=512,
        pooling="cls",
        query_prefix="Represent this sentence for searching relevant passages: ",
    ),
    EmbedderSpec("granite-embedding-small-r2", dim=384, max_tokens=512, pooling="cls"),
    EmbedderSpec("jina-v2-code", dim=768, max_tokens=512, pooling="mean"),
    EmbedderSpec(
        "coderankembed",
        dim=768,
        max_tokens=512,
        pooling="cls",
        query_prefix="Represent this query for searching relevant code: ",
    ),
)
"""The first is the default. All texts of chunks fit into 512 tokens."""


def find(name: str) -> EmbedderSpec:
    """Return the embedder of that name.

    Raises:
        ModelUnknown: there is none; the hint names the nearest.
    """
    wanted = name.lower()
    for spec in EMBEDDERS:
        if spec.name == wanted:
            return spec
    names = [spec.name for spec in EMBEDDERS]
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.4)
    raise ModelUnknown(
        f"No embedder is called {name!r}",
        (f"Nearest: {near[0]}. " if near else "") + f"There are {', '.join(names)}",
    )
