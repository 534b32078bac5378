"""Turns texts into vectors. The only importer of onnxruntime and tokenizers.

Owns the session and the tokenizer of one embedder; knows no store and no files but the model's.
An `Embedder` may be used by several threads at once; a call blocks for as long as it takes.
"""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lcursor.catalog import manifest, store
from lcursor.catalog.manifest import Model
from lcursor.errors import DependencyMissing, ModelCorrupt, ModelMissing, ModelUnknown
from lcursor.index.onnx_rewrite import in_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Tokens = Sequence[int]

BATCH_TOKENS = 256
"""Most tokens of a batch on the CPU, padding included: more is no faster, only more memory."""
GPU_BATCH_TOKENS = 32_768
MOST_REWRITTEN_BYTES = 100 << 20
"""A larger network is loaded as it is: it would be in memory twice for a moment."""
IN_BYTES = "@bytes"
"""Ends the name of vectors that were computed in bytes: those of floats are a little off them."""
_CHARACTERS_PER_TOKEN = 12
"""Nobody's tokens are longer on average: what is behind so many need not be split at all."""


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


def load_early() -> None:
    """Import onnxruntime, if it is installed, before usearch is imported.

    In the other order `import onnxruntime` crashes (usearch 2.26.5, onnxruntime 1.31.1, Linux).
    Its exported symbols suggest a cause, which was not confirmed: usearch brings a libstdc++ of
    its own, and the two copies seem to share the ids of their locale facets.
    """
    with contextlib.suppress(ImportError):
        import onnxruntime as _  # noqa: F401


def _libraries() -> tuple[Any, Any]:
    # Its pool of threads would take every core for a millisecond's work.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        import onnxruntime
        import tokenizers
    except ImportError as e:
        raise DependencyMissing(
            f"The package {e.name or 'onnxruntime'} is missing", "Run :LCursor install"
        ) from e
    return onnxruntime, tokenizers


def _in_bytes(network: Path) -> bytes | None:
    """Return a network that multiplies bytes, where it can be made of the one in a file."""
    is_small = network.stat().st_size <= MOST_REWRITTEN_BYTES
    return in_bytes(network.read_bytes()) if is_small else None


def batches(lengths: Sequence[int], most_tokens: int) -> Iterator[list[int]]:
    """Group texts of nearly one length, so that little is padded.

    Args:
        lengths: tokens of each text.
        most_tokens: of a group, with each text padded to the longest; a single text may have more.

    Returns:
        The numbers of the texts of each group; the longest texts come first.
    """
    group: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        if group and (len(group) + 1) * lengths[group[0]] > most_tokens:
            yield group
            group = []
        group.append(number)
    if group:
        yield group


