"""Turn texts into vectors. The only importer of onnxruntime and tokenizers.

    Embedder(find("minilm-l6-v2-int8")).query("open a file")  # 384 floats, of norm one

Several threads may use one `Embedder` at once; each call blocks until it is done.
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
from lcursor.catalog.manifest import MANIFEST, Model
from lcursor.errors import DependencyMissing, ModelCorrupt, ModelMissing, ModelUnknown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Tokens = Sequence[int]

GPU_BATCH_TOKENS = 32_768
"""Tokens of a batch, including padding. On the CPU a batch is one text: more are no faster."""
PATCHES = MANIFEST.parent
"""Folder of NAME.patch.npz, which makes a network multiply bytes (see models/README.md): 2.6 times
as fast as floats, in half the memory."""
IN_BYTES = "@bytes"
"""Suffix of the name of vectors computed with byte products, which differ slightly from floats."""
MAX_CHARS_PER_TOKEN = 12
"""Upper bound of the average; the rest of a longer text is not tokenized."""


Pooling = Literal["mean", "cls"]

DEFAULT = "minilm-l6-v2-int8"


@dataclass(frozen=True, slots=True)
class EmbedderSpec:
    """An embedding model and how to use it."""

    name: str
    """Name, also of the model in the manifest."""
    dim: int
    max_tokens: int
    """Limit at which texts are truncated. It is below the model's limit if longer texts gain
    nothing: the default finds as many answers with 192, 224 and 256 tokens (`eval queries`)."""
    pooling: Pooling
    query_prefix: str = ""
    is_unbatched: bool = True
    """Whether each batch has one text, because the vector would depend on the rest of the batch."""

    @property
    def model(self) -> Model:
        """The entry in the manifest."""
        return manifest.find(self.name)

    def files(self, folder: Path | None = None) -> tuple[Path, Path]:
        """Return the paths of the network and its tokenizer, which need not exist."""
        model = self.model
        return store.path_of(model, folder), store.path_of(model.companions[-1], folder)

    def check_installed(self, folder: Path | None = None) -> None:
        """Raise ModelMissing, with the command that downloads it, if it is not on this machine."""
        for each in self.model.files:
            path = store.path_of(each, folder)
            if not path.is_file():
                raise ModelMissing(
                    f"The embedder {self.name} is not on this machine ({path})",
                    f"Run {store.pull_command(self.name)}",
                )


EMBEDDERS = (
    EmbedderSpec(DEFAULT, dim=384, max_tokens=224, pooling="mean", is_unbatched=False),
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
    """Return an embedder by its name.

    Raises:
        ModelUnknown: there is none; the hint suggests a similar name.
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

    In the other order `import onnxruntime` crashes (usearch 2.26.5, onnxruntime 1.31.1, Linux),
    probably because usearch includes its own libstdc++.
    """
    with contextlib.suppress(ImportError):
        import onnxruntime as _  # noqa: F401


def _libraries() -> tuple[Any, Any]:
    # Its thread pool would use every core for a millisecond.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        import onnxruntime
        import tokenizers
    except ImportError as e:
        raise DependencyMissing(
            f"The package {e.name or 'onnxruntime'} is missing", "Run :LCursor install"
        ) from e
    return onnxruntime, tokenizers


def _patched(network: Path, patch_path: Path) -> bytes | None:
    """Return a network with its patch applied; None without a patch, or for another file."""
    if not patch_path.exists():
        return None
    content = network.read_bytes()
    with np.load(patch_path) as patch:
        if len(content) != patch["size"]:
            return None
        pieces: list[bytes] = []
        added, at = patch["added"].tobytes(), 0
        for added_end, copied, copied_end in patch["parts"].tolist():
            pieces += added[at:added_end], content[copied:copied_end]
            at = added_end
    return b"".join(pieces)


def batches(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Yield the indices of texts in batches of similar length, the longest texts first.

    Args:
        max_tokens: limit of a batch, including padding; a single text may have more.
    """
    group: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        if group and (len(group) + 1) * lengths[group[0]] > max_tokens:
            yield group
            group = []
        group.append(number)
    if group:
        yield group


