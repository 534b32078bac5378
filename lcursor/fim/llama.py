"""llama.cpp through llama-cpp-python's low-level calls: the only importer of `llama_cpp`.

Owns the C objects and their lifetime; deals with tokens and positions, not with code or
completions. A `Model` may be used on any thread; a `Context` belongs to one thread at a time, but
its `abort` may be set on any. Every C call releases the GIL.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcursor import system
from lcursor.errors import (
    Cancelled,
    DependencyMissing,
    EngineFailed,
    ModelCorrupt,
    ModelUnsuitable,
    OutOfMemory,
)

try:
    import llama_cpp as L  # noqa: N812
    import numpy as np
except ImportError as error:
    raise DependencyMissing(
        f"llama.cpp cannot be loaded ({error})", "Run :LCursor install, or make test in a checkout"
    ) from error
except (OSError, RuntimeError) as error:  # a shared library is missing or of another machine
    raise DependencyMissing(
        f"llama.cpp's library cannot be loaded ({error})", "Run :LCursor install again"
    ) from error

if TYPE_CHECKING:
    from numpy.typing import NDArray

Progress = Callable[[float], bool]
"""Called with the progress of a load, 0 to 1; returning False stops it."""

ERROR = 4  # enum ggml_log_level
NO_ROOM, ABORTED, NO_MEMORY = 1, 2, -2  # llama_decode

library: ctypes.CDLL = L.llama_cpp._lib
_libc = ctypes.CDLL(None)
_errors: list[str] = []


@L.llama_log_callback  # global, because llama.cpp crashes if it is collected
def _collect(level: int, text: bytes, _data: object) -> None:
    if level == ERROR:
        _errors.append(text.decode("utf-8", "replace").strip())


def _listen(listening: bool) -> None:
    """Collect llama.cpp's errors, or discard its log with libc's `abs`, without the GIL."""
    sink = _collect if listening else ctypes.cast(_libc.abs, L.llama_log_callback)
    L.llama_log_set(sink, ctypes.c_void_p(0))


_listen(False)
L.llama_backend_init()


def has_gpu() -> bool:
    """Whether this build can use a GPU of this machine."""
    return bool(L.llama_supports_gpu_offload())


def version() -> str:
    """Return the version of llama-cpp-python, which names llama.cpp's commit."""
    text: str = L.__version__
    return text


def system_info() -> str:
    """Return llama.cpp's description of its build and the CPU features it uses."""
    text: bytes = L.llama_print_system_info()
    return text.decode()


def quantize(source: Path, target: Path, file_type: int) -> None:
    """Write a GGUF file in another format; llama.cpp chooses the type of each tensor.

    Args:
        source: a GGUF file in any format.
        target: the file to write; a partial one stays after a failure.
        file_type: an `enum llama_ftype`.

    Cost: a few seconds for 0.5B; cannot be interrupted.
    """
    params = L.llama_model_quantize_default_params()
    params.ftype = file_type
    params.allow_requantize = True
    _errors.clear()
    _listen(True)
    try:
        code = L.llama_model_quantize(
            str(source).encode(), str(target).encode(), ctypes.byref(params)
        )
    finally:
        _listen(False)
    if code != 0:
        reason = _errors[-1] if _errors else "llama.cpp gives no reason"
        raise EngineFailed(f"{source.name} could not be requantized ({reason})")