def normalized(vectors: Vectors) -> Vectors:
    """Scale each row to length one; a row of zeros stays."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = (vectors / np.maximum(norms, 1e-12)).astype(np.float32)
    return scaled


class Embedder:
    """One model that embeds.

    Args:
        spec: which, and how.
        folder: the folder of the models; the user's where none is given.
        threads: most CPU threads that one call computes on.
        gpu: use a GPU where onnxruntime finds one.

    Raises:
        ModelMissing: a file of it is not on this machine.
        ModelCorrupt: a file of it cannot be loaded, or gives vectors of another size.
        DependencyMissing: a library is not installed.
    """

    def __init__(
        self, spec: EmbedderSpec, folder: Path | None = None, threads: int = 1, gpu: bool = True
    ) -> None:
        spec.check_here(folder)
        onnxruntime, tokenizers = _libraries()
        network, words = spec.files(folder)
        self.spec = spec
        self._name, self._is_alone = f"{spec.name}@{spec.max_tokens}", spec.is_alone
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = max(1, threads)
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # A thread that spins while it waits for work takes the core from who types.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        providers = ["CPUExecutionProvider"]
        if gpu and "CUDAExecutionProvider" in onnxruntime.get_available_providers():
            providers.insert(0, "CUDAExecutionProvider")
        try:
            # A GPU has no such products of bytes, and would hand each back to the CPU.
            rewritten = None if len(providers) > 1 else _in_bytes(network)
            if rewritten:
                self._name += IN_BYTES
                self._is_alone = True  # what it rounds by is the largest number of all there is
            self._session = onnxruntime.InferenceSession(
                rewritten or str(network), sess_options=options, providers=providers
            )
            self._tokenizer = tokenizers.Tokenizer.from_file(str(words))
        except Exception as e:  # neither library has a base class for what it raises
            raise ModelCorrupt(
                f"The embedder {spec.name} cannot be loaded ({str(e).splitlines()[0][:200]})",
                f"Run python -m lcursor models verify {spec.name}, "
                f"and {store.pull_command(spec.name)} if it is wrong",
            ) from e
        self._tokenizer.enable_truncation(spec.max_tokens)
        self._tokenizer.no_padding()
        self._inputs = {each.name for each in self._session.get_inputs()}
        self.on_gpu = self._session.get_providers()[0] != "CPUExecutionProvider"
        self._batch_tokens = GPU_BATCH_TOKENS if self.on_gpu else BATCH_TOKENS
        found = self._run([[0, 0]]).shape[1]
        if found != spec.dim:
            raise ModelCorrupt(
                f"The embedder {spec.name} gives vectors of {found} numbers, not {spec.dim}",
                f"Run {store.pull_command(spec.name)}",
            )

    @property
    def name(self) -> str:
        """The name of its vectors: those of different names are never compared."""
        return self._name

    @property
    def dim(self) -> int:
        """Numbers of a vector."""
        return self.spec.dim

    def count(self, text: str) -> int:
        """Return how many tokens of the text are embedded; at most `max_tokens`."""
        return len(self._tokens(text))

    def texts(self, texts: Sequence[str], threads: int = 1) -> Vectors:
        """Embed texts that shall be found.

        Args:
            texts: of any length.
            threads: so many compute side by side, this one among them, each a batch of its own:
                that shares better than one batch computed by several.

        Returns:
            A row of length one for each.

        Cost:
            About 55 ms for a text of 224 tokens on one CPU thread with AVX2; 4 ms for a question.
        """
        return self._embed([self.spec.text_prefix + text for text in texts], threads)

    def query(self, text: str) -> Vectors:
        """Embed a text that is looked for; one vector of length one."""
        vector: Vectors = self._embed([self.spec.query_prefix + text])[0]
        return vector

    def _tokens(self, text: str) -> Tokens:
        # A path may hold bytes that are no UTF-8: as surrogates, which the tokenizer refuses.
        whole = text[: self.spec.max_tokens * _CHARACTERS_PER_TOKEN]
        plain = whole.encode("utf-8", "replace").decode()
        ids: Tokens = self._tokenizer.encode(plain).ids
        return ids

    def _embed(self, texts: Sequence[str], threads: int = 1) -> Vectors:
        tokens = [self._tokens(text) for text in texts]
        vectors = np.zeros((len(texts), self.spec.dim), np.float32)
        most = 0 if self._is_alone else self._batch_tokens
        groups = list(batches([len(ids) for ids in tokens], most))

        def embed(group: list[int]) -> None:
            vectors[group] = self._run([tokens[number] for number in group])

        if min(threads, len(groups)) < 2:
            for group in groups:
                embed(group)
            return vectors
        # The threads are started here, so they inherit the priority of this one.
        with ThreadPoolExecutor(threads, "lcursor-embed") as executor:
            list(executor.map(embed, groups))
        return vectors

    def _run(self, tokens: Sequence[Tokens]) -> Vectors:
        """Embed texts of about one length, all at once."""
        shape = (len(tokens), max(1, *map(len, tokens)) if tokens else 1)
        ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, each in enumerate(tokens):
            ids[row, : len(each)], mask[row, : len(each)] = each, 1
        feeds = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in self._inputs:
            feeds["token_type_ids"] = np.zeros_like(ids)
        if "position_ids" in self._inputs:
            feeds["position_ids"] = np.broadcast_to(np.arange(shape[1]), shape).copy()
        hidden = self._session.run(None, feeds)[0]
        if hidden.ndim == 2:  # the network has pooled already
            return normalized(hidden)
        if self.spec.pooling == "cls":
            return normalized(hidden[:, 0])
        weights = mask[..., None].astype(np.float32)
        return normalized((hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9))
