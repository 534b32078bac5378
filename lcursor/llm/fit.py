"""Choose the chat model and the size of its context, so that both fit beside the completion model.

Uses the numbers of `catalog.memory`, and what the model's file, the engine and the machine say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lcursor.catalog import gguf, manifest, store
from lcursor.catalog.hardware import GIB, MIB, Hardware
from lcursor.catalog.memory import (
    CHAT_EXTRA_BYTES,
    CHAT_TOKENS,
    DESKTOP_BYTES,
    KV_SCALE,
    Place,
    chat_bytes,
    completion_bytes,
    gib,
    head_number,
    kv_cache_bytes,
)
from lcursor.catalog.recommend import GPU_PAIRS, recommend
from lcursor.errors import LcursorError, ModelError, ModelMissing, OutOfMemory

STEPS = (65536, 49152, 32768, 24576, 16384, 12288, 8192, 6144, 4096)
"""Sizes of a context that are tried, the largest first."""
MIN_TOKENS = STEPS[-1]
EMBEDDED = "qwen2.5-coder-0.5b"
CHAT_MODELS = tuple(dict.fromkeys([*(chat for _, chat in GPU_PAIRS), EMBEDDED]))
"""What may be recommended, best first."""
BATCH_TOKENS: dict[Place, int] = {"on the GPU": 512, "on the CPU": 64}
"""On two cores small batches are as fast as large ones, but not all sizes are: a prompt of 1,744
tokens is read at 73 tokens a second in batches of 64, 66 in batches of 128, 63 of 96, 51 of 56.

The server checks between two batches whether the client is still there, one batch late: a stop
takes the time of one to two. A smaller physical batch (`n_ubatch`) inside a larger one does not
change that. This is the smallest of these that the drafts of `llama_server.SPECULATIONS` fit in.
"""
SYSTEM_BYTES = 1 * GIB
"""Of the machine's RAM, left to everything else."""
MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU as the engine sees it."""

    name: str
    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class ModelSize:
    """What decides how much memory a model needs."""

    name: str
    path: Path
    file_bytes: int
    kv_bytes: int
    """Of one token in an f16 cache; 0 if the file does not say."""
    max_tokens: int
    """Context that it was trained for; 0 if the file does not say."""


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """The memory of the machine."""

    place: Place
    total_bytes: int
    free_bytes: int
    reserved_bytes: int = 0
    """Kept for the completion model."""
    ram_bytes: int = 0
    """Of the machine: for layers that do not fit on the GPU."""

    @property
    def bytes(self) -> int:
        """What the server may use; what is already loaded counts as used."""
        kept = DESKTOP_BYTES if self.place == "on the GPU" else SYSTEM_BYTES
        return max(min(self.total_bytes - kept - self.reserved_bytes, self.free_bytes), 0)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a model is started."""

    model: ModelSize
    budget: MemoryBudget
    context_tokens: int
    cache_ram_mib: int
    """Limit of the machine's RAM for prompts that are not in the cache now."""
    fits_whole: bool = True
    """Whether all of it fits; else a part of it runs on the CPU."""

    @property
    def need_bytes(self) -> int:
        """Estimate of the memory that it needs."""
        return need_bytes(self.model, self.context_tokens, self.budget.place)

    @property
    def batch_tokens(self) -> int:
        """How much of a prompt is read at a time; a server that is stopped finishes one batch."""
        return BATCH_TOKENS[self.budget.place]

    @property
    def kv_type(self) -> str:
        """Type of the KV cache."""
        return "q8_0" if KV_SCALE[self.budget.place] < 1 else "f16"

    def describe(self) -> str:
        """Return it in one line."""
        text = (
            f"{self.model.name} {self.budget.place}, {self.context_tokens:,} tokens of context, "
            f"about {gib(self.need_bytes)} of {gib(self.budget.total_bytes)}"
        )
        if self.budget.reserved_bytes:
            text += f" ({gib(self.budget.reserved_bytes)} are kept for completion)"
        if not self.fits_whole:
            text += "; not all of it fits, so a part runs on the CPU, slowly"
        return text


def need_bytes(model: ModelSize, tokens: int, place: Place) -> int:
    """Return the memory that a model needs with so much context."""
    return model.file_bytes + int(model.kv_bytes * tokens * KV_SCALE[place]) + CHAT_EXTRA_BYTES


def measure(name: str, path: Path) -> ModelSize:
    """Read the size of a model from its file's metadata.

    Raises:
        ModelCorrupt: it is not a GGUF file.
    """
    head = gguf.read_head(path)
    kv_bytes, most = kv_cache_bytes(head, 1), head_number(head, "context_length")
    entry = next((model for model in manifest.load() if model.name == name), None)
    if entry is not None:  # it knows models that cache only some layers
        kv_bytes, most = entry.kv_bytes_per_token, most or entry.context_tokens
    return ModelSize(name, path, _all_bytes(path, head.file_bytes), kv_bytes, most)


def expected_plan(name: str, here: Hardware, completion: str) -> Plan:
    """Return the plan for a model of the manifest, even if its file is not here.

    Raises:
        OutOfMemory: it does not fit.
    """
    entry = manifest.find(name)
    size = ModelSize(
        name, store.path_of(entry), entry.bytes, entry.kv_bytes_per_token, entry.context_tokens
    )
    return make_plan(size, memory_budget(here, completion))


def available_bytes(ram_bytes: int) -> int:
    """Return how much RAM is available, all of it if the machine does not say."""
    try:
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return ram_bytes


