"""Which model and how much context the chat server takes, beside the completion model.

Arithmetic on what the file, the engine and the machine say. The numbers are those of
`catalog.recommend`, which `models recommend` shows; here the model's own head is known, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lcursor.catalog import gguf, manifest, store
from lcursor.catalog.hardware import GIB, MIB, Hardware
from lcursor.catalog.recommend import (
    CHAT_EXTRA_BYTES,
    CHAT_TOKENS,
    DESKTOP_BYTES,
    GPU_PAIRS,
    KV_SCALE,
    Place,
    completion_bytes,
    recommend,
)
from lcursor.errors import LcursorError, ModelError, ModelMissing, OutOfMemory

STEPS = (65536, 49152, 32768, 24576, 16384, 12288, 8192, 6144, 4096)
"""Sizes of a context that are tried, the largest first."""
LEAST_TOKENS = STEPS[-1]
EMBEDDED = "qwen2.5-coder-0.5b"
CHAT_MODELS = tuple(dict.fromkeys([*(chat for _, chat in GPU_PAIRS), EMBEDDED]))
"""What may be recommended, best first, and what is always there."""
BATCH_TOKENS: dict[Place, int] = {"on the GPU": 512, "on the CPU": 64}
"""On two cores few are read as fast as many, but not any few: of a prompt of 1,744 tokens 73 a
second in batches of 64, 66 in batches of 128, 63 of 96, 51 of 56.

The server looks between two batches whether somebody still waits, and sees it one batch late: a
stop takes the time of one to two. A smaller physical batch (`n_ubatch`) inside of a larger one
changes nothing of that. This is the least of these that has room for the drafts of
`llama_server.SPECULATIONS`.
"""
SYSTEM_BYTES = 1 * GIB
"""Of the machine's RAM, left to all else."""
MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU as the engine sees it."""

    name: str
    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class Weights:
    """What of a model's file decides how much room it takes."""

    name: str
    path: Path
    file_bytes: int
    kv_bytes: int
    """Of one token in an f16 cache; 0 where the file does not say."""
    most_tokens: int
    """That it was trained for; 0 where the file does not say."""


@dataclass(frozen=True, slots=True)
class Room:
    """The memory there is."""

    place: Place
    total_bytes: int
    free_bytes: int
    beside_bytes: int = 0
    """Kept for the completion model."""
    ram_bytes: int = 0
    """Of the machine: where layers go that a GPU has no room for."""

    @property
    def bytes(self) -> int:
        """What the server may take; what is loaded already is no longer free."""
        kept = DESKTOP_BYTES if self.place == "on the GPU" else SYSTEM_BYTES
        return max(min(self.total_bytes - kept - self.beside_bytes, self.free_bytes), 0)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a model is started."""

    weights: Weights
    room: Room
    context_tokens: int
    cache_ram_mib: int
    """Most of the machine's RAM for prompts that are not in the cache now."""
    is_whole: bool = True
    """Whether all of it has room; else a part of it runs on the CPU."""

    @property
    def need_bytes(self) -> int:
        """What it takes, as estimated."""
        return need_bytes(self.weights, self.context_tokens, self.room.place)

    @property
    def batch_tokens(self) -> int:
        """How much of a prompt is read at a time; a server that is stopped reads so much more."""
        return BATCH_TOKENS[self.room.place]

    @property
    def kv_type(self) -> str:
        """The type of the cache's numbers."""
        return "q8_0" if KV_SCALE[self.room.place] < 1 else "f16"

    def describe(self) -> str:
        """Say it in one line."""
        text = (
            f"{self.weights.name} {self.room.place}, {self.context_tokens:,} tokens of context, "
            f"about {gib(self.need_bytes)} of {gib(self.room.total_bytes)}"
        )
        if self.room.beside_bytes:
            text += f" ({gib(self.room.beside_bytes)} are kept for completion)"
        if not self.is_whole:
            text += "; not all of it fits, so a part runs on the CPU, slowly"
        return text


def gib(count: int) -> str:
    """Return a size for people."""
    return f"{count / GIB:.1f} GiB"