class Model:
    """A loaded GGUF: its weights, tokenizer and metadata.

    Args:
        path: the file.
        gpu_layers: layers on the GPU; -1 is all.
        progress: called with the progress of the load; may stop it.
        main_gpu: number of the GPU for these layers; -1 splits them among all.

    Raises:
        Cancelled: `progress` returned False.
        ModelCorrupt: llama.cpp cannot read the file.
        ModelUnsuitable: the architecture is unknown, or has no per-token cache.
        OutOfMemory: the weights do not fit.
    """

    def __init__(self, path: Path, gpu_layers: int, progress: Progress, main_gpu: int = -1) -> None:
        stopped = False

        def report(fraction: float, _data: object) -> bool:
            nonlocal stopped
            stopped = not progress(fraction)
            return not stopped

        callback = L.llama_progress_callback(report)  # must outlive the call below
        params = L.llama_model_default_params()
        if params.n_gpu_layers is None or L.llama_context_default_params().n_batch != 2048:
            raise DependencyMissing(
                "llama-cpp-python and its library are of different versions",
                "Run :LCursor install again",
            )
        params.n_gpu_layers = gpu_layers if has_gpu() else 0
        no_devices = (ctypes.c_void_p * 1)(None)
        if params.n_gpu_layers == 0:  # else a GPU gets buffers and large batches nevertheless
            params.devices = ctypes.addressof(no_devices)
        if params.n_gpu_layers and main_gpu >= 0:
            params.split_mode, params.main_gpu = L.LLAMA_SPLIT_MODE_NONE, main_gpu
        params.progress_callback = callback
        _errors.clear()
        _listen(True)
        try:
            self.handle = L.llama_model_load_from_file(str(path).encode(), params)
        finally:
            _listen(False)
        if not self.handle:
            if stopped:
                raise Cancelled("the load was stopped")
            raise _load_error(path)
        self.path = path
        self._vocab = L.llama_model_get_vocab(self.handle)
        self.n_vocab: int = L.llama_vocab_n_tokens(self._vocab)
        self.bos: int = L.llama_vocab_bos(self._vocab)
        self.add_bos: bool = L.llama_vocab_get_add_bos(self._vocab)
        self.n_ctx_train: int = L.llama_model_n_ctx_train(self.handle)
        if L.llama_model_is_recurrent(self.handle) or L.llama_model_is_hybrid(self.handle):
            self.close()
            raise ModelUnsuitable(
                f"{path.name} is a recurrent or hybrid model: its cache cannot drop single tokens, "
                "so each keystroke would evaluate the whole prompt",
                "Choose another completion.model; see: python -m lcursor models list",
            )

    def close(self) -> None:
        """Free the weights. No context of this model may be used afterwards."""
        if self.handle:
            L.llama_model_free(self.handle)
            self.handle = None
            system.trim_memory()

    def tokenize(self, text: str, special: bool = False) -> list[int]:
        """Turn text into token ids, without BOS.

        Args:
            text: may contain surrogate escapes for bytes that are not UTF-8.
            special: read markers such as `<|fim_prefix|>` as one token. Never for buffer text.
        """
        data = text.encode("utf-8", "surrogateescape")
        capacity = len(data) + 8
        tokens = (L.llama_token * capacity)()
        count = L.llama_tokenize(self._vocab, data, len(data), tokens, capacity, False, special)
        if count < 0:
            raise EngineFailed(f"{len(data)} bytes could not be tokenized")
        return list(tokens[:count])

    def piece(self, token: int) -> bytes:
        """Return the bytes of one token; b"" for a marker."""
        length = -256
        while length < 0:  # the buffer is too small; -length is the required size
            buffer = ctypes.create_string_buffer(-length)
            length = L.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
        return buffer.raw[:length]

    def is_end(self, token: int) -> bool:
        """Return whether this token ends a generation."""
        return bool(L.llama_vocab_is_eog(self._vocab, token))

    @cached_property
    def description(self) -> str:
        """llama.cpp's description of architecture, size and quantization."""
        buffer = ctypes.create_string_buffer(256)
        L.llama_model_desc(self.handle, buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace")


def _load_error(path: Path) -> Exception:
    reason = next((line for line in _errors if line), "llama.cpp gives no reason")
    text = " ".join(_errors).lower()
    if "unknown model architecture" in text:
        return ModelUnsuitable(
            f"{path.name}: this llama.cpp does not know the model's architecture ({reason})",
            "Choose another completion.model; see: python -m lcursor models list",
        )
    if "alloc" in text or "out of memory" in text:
        return OutOfMemory(
            f"{path.name} does not fit into memory ({reason})",
            "Choose a smaller completion.model, or lower completion.gpu_layers",
        )
    return ModelCorrupt(
        f"{path.name} cannot be loaded ({reason})",
        "Check the file: python -m lcursor models verify; then pull it again",
    )


class Abort:
    """A flag that llama.cpp polls itself, without the GIL.

    llama.cpp calls `strlen` on two bytes of this object: 0 continues, 1 stops. Any thread may set
    it; it takes effect within one node of the compute graph on a CPU, or after the batch inside
    `between_batches`. A stopped batch leaves no cells.
    """

    def __init__(self) -> None:
        self._polled = ctypes.create_string_buffer(2)
        self._is_set = self._is_immediate = False
        self._holds = 0
        self._lock = threading.Lock()

    def install(self, context: Any) -> None:
        """Make a context poll this flag; the flag must outlive the context."""
        poll = ctypes.cast(_libc.strlen, L.ggml_abort_callback)
        L.llama_set_abort_callback(context, poll, ctypes.cast(self._polled, ctypes.c_void_p))

    def set(self, *, immediately: bool = False) -> None:
        """Stop the running decode; `immediately` also inside `between_batches`."""
        with self._lock:
            self._is_set = True
            self._is_immediate = self._is_immediate or immediately
            self._update()

    def clear(self) -> None:
        """Clear the flag before the next job."""
        with self._lock:
            self._is_set = self._is_immediate = False
            self._update()

    def is_set(self) -> bool:
        """Whether the flag is set."""
        return self._is_set

    @contextmanager
    def between_batches(self) -> Iterator[None]:
        """Let running decodes finish; `is_set` returns whether the flag was set meanwhile."""
        self._hold(1)
        try:
            yield
        finally:
            self._hold(-1)

    def _hold(self, by: int) -> None:
        with self._lock:
            self._holds += by
            self._update()

    def _update(self) -> None:
        stops = self._is_set and (self._is_immediate or not self._holds)
        self._polled[0] = b"\x01" if stops else b"\x00"


@dataclass(frozen=True, slots=True)
class ContextSize:
    """The size of a context.

    Attributes:
        cells: tokens of the KV cache, over all sequences; llama.cpp rounds up to 256.
        batch: maximum tokens of one decode; the abort flag is checked in between.
        ubatch: tokens computed at once.
        outputs: maximum tokens with logits per batch.
        kv_type: type of keys and values: "f16" or "q8_0".
    """

    cells: int = 4096
    batch: int = 512
    ubatch: int = 64
    sequences: int = 3
    outputs: int = 8
    threads: int = 0
    kv_type: str = "f16"


class Context:
    """A KV cache and the batch that fills it; raises OutOfMemory if it does not fit."""

    def __init__(self, model: Model, size: ContextSize) -> None:
        params = L.llama_context_default_params()
        params.n_ctx = size.cells
        params.n_batch = size.batch
        params.n_ubatch = size.ubatch
        params.n_seq_max = size.sequences
        params.n_outputs_max = size.outputs
        params.n_threads = params.n_threads_batch = size.threads
        params.flash_attn_type = -1  # llama.cpp decides
        if size.kv_type == "q8_0":
            params.type_k = params.type_v = L.GGML_TYPE_Q8_0
            params.flash_attn_type = 1  # quantized values need it
        params.kv_unified = True  # a copied sequence shares its cells
        self.handle = L.llama_init_from_model(model.handle, params)
        if not self.handle:
            raise OutOfMemory(
                f"not enough memory for a cache of {size.cells} tokens",
                "Lower completion.context_tokens, or choose a smaller completion.model",
            )
        self.abort = Abort()
        self.abort.install(self.handle)
        self.cells: int = L.llama_n_ctx(self.handle)
        self.batch_tokens = size.batch
        """Maximum tokens of one `decode`."""
        self._model = model
        self._memory = L.llama_get_memory(self.handle)
        self._batch = L.llama_batch_init(size.batch, 0, 1)
        shape = (size.batch,)
        view = np.ctypeslib.as_array
        self._token = view(self._batch.token, shape)  # int32 [batch]
        self._pos = view(self._batch.pos, shape)  # int32 [batch]
        self._wants = view(self._batch.logits, shape)  # int8 [batch]
        view(self._batch.n_seq_id, shape)[:] = 1

    def close(self) -> None:
        """Free the cache."""
        if self.handle:
            L.llama_batch_free(self._batch)
            L.llama_free(self.handle)
            self.handle = None

    def decode(
        self, tokens: Sequence[int], position: int, sequence: int = 0, outputs: int = 1
    ) -> None:
        """Evaluate tokens in a sequence; `logits()` then returns those after the last one.

        Args:
            tokens: 1 to `batch_tokens` ids.
            position: position of the first token; must follow the sequence's last.
            sequence: its id.
            outputs: number of last tokens with logits.

        Raises:
            Cancelled: `abort` was set; `length()` returns the evaluated length.
            OutOfMemory: the cache is full.
            EngineFailed: llama.cpp failed.
        """
        count = len(tokens)
        self._token[:count] = tokens
        self._pos[:count] = np.arange(position, position + count)
        self._wants[:count] = 0
        self._wants[count - outputs : count] = 1
        for i in range(count):
            self._batch.seq_id[i][0] = sequence
        self._decode_batch(count)

    def decode_each(self, tokens: Sequence[tuple[int, int, int]]) -> None:
        """Evaluate one token in each of several sequences, with logits after each.

        Args:
            tokens: id, position and sequence of each, at most `ContextSize.outputs`.
        """
        for i, (token, position, sequence) in enumerate(tokens):
            self._token[i], self._pos[i], self._wants[i] = token, position, 1
            self._batch.seq_id[i][0] = sequence
        self._decode_batch(len(tokens))

    def _decode_batch(self, count: int) -> None:
        """Decode the first `count` tokens of the batch."""
        self._batch.n_tokens = count
        position = int(self._pos[0])
        result = L.llama_decode(self.handle, self._batch)
        if result == ABORTED:
            raise Cancelled("superseded by a newer request")
        if result == NO_ROOM:
            raise OutOfMemory(
                f"the cache of {self.cells} tokens is full", "Raise completion.context_tokens"
            )
        if result == NO_MEMORY:
            raise OutOfMemory(
                f"not enough memory to evaluate {count} tokens",
                "Lower completion.context_tokens or completion.gpu_layers",
            )
        if result != 0:
            raise EngineFailed(
                f"llama.cpp could not evaluate {count} tokens at {position} (code {result})",
                "Run :LCursor restart; if it happens again, see :LCursor log",
            )

    def logits(self, number: int = -1) -> NDArray[np.float32]:
        """Return logits of the last batch: a view [n_vocab], valid until the next decode.

        Args:
            number: index of a token with logits in the batch; -1 is the last.
        """
        pointer = L.llama_get_logits_ith(self.handle, number)
        if not pointer:
            raise EngineFailed("llama.cpp returned no logits", "Run :LCursor restart")
        return np.ctypeslib.as_array(pointer, shape=(self._model.n_vocab,))

    def remove(self, sequence: int, start: int, end: int = -1) -> bool:
        """Remove the positions [start, end) from a sequence; -1 is the end. False if impossible."""
        return bool(L.llama_memory_seq_rm(self._memory, sequence, start, end))

    def copy(self, source: int, target: int, start: int, end: int) -> None:
        """Add the cells [start, end) of one sequence to another. Copies no data."""
        L.llama_memory_seq_cp(self._memory, source, target, start, end)

    def move(self, sequence: int, start: int, end: int, by: int) -> None:
        """Shift the positions of cells that only this sequence has; costs a pass over them."""
        L.llama_memory_seq_add(self._memory, sequence, start, end, by)

    def state(self, sequence: int, max_bytes: int) -> memoryview:
        """Return the KV data of a sequence, with positions; empty if it is over `max_bytes`.

        Cost: a copy; 12 kB per token for a model of 0.5B.
        """
        size = L.llama_state_seq_get_size(self.handle, sequence)
        if size > max_bytes:
            return memoryview(b"")
        buffer = (ctypes.c_uint8 * size)()
        count = L.llama_state_seq_get_data(self.handle, buffer, size, sequence)
        return memoryview(buffer).cast("B")[:count]

    def restore(self, sequence: int, state: bytes | memoryview) -> bool:
        """Load the result of `state`, perhaps of another process; return False if it does not fit.

        llama.cpp compares shapes and types; the caller must ensure that the model is the same.
        """
        data = np.frombuffer(state, dtype=np.uint8)
        pointer = data.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        return bool(L.llama_state_seq_set_data(self.handle, pointer, len(data), sequence))

    def use_threads(self, count: int) -> None:
        """Set the number of threads that evaluate from now on."""
        L.llama_set_n_threads(self.handle, count, count)

    def length(self, sequence: int = 0) -> int:
        """Return the position after the sequence's last token; 0 if it is empty."""
        return int(L.llama_memory_seq_pos_max(self._memory, sequence)) + 1