def usable_hardware(here: Hardware, devices: Sequence[Device]) -> Hardware:
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


def memory_budget(here: Hardware, completion: str) -> MemoryBudget:
    """Return the memory for the chat server beside a completion model, a name or a path."""
    reserved, ram = _reserved_bytes(completion), here.ram_bytes or 8 * GIB
    if here.gpu_bytes is not None:
        free = here.gpu_free_bytes if here.gpu_free_bytes is not None else here.gpu_bytes
        return MemoryBudget("on the GPU", here.gpu_bytes, free, reserved, ram)
    return MemoryBudget("on the CPU", ram, available_bytes(ram), reserved, ram)


def make_plan(model: ModelSize, budget: MemoryBudget, wish_tokens: int = 0) -> Plan:
    """Choose the context of a model.

    Args:
        wish_tokens: what the settings say; 0 is as much as fits and is of use.

    Raises:
        OutOfMemory: not even a part of it fits.
    """
    most = model.max_tokens or CHAT_TOKENS
    if budget.place == "on the CPU":
        most = min(most, CHAT_TOKENS)  # nobody waits for a CPU to read more
    steps = [step for step in STEPS if step <= most] or [most]
    fitting = [step for step in steps if need_bytes(model, step, budget.place) <= budget.bytes]
    is_gpu = budget.place == "on the GPU"
    least = min(most, CHAT_TOKENS) if is_gpu else steps[-1]  # a part may run on the CPU
    tokens = wish_tokens or (fitting[0] if fitting else least)
    if wish_tokens and model.max_tokens:
        tokens = min(tokens, model.max_tokens)
    share = 8 if is_gpu else 16
    cache_mib = min(budget.ram_bytes // MIB // share, 4096)
    plan = Plan(model, budget, tokens, cache_mib)
    if plan.need_bytes <= budget.bytes:
        return plan
    if is_gpu and plan.need_bytes <= budget.bytes + budget.ram_bytes // 2:
        return replace(plan, fits_whole=False)
    raise out_of_memory(plan)


def smaller_plan(plan: Plan) -> Plan | None:
    """Return a plan with half the context or less (a load takes long), None if there is none."""
    step = next((step for step in STEPS if 2 * step <= plan.context_tokens), None)
    return replace(plan, context_tokens=step) if step is not None else None


def out_of_memory(plan: Plan) -> OutOfMemory:
    """Return an error with numbers: what does not fit, and what would."""
    budget, model = plan.budget, plan.model
    message = (
        f"{model.name} with {plan.context_tokens:,} tokens of context needs about "
        f"{gib(plan.need_bytes)}, and {gib(budget.bytes)} of {gib(budget.total_bytes)} are there "
        f"{budget.place}"
    )
    if budget.reserved_bytes:
        message += f", {gib(budget.reserved_bytes)} being kept for completion"
    return OutOfMemory(message, advice(plan))


def advice(plan: Plan) -> str:
    """Return which smaller context and which smaller model would fit, with numbers."""
    budget, model = plan.budget, plan.model
    ways = []
    for step in STEPS:
        need = need_bytes(model, step, budget.place)
        if step < plan.context_tokens and need <= budget.bytes:
            ways.append(f"set chat.context_tokens = {step} (about {gib(need)})")
            break
    for name in CHAT_MODELS:
        entry = manifest.find(name)
        need = chat_bytes(name, budget.place, min(CHAT_TOKENS, entry.context_tokens))
        if entry.bytes < model.file_bytes and need <= budget.bytes:
            ways.append(f'set chat.model = "{entry.name}" (about {gib(need)})')
            break
    if budget.place == "on the GPU":
        ways.append("close what else uses the GPU")
    ways = ways or ["close other programs, or use a server on another machine (chat.models)"]
    text = ", or ".join(ways)
    return text[0].upper() + text[1:]


def resolve_model(setting: str) -> tuple[str, Path]:
    """Return the name and the file of the model that a setting names.

    Raises:
        ModelError: there is no such model, or not on this machine.
    """
    path = store.resolve(setting, "chat")
    is_path = "/" in setting or setting.endswith(".gguf")
    return (path.stem if is_path else setting), path


def choose_model(setting: str, here: Hardware, notify: Callable[[str], None]) -> tuple[str, Path]:
    """Return the name and the file of the model to serve.

    Args:
        setting: a name of the manifest or a path; "" is the recommended one if it is here, else
            the best that is, the embedded small one at last.
        here: as `usable_hardware` returns it.
        notify: gets a message if it is not the recommended one.

    Raises:
        ModelError: there is no such model, or not on this machine.
    """
    if setting:
        return resolve_model(setting)
    best = recommend(here).chat.model
    for name in CHAT_MODELS[CHAT_MODELS.index(best) :]:
        try:
            path = store.resolve(name, "chat")
        except ModelMissing:
            continue
        if name != best:
            notify(f"{name} answers; this machine could run {best}: {store.pull_command(best)}")
        return name, path
    raise ModelMissing(
        "There is no model for the chat on this machine",
        f"Get the one that suits it: {store.pull_command(best)}",
    )


def _reserved_bytes(completion: str) -> int:
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
    """Return the size of a model that may be split into several files."""
    stem, mark, rest = path.name.rpartition("-of-")
    if not mark:
        return own_bytes
    others = path.parent.glob(f"{stem[: -len('00001')]}*-of-{rest}")
    return sum(each.stat().st_size for each in others) or own_bytes
