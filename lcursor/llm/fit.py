"""Choose the chat model and its context so that they fit together with the completion model.

Uses the numbers of `catalog.memory`, the model's file, the engine and the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from lcursor import system
from lcursor.catalog import gguf, manifest, store
from lcursor.catalog.hardware import GIB, MIB, Hardware
from lcursor.catalog.memory import (
    CHAT_EXTRA_BYTES,
    CHAT_TOKENS,
    DESKTOP_BYTES,
    KV_SCALE,
    Placement,
    chat_bytes,
    completion_bytes,
    gib,
    head_number,
    kv_cache_bytes,
    server_bytes,
)
from lcursor.catalog.recommend import GPU_PAIRS, recommend
from lcursor.errors import LcursorError, ModelError, ModelMissing, OutOfMemory

STEPS = (65536, 49152, 32768, 24576, 16384, 12288, 8192, 6144, 4096)
"""Context sizes to try, the largest first."""
MIN_TOKENS = STEPS[-1]
EMBEDDED = "qwen2.5-coder-0.5b"
CHAT_MODELS = tuple(dict.fromkeys([*(chat for _, chat in GPU_PAIRS), EMBEDDED]))
"""Models that may be recommended, best first."""
BATCH_TOKENS: dict[Placement, int] = {"on the GPU": 512, "on the CPU": 192}
"""A batch must hold the drafts of all slots; see `llama_server.speculations`.