def normalized(vectors: Vectors) -> Vectors:
    """Scale each row to norm one; a row of zeros stays."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = (vectors / np.maximum(norms, 1e-12)).astype(np.float32)
    return scaled


class Embedder:
    """A loaded embedding model.

    Raises:
        ModelMissing: it is not on this machine.
        ModelCorrupt: it cannot be loaded, or returns vectors of another size.
        DependencyMissing: a library is not installed.
    """

    def __init__(self, spec: EmbedderSpec, folder: Path | None = None, threads: int = 1) -> None:
        spec.check_installed(folder)
        onnxruntime, tokenizers = _libraries()
        network, words = spec.files(folder)
        self.spec = spec
        self.name, self.dim = f"{spec.name}@{spec.max_tokens}", spec.dim
        """Only vectors with the same name are comparable."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = max(1, threads)
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Threads that spin while idle would take a core from the completion model.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        providers = ["CPUExecutionProvider"]
        if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
            providers.insert(0, "CUDAExecutionProvider")
        try:
            # Byte products would run on the CPU, because the GPU has none.
            patch_path = PATCHES / f"{spec.name}.patch.npz"
            patched = None if len(providers) > 1 else _patched(network, patch_path)
            if patched:
                self.name += IN_BYTES
            self._session = onnxruntime.InferenceSession(
                patched or str(network), sess_options=options, providers=providers
            )
            self._tokenizer = tokenizers.Tokenizer.from_file(str(words))
        except Exception as e:  # neither library has a base class of its errors
            raise ModelCorrupt(
                f"The embedder {spec.name} cannot be loaded ({str(e).splitlines()[0][:200]})",
                f"Run python -m lcursor models verify {spec.name}, "
                f"and {store.pull_command(spec.name)} if it is wrong",
            ) from e
        self._tokenizer.enable_truncation(spec.max_tokens)
        self._tokenizer.no_padding()
        self._inputs = {each.name for each in self._session.get_inputs()}
        self.on_gpu = self._session.get_providers()[0] != "CPUExecutionProvider"
        # With byte products the scale depends on the whole batch.
        self._batch_tokens = GPU_BATCH_TOKENS if self.on_gpu and not spec.is_unbatched else 0
        found = self._run([[0, 0]]).shape[1]
        if found != spec.dim:
            raise ModelCorrupt(
                f"The embedder {spec.name} returns vectors of size {found}, not {spec.dim}",
                f"Run {store.pull_command(spec.name)}",
            )

    def texts(self, texts: Sequence[str], threads: int = 1) -> Vectors:
        """Return a vector of norm one for each text of the corpus.

        Takes about 55 ms for 224 tokens on one CPU thread with AVX2.

        Args:
            threads: threads with a batch each, which is faster than several threads per batch.
        """
        return self._embed(texts, threads)

    def query(self, text: str) -> Vectors:
        """Return the vector of a query, of norm one; takes about 4 ms."""
        vector: Vectors = self._embed([self.spec.query_prefix + text])[0]
        return vector

    def _tokens(self, text: str) -> Tokens:
        # The tokenizer rejects surrogates, which stand for bytes of a path that are not UTF-8.
        whole = text[: self.spec.max_tokens * MAX_CHARS_PER_TOKEN]
        plain = whole.encode("utf-8", "replace").decode()
        ids: Tokens = self._tokenizer.encode(plain).ids
        return ids

    def _embed(self, texts: Sequence[str], threads: int = 1) -> Vectors:
        tokens = [self._tokens(text) for text in texts]
        vectors = np.zeros((len(texts), self.spec.dim), np.float32)
        groups = list(batches([len(ids) for ids in tokens], self._batch_tokens))

        def embed(group: list[int]) -> None:
            vectors[group] = self._run([tokens[number] for number in group])

        if min(threads, len(groups)) < 2:
            for group in groups:
                embed(group)
            return vectors
        # Started here, so that the threads inherit the priority of this one.
        with ThreadPoolExecutor(threads, "lcursor-embed") as executor:
            list(executor.map(embed, groups))
        return vectors

    def _run(self, tokens: Sequence[Tokens]) -> Vectors:
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
        if hidden.ndim == 2:  # pooled by the network
            return normalized(hidden)
        if self.spec.pooling == "cls":
            return normalized(hidden[:, 0])
        weights = mask[..., None].astype(np.float32)
        return normalized((hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9))