def need_bytes(weights: Weights, tokens: int, place: Place) -> int:
    """Return what a model takes with so much context."""
    return weights.file_bytes + int(weights.kv_bytes * tokens * KV_SCALE[place]) + CHAT_EXTRA_BYTES


def weigh(name: str, path: Path) -> Weights:
    """Look into the head of a model's file.

    Raises:
        ModelCorrupt: it is no such file.
    """
    head = gguf.read_head(path)

    def number(key: str) -> int:
        value = head.scalars.get(f"{head.architecture}.{key}", 0)
        return int(value) if isinstance(value, (int, float)) else 0

    heads = number("attention.head_count")
    width = number("embedding_length") // heads if heads else 0
    keys, values = number("attention.key_length") or width, number("attention.value_length")
    shared = number("attention.head_count_kv") or heads
    kv_bytes = number("block_count") * shared * (keys + (values or width)) * 2
    most = number("context_length")
    entry = next((model for model in manifest.load() if model.name == name), None)
    if entry is not None:  # it knows of caches that have only some of the layers
        kv_bytes, most = entry.kv_bytes_per_token, most or entry.context_tokens
    return Weights(name, path, _all_bytes(path, head.file_bytes), kv_bytes, most)


def expected(name: str, here: Hardware, completion: str) -> Plan:
    """Return how a model of the manifest would be started, also where its file is not here.

    Raises:
        OutOfMemory: it would not.
    """
    entry = manifest.find(name)
    weights = Weights(
        name, store.path_of(entry), entry.bytes, entry.kv_bytes_per_token, entry.context_tokens
    )
    return plan(weights, room(here, completion))


def available_bytes(ram_bytes: int) -> int:
    """Return how much RAM is free now, or could be; all of it where the machine does not say."""
    try:
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return ram_bytes


def seen(here: Hardware, devices: Sequence[Device]) -> Hardware:
    """Return the machine as an engine can use it: without a GPU that it was not built for."""
    best = max(devices, key=lambda device: device.total_bytes, default=None)
    if best is None:
        return replace(here, vendor="none", gpu=None, gpu_bytes=None, gpu_free_bytes=None)
    vendor = here.vendor if here.vendor != "none" else "nvidia"
    return replace(
        here,
        vendor=vendor,
        gpu=best.name,
        gpu_bytes=best.total_bytes,
        gpu_free_bytes=best.free_bytes,
    )


def room(here: Hardware, completion: str) -> Room:
    """Return the memory for the chat server beside a completion model.

    Args:
        here: as `seen` returns it.
        completion: name or path of the completion model; "" for none.
    """
    beside, ram = _beside(completion), here.ram_bytes or 8 * GIB
    if here.gpu_bytes is not None:
        free = here.gpu_free_bytes if here.gpu_free_bytes is not None else here.gpu_bytes
        return Room("on the GPU", here.gpu_bytes, free, beside, ram)
    return Room("on the CPU", ram, available_bytes(ram), beside, ram)