It is a multiple of 64: on a CPU others cost more per token. Small ones are good: a prompt of 1,900
tokens takes 10.2 s in batches of 64, 9.6 s of 192, 9.4 s of 448 (0.5B, two cores). Between two
batches the server checks whether the client is connected, one batch late, so a stop takes one to
two batches: 0.7, 1.3 and 2.7 s. A smaller physical batch (`n_ubatch`) does not change that.
"""
SYSTEM_BYTES = 1 * GIB
"""RAM reserved for other programs."""


@dataclass(frozen=True, slots=True)
class ModelSize:
    """The sizes that determine the memory of a model."""

    name: str
    path: Path
    file_bytes: int
    kv_bytes: int
    """Bytes per token of an f16 cache; 0 if unknown."""
    max_tokens: int
    """Trained context; 0 if unknown."""

    def need_bytes(self, tokens: int, placement: Placement) -> int:
        """Return the memory that it needs with some context."""
        return server_bytes(self.file_bytes, self.kv_bytes, tokens, placement)


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """The memory of the machine."""

    placement: Placement
    total_bytes: int
    free_bytes: int
    reserved_bytes: int = 0
    """Memory reserved for the completion model."""
    ram_bytes: int = 0
    """RAM of the machine."""
    spill_bytes: int = 0
    """RAM for layers that do not fit on the GPU."""

    @property
    def bytes(self) -> int:
        """Memory for the server; loaded programs count as used."""
        system_bytes = DESKTOP_BYTES if self.placement == "on the GPU" else SYSTEM_BYTES
        return max(min(self.total_bytes - system_bytes - self.reserved_bytes, self.free_bytes), 0)


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """The parameters to start a model."""

    model: ModelSize
    budget: MemoryBudget
    context_tokens: int
    cache_ram_mib: int
    """Limit of the RAM for prompts that are not currently in the KV cache."""
    fits_whole: bool = True
    """Whether the whole model fits; otherwise a part runs on the CPU."""

    @property
    def need_bytes(self) -> int:
        """Estimated memory."""
        return self.model.need_bytes(self.context_tokens, self.budget.placement)

    @property
    def batch_tokens(self) -> int:
        """Batch size of prompt processing; a stopped server finishes one batch."""
        return BATCH_TOKENS[self.budget.placement]

    @property
    def kv_type(self) -> str:
        """Type of the KV cache."""
        return "q8_0" if KV_SCALE[self.budget.placement] < 1 else "f16"

    def describe(self) -> str:
        """Return it in one line."""
        text = (
            f"{self.model.name} {self.budget.placement}, {self.context_tokens:,} tokens of context"
            f", about {gib(self.need_bytes)} of {gib(self.budget.total_bytes)}"
        )
        if self.budget.reserved_bytes:
            text += f" ({gib(self.budget.reserved_bytes)} reserved for completion)"
        if not self.fits_whole:
            text += "; it does not fit completely, so a part runs slowly on the CPU"
        return text


def measure(name: str, path: Path) -> ModelSize:
    """Return the sizes of a model from its file's metadata.

    Raises:
        ModelCorrupt: it is not a GGUF file.
    """
    head = gguf.read_head(path)
    kv_bytes, most = kv_cache_bytes(head, 1), head_number(head, "context_length")
    entry = next((model for model in manifest.load() if model.name == name), None)
    if entry is not None:  # more exact for models that cache only some layers
        kv_bytes, most = entry.kv_bytes_per_token, most or entry.context_tokens
    return ModelSize(name, path, _all_bytes(path, head.file_bytes), kv_bytes, most)


def expected_plan(name: str, here: Hardware, completion: str) -> ServerPlan:
    """Return the plan for a model of the manifest, even if its file is missing.

    Raises:
        OutOfMemory: it does not fit.
    """
    entry = manifest.find(name)
    size = ModelSize(
        name, store.path_of(entry), entry.bytes, entry.kv_bytes_per_token, entry.context_tokens
    )
    return make_plan(size, memory_budget(here, completion))


def available_bytes(ram_bytes: int) -> int:
    """Return the available RAM; the total if unknown."""
    found = system.memory_of_machine("MemAvailable")
    return ram_bytes if found is None else found


def memory_budget(here: Hardware, completion: str) -> MemoryBudget:
    """Return the memory for the chat server, without that of a completion model (name or path)."""
    reserved, ram = _reserved_bytes(completion), here.ram_bytes or 8 * GIB
    if here.gpu_bytes is not None:
        free = here.gpu_free_bytes if here.gpu_free_bytes is not None else here.gpu_bytes
        spill = 0 if here.vendor == "apple" else ram // 2  # Apple's GPUs use the same memory
        return MemoryBudget("on the GPU", here.gpu_bytes, free, reserved, ram, spill)
    return MemoryBudget("on the CPU", ram, available_bytes(ram), reserved, ram)


def make_plan(model: ModelSize, budget: MemoryBudget, wish_tokens: int = 0) -> ServerPlan:
    """Choose the context of a model.

    Args:
        wish_tokens: the configured context; 0 for as much as fits and is useful.

    Raises:
        OutOfMemory: not even a part of the model fits.
    """
    most = model.max_tokens or CHAT_TOKENS
    if budget.placement == "on the CPU":
        most = min(most, CHAT_TOKENS)  # more would be too slow on a CPU
    steps = [step for step in STEPS if step <= most] or [most]
    fitting = [step for step in steps if model.need_bytes(step, budget.placement) <= budget.bytes]
    is_gpu = budget.placement == "on the GPU"
    least = min(most, CHAT_TOKENS) if is_gpu else steps[-1]  # a part may run on the CPU
    tokens = wish_tokens or (fitting[0] if fitting else least)
    if wish_tokens and model.max_tokens:
        tokens = min(tokens, model.max_tokens)
    share = 8 if is_gpu else 16
    cache_mib = min(budget.ram_bytes // MIB // share, 4096)
    plan = ServerPlan(model, budget, tokens, cache_mib)
    if plan.need_bytes <= budget.bytes:
        return plan
    if is_gpu and plan.need_bytes <= budget.bytes + budget.spill_bytes:
        return replace(plan, fits_whole=False)
    raise out_of_memory(plan)


def smaller_plan(plan: ServerPlan) -> ServerPlan | None:
    """Return a plan with at most half the context, because a load takes long; None for none."""
    step = next((step for step in STEPS if 2 * step <= plan.context_tokens), None)
    return replace(plan, context_tokens=step) if step is not None else None


def out_of_memory(plan: ServerPlan) -> OutOfMemory:
    """Return an error with the required memory, and what would fit."""
    budget, model = plan.budget, plan.model
    message = (
        f"{model.name} with {plan.context_tokens:,} tokens of context needs about "
        f"{gib(plan.need_bytes)}, and {gib(budget.bytes)} of {gib(budget.total_bytes)} are free "
        f"{budget.placement}"
    )
    if budget.reserved_bytes:
        message += f", with {gib(budget.reserved_bytes)} reserved for completion"
    return OutOfMemory(message, advice(plan))


def advice(plan: ServerPlan) -> str:
    """Return the smaller contexts and models that would fit, with numbers."""
    budget, model = plan.budget, plan.model
    ways = []
    for step in STEPS:
        need = model.need_bytes(step, budget.placement)
        if step < plan.context_tokens and need <= budget.bytes:
            ways.append(f"set chat.context_tokens = {step} (about {gib(need)})")
            break
    for name in CHAT_MODELS:
        entry = manifest.find(name)
        need = chat_bytes(name, budget.placement, min(CHAT_TOKENS, entry.context_tokens))
        if entry.bytes < model.file_bytes and need <= budget.bytes:
            ways.append(f'set chat.model = "{entry.name}" (about {gib(need)})')
            break
    if budget.placement == "on the GPU":
        ways.append("close other programs that use the GPU")
    ways = ways or ["close other programs, or use a server on another machine (see models)"]
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
        setting: a name of the manifest or a path; "" is the recommended one if downloaded, else
            the best one that is, finally the small embedded one.
        here: the hardware that the engine can use, see `Hardware.using`.
        notify: called with a message if it is not the recommended one.

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
            notify(
                f"{name} serves the chat; this machine could run {best}: {store.pull_command(best)}"
            )
        return name, path
    raise ModelMissing(
        "There is no chat model on this machine",
        f"Download the recommended one: {store.pull_command(best)}",
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