def plan(weights: Weights, there: Room, wish_tokens: int = 0) -> Plan:
    """Decide how much context a model gets.

    Args:
        weights: of the model.
        there: the memory.
        wish_tokens: what the settings say; 0 is as much as fits and is of use.

    Raises:
        OutOfMemory: not even a part of it has room.
    """
    most = weights.most_tokens or CHAT_TOKENS
    if there.place == "on the CPU":
        most = min(most, CHAT_TOKENS)  # more than it can read in a time that one waits
    steps = [step for step in STEPS if step <= most] or [most]
    fitting = [step for step in steps if need_bytes(weights, step, there.place) <= there.bytes]
    is_gpu = there.place == "on the GPU"
    least = min(most, CHAT_TOKENS) if is_gpu else steps[-1]  # of which a part may run elsewhere
    tokens = wish_tokens or (fitting[0] if fitting else least)
    if wish_tokens and weights.most_tokens:
        tokens = min(tokens, weights.most_tokens)
    share = 8 if is_gpu else 16
    cache_mib = min(there.ram_bytes // MIB // share, 4096)
    made = Plan(weights, there, tokens, cache_mib)
    if made.need_bytes <= there.bytes:
        return made
    if is_gpu and made.need_bytes <= there.bytes + there.ram_bytes // 2:
        return replace(made, is_whole=False)
    raise too_much(made)


def smaller(made: Plan) -> Plan | None:
    """Return a plan with half the context or less, None where there is none: a load takes long."""
    step = next((step for step in STEPS if 2 * step <= made.context_tokens), None)
    return replace(made, context_tokens=step) if step is not None else None


def too_much(made: Plan) -> OutOfMemory:
    """Return the error that says in numbers what does not fit and what would."""
    there, weights = made.room, made.weights
    message = (
        f"{weights.name} with {made.context_tokens:,} tokens of context needs about "
        f"{gib(made.need_bytes)}, and {gib(there.bytes)} of {gib(there.total_bytes)} are there "
        f"{there.place}"
    )
    if there.beside_bytes:
        message += f", {gib(there.beside_bytes)} being kept for completion"
    return OutOfMemory(message, offer(made))


def offer(made: Plan) -> str:
    """Say which smaller context and which smaller model would fit, with numbers."""
    there, weights = made.room, made.weights
    ways = []
    for step in STEPS:
        need = need_bytes(weights, step, there.place)
        if step < made.context_tokens and need <= there.bytes:
            ways.append(f"set chat.context_tokens = {step} (about {gib(need)})")
            break
    for name in CHAT_MODELS:
        model = manifest.find(name)
        scale = KV_SCALE[there.place]
        need = model.memory_bytes(min(CHAT_TOKENS, model.context_tokens), scale) + CHAT_EXTRA_BYTES
        if model.bytes < weights.file_bytes and need <= there.bytes:
            ways.append(f'set chat.model = "{model.name}" (about {gib(need)})')
            break
    if there.place == "on the GPU":
        ways.append("close what else uses the GPU")
    ways = ways or ["close other programs, or use a server on another machine (chat.models)"]
    text = ", or ".join(ways)
    return text[0].upper() + text[1:]


def named(setting: str) -> tuple[str, Path]:
    """Return the name and the file of the model that a setting names.

    Raises:
        ModelError: there is no such model, or not on this machine.
    """
    path = store.resolve(setting, "chat")
    is_path = "/" in setting or setting.endswith(".gguf")
    return (path.stem if is_path else setting), path


def choose(setting: str, here: Hardware, tell: Callable[[str], None]) -> tuple[str, Path]:
    """Return the name and the file of the model to serve.

    Args:
        setting: a name of the manifest or a path; "" is the recommended one if it is here, else
            the best that is, the embedded small one at last.
        here: as `seen` returns it.
        tell: hears when it is not the recommended one.

    Raises:
        ModelError: there is no such model, or not on this machine.
    """
    if setting:
        return named(setting)
    best = recommend(here).chat.model
    for name in CHAT_MODELS[CHAT_MODELS.index(best) :]:
        try:
            path = store.resolve(name, "chat")
        except ModelMissing:
            continue
        if name != best:
            tell(f"{name} answers; this machine could run {best}: {store.pull_command(best)}")
        return name, path
    raise ModelMissing(
        "There is no model for the chat on this machine",
        f"Get the one that suits it: {store.pull_command(best)}",
    )


def _beside(completion: str) -> int:
    if not completion:
        return 0
    try:
        return completion_bytes(completion)
    except ModelError:
        pass
    try:
        return store.resolve(completion, "completion").stat().st_size + CHAT_EXTRA_BYTES
    except (LcursorError, OSError):
        return 0


def _all_bytes(path: Path, own_bytes: int) -> int:
    """Return the size of a model that may be cut into several files."""
    stem, mark, rest = path.name.rpartition("-of-")
    if not mark:
        return own_bytes
    others = path.parent.glob(f"{stem[: -len('00001')]}*-of-{rest}")
    return sum(each.stat().st_size for each in others) or own_bytes
